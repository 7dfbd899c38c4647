// A kernel without a record stays as it is, and a remark says why.
//
// RUN: rm -rf %t.store && mkdir -p %t.store
// RUN: fsr-opt %s --fsr-optimize-gpu="store=%t.store target=sm_90" --remarks-filter=fsr 2> %t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.err
// RUN: not fsr-opt %s --fsr-optimize-gpu="store=%t.store target=sm_90 on-miss=error" 2>&1 >/dev/null | FileCheck %s --check-prefix=ERROR

// REMARK: remark: [Missed] StoreMiss | Category:fsr | Function=scale | Reason="no record in the store for sm_90"
// REMARK: fsr: 1 kernel: 1 kept: no record; details: --remarks-filter=fsr
// ERROR:  error: fsr: kernel 'scale': no record for sm_90, and on-miss=error

// CHECK: gpu.func @scale
// CHECK: gpu.launch_func @kernels::@scale
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale(%x: memref<256xf32>) kernel {
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<256xf32>
      %w = arith.mulf %v, %two : f32
      memref.store %w, %x[%t] : memref<256xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<256xf32>) {
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    gpu.launch_func @kernels::@scale blocks in (%c1, %c1, %c1)
        threads in (%c256, %c1, %c1) args(%x : memref<256xf32>)
    return
  }
}
