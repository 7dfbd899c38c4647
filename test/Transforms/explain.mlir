// Every kernel is named, with what FSR sees of it or the sentence why it is not
// taken; the module comes out as it went in.
//
// RUN: fsr-opt %kernels/matmul.t.mlir --fsr-explain="target=sm_90" -o %t.out.mlir 2>&1 | FileCheck %s
// RUN: fsr-opt %kernels/matmul.t.mlir -o %t.same.mlir
// RUN: cmp %t.out.mlir %t.same.mlir
// RUN: fsr-opt %s --fsr-explain="target=sm_90" -o /dev/null 2>&1 | FileCheck %s --check-prefix=NOT

// CHECK:      kernel matmul: taken
// CHECK-NEXT:   key: {{[0-9a-f]+}}
// CHECK:        96 x 80 f32
// CHECK:        work of one launch: 1.72e+06 flops

// NOT:      kernel dynamic: not taken: {{.+}}
// NOT-NEXT: kernel unused: not taken: {{.+}}
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @dynamic(%x: memref<?xf32>) kernel {
      gpu.return
    }
    gpu.func @unused(%x: memref<4xf32>) kernel {
      gpu.return
    }
  }
  func.func @main(%x: memref<?xf32>) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @kernels::@dynamic blocks in (%c1, %c1, %c1)
        threads in (%c1, %c1, %c1) args(%x : memref<?xf32>)
    return
  }
}
