gpu.module @kernels {
  gpu.func @layer_norm(%x: memref<${R}x${C}xf32>, %gamma: memref<${C}xf32>, %beta: memref<${C}xf32>, %y: memref<${R}x${C}xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["x", "gamma", "beta", "y"],
                  fsr.workload = {x = "normal(3, 5)", gamma = "normal(1, 0.5)", beta = "normal(0, 1)"}} {
    %zero = arith.constant 0.0 : f32
    %eps = arith.constant 1.0e-5 : f32
    %count = arith.constant ${C}.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %cols = arith.constant ${C} : index
    %bx = gpu.block_id x
    %dx = gpu.block_dim x
    %tx = gpu.thread_id x
    %bx0 = arith.muli %bx, %dx : index
    %row = arith.addi %bx0, %tx : index
    //@if GUARD
    %rows = arith.constant ${R} : index
    %inside = arith.cmpi ult, %row, %rows : index
    scf.if %inside {
    //@end
    %sum = scf.for %j = %c0 to %cols step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<${R}x${C}xf32>
      %n = arith.addf %s, %v : f32
      scf.yield %n : f32
    }
    %mean = arith.divf %sum, %count : f32
    %squares = scf.for %j = %c0 to %cols step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<${R}x${C}xf32>
      %d = arith.subf %v, %mean : f32
      %d2 = arith.mulf %d, %d : f32
      %n = arith.addf %s, %d2 : f32
      scf.yield %n : f32
    }
    %variance = arith.divf %squares, %count : f32
    %shifted = arith.addf %variance, %eps : f32
    %scale = math.rsqrt %shifted : f32
    scf.for %j = %c0 to %cols step %c1 {
      %v = memref.load %x[%row, %j] : memref<${R}x${C}xf32>
      %d = arith.subf %v, %mean : f32
      %z = arith.mulf %d, %scale : f32
      %g = memref.load %gamma[%j] : memref<${C}xf32>
      %b = memref.load %beta[%j] : memref<${C}xf32>
      %zg = arith.mulf %z, %g : f32
      %o = arith.addf %zg, %b : f32
      memref.store %o, %y[%row, %j] : memref<${R}x${C}xf32>
    }
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
