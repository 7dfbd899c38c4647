gpu.module @kernels {
  gpu.func @softmax(%x: memref<${R}x${C}xf32>, %y: memref<${R}x${C}xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["x", "y"],
                  fsr.workload = {x = "normal(0, 5)"}} {
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
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
    %max = scf.for %j = %c0 to %cols step %c1 iter_args(%m = %lowest) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<${R}x${C}xf32>
      %n = arith.maximumf %m, %v : f32
      scf.yield %n : f32
    }
    %sum = scf.for %j = %c0 to %cols step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<${R}x${C}xf32>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      memref.store %e, %y[%row, %j] : memref<${R}x${C}xf32>
      %n = arith.addf %s, %e : f32
      scf.yield %n : f32
    }
    scf.for %j = %c0 to %cols step %c1 {
      %e = memref.load %y[%row, %j] : memref<${R}x${C}xf32>
      %q = arith.divf %e, %sum : f32
      memref.store %q, %y[%row, %j] : memref<${R}x${C}xf32>
    }
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
