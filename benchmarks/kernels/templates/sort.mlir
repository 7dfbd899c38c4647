gpu.module @kernels {
  gpu.func @sort(%x: memref<${N}xf32>, %sorted: memref<${N}xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["x", "sorted"],
                  fsr.workload = [{x = "uniform(-1, 1)"},
                                  {case = "ties", x = "integers(0, 15)"},
                                  {case = "sorted", x = "sorted(-1, 1)"}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %count = arith.constant ${N} : index
    %bx = gpu.block_id x
    %dx = gpu.block_dim x
    %tx = gpu.thread_id x
    %bx0 = arith.muli %bx, %dx : index
    %i = arith.addi %bx0, %tx : index
    //@if GUARD
    %total = arith.constant ${THREADS} : index
    %inside = arith.cmpi ult, %i, %total : index
    scf.if %inside {
    //@end
    %v = memref.load %x[%i] : memref<${N}xf32>
    // Before an element stand the smaller ones, and the equal ones to its left.
    %rank = scf.for %j = %c0 to %count step %c1 iter_args(%r = %c0) -> (index) {
      %w = memref.load %x[%j] : memref<${N}xf32>
      %less = arith.cmpf olt, %w, %v : f32
      %equal = arith.cmpf oeq, %w, %v : f32
      %left = arith.cmpi ult, %j, %i : index
      %tie = arith.andi %equal, %left : i1
      %before = arith.ori %less, %tie : i1
      %step = arith.select %before, %c1, %c0 : index
      %next = arith.addi %r, %step : index
      scf.yield %next : index
    }
    memref.store %v, %sorted[%rank] : memref<${N}xf32>
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
