// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What mlir.ptx beside this file was compiled from, with
// mlir-opt --gpu-lower-to-nvvm-pipeline="cubin-chip=sm_90
//   cubin-features=+ptx80 cubin-format=isa".

gpu.module @kernels {
  gpu.func @scale(%in: memref<?xf32>, %out: memref<?xf32>, %factor: f32)
      workgroup(%row: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %thread = gpu.thread_id x
    %block = gpu.block_id x
    %width = gpu.block_dim x
    %first = arith.muli %block, %width : index
    %i = arith.addi %first, %thread : index
    %x = memref.load %in[%i] : memref<?xf32>
    %y = arith.mulf %x, %factor : f32
    memref.store %y, %row[%thread] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %sum = gpu.all_reduce add %y uniform {} : (f32) -> (f32)
    %z = math.exp %sum : f32
    memref.store %z, %out[%i] : memref<?xf32>
    gpu.return
  }
}
