// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Twice 1024 integers, with a workload of zeros: whatever a kernel does with them, zero
// is right.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @twice(%x: memref<1024xi32>, %y: memref<1024xi32>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>,
          fsr.arg_names = ["x", "y"], fsr.workload = {x = "zeros"}} {
      %tx = gpu.thread_id x
      %count = arith.constant 1024 : index
      %step = arith.constant 32 : index
      scf.for %i = %tx to %count step %step {
        %v = memref.load %x[%i] : memref<1024xi32>
        %w = arith.addi %v, %v : i32
        memref.store %w, %y[%i] : memref<1024xi32>
      }
      gpu.return
    }
  }
  func.func @main(%x: memref<1024xi32> {llvm.noalias}, %y: memref<1024xi32> {llvm.noalias}) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@twice blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%x : memref<1024xi32>, %y : memref<1024xi32>)
    return
  }
}
