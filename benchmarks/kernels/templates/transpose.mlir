gpu.module @kernels {
  gpu.func @transpose(%a: memref<${R}x${C}xf32>, %b: memref<${C}x${R}xf32>) kernel
      attributes {known_block_size = array<i32: 16, 16, 1>,
                  fsr.arg_names = ["a", "b"],
                  fsr.workload = {a = "uniform(-1, 1)"}} {
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
    %v = memref.load %a[%row, %col] : memref<${R}x${C}xf32>
    memref.store %v, %b[%col, %row] : memref<${C}x${R}xf32>
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
