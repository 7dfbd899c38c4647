gpu.module @kernels {
  gpu.func @conv2d(%image: memref<${H}x${W}xf32>, %filter: memref<${K}x${K}xf32>, %out: memref<${OH}x${OW}xf32>) kernel
      attributes {known_block_size = array<i32: 16, 16, 1>,
                  fsr.arg_names = ["image", "filter", "out"],
                  fsr.workload = {image = "normal(0, 1)", filter = "normal(0, 1)"}} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %size = arith.constant ${K} : index
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %by0 = arith.muli %by, %dy : index
    %row = arith.addi %by0, %ty : index
    %bx0 = arith.muli %bx, %dx : index
    %col = arith.addi %bx0, %tx : index
    //@if GUARD
    %rows = arith.constant ${THREADS_Y} : index
    %cols = arith.constant ${THREADS_X} : index
    %row_in = arith.cmpi ult, %row, %rows : index
    %col_in = arith.cmpi ult, %col, %cols : index
    %inside = arith.andi %row_in, %col_in : i1
    scf.if %inside {
    //@end
    %sum = scf.for %u = %c0 to %size step %c1 iter_args(%s0 = %zero) -> (f32) {
      %p = arith.addi %row, %u : index
      %line = scf.for %w = %c0 to %size step %c1 iter_args(%s1 = %s0) -> (f32) {
        %q = arith.addi %col, %w : index
        %iv = memref.load %image[%p, %q] : memref<${H}x${W}xf32>
        %fv = memref.load %filter[%u, %w] : memref<${K}x${K}xf32>
        %product = arith.mulf %iv, %fv : f32
        %next = arith.addf %s1, %product : f32
        scf.yield %next : f32
      }
      scf.yield %line : f32
    }
    memref.store %sum, %out[%row, %col] : memref<${OH}x${OW}xf32>
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
