gpu.module @kernels {
  gpu.func @matmul(%a: memref<${M}x${K}xf32>, %b: memref<${K}x${N}xf32>, %c: memref<${M}x${N}xf32>) kernel
      attributes {known_block_size = array<i32: 16, 16, 1>,
                  fsr.arg_names = ["a", "b", "c"],
                  fsr.workload = {a = "normal(0, 1)", b = "normal(0, 1)"}} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %depth = arith.constant ${K} : index
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
    %rows = arith.constant ${M} : index
    %cols = arith.constant ${N} : index
    %row_in = arith.cmpi ult, %row, %rows : index
    %col_in = arith.cmpi ult, %col, %cols : index
    %inside = arith.andi %row_in, %col_in : i1
    scf.if %inside {
    //@end
    %sum = scf.for %k = %c0 to %depth step %c1 iter_args(%acc = %zero) -> (f32) {
      %av = memref.load %a[%row, %k] : memref<${M}x${K}xf32>
      %bv = memref.load %b[%k, %col] : memref<${K}x${N}xf32>
      %product = arith.mulf %av, %bv : f32
      %next = arith.addf %acc, %product : f32
      scf.yield %next : f32
    }
    memref.store %sum, %c[%row, %col] : memref<${M}x${N}xf32>
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
