// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Twice and the square of 1024 floats, each by one warp: so little work for a device
// that a search takes a moment only.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @scale(%x: memref<1024xf32>, %y: memref<1024xf32>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>,
          fsr.arg_names = ["x", "y"]} {
      %tx = gpu.thread_id x
      %count = arith.constant 1024 : index
      %step = arith.constant 32 : index
      scf.for %i = %tx to %count step %step {
        %v = memref.load %x[%i] : memref<1024xf32>
        %w = arith.addf %v, %v : f32
        memref.store %w, %y[%i] : memref<1024xf32>
      }
      gpu.return
    }
    gpu.func @square(%x: memref<1024xf32>, %y: memref<1024xf32>) kernel
        attributes {known_block_size = array<i32: 32, 1, 1>,
          fsr.arg_names = ["x", "y"]} {
      %tx = gpu.thread_id x
      %count = arith.constant 1024 : index
      %step = arith.constant 32 : index
      scf.for %i = %tx to %count step %step {
        %v = memref.load %x[%i] : memref<1024xf32>
        %w = arith.mulf %v, %v : f32
        memref.store %w, %y[%i] : memref<1024xf32>
      }
      gpu.return
    }
  }
  func.func @main(%x: memref<1024xf32> {llvm.noalias}, %y: memref<1024xf32> {llvm.noalias},
                  %z: memref<1024xf32> {llvm.noalias}) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    gpu.launch_func @kernels::@scale blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%x : memref<1024xf32>, %y : memref<1024xf32>)
    gpu.launch_func @kernels::@square blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%x : memref<1024xf32>, %z : memref<1024xf32>)
    return
  }
}
