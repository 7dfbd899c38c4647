gpu.module @kernels {
  gpu.func @ols_gram(%x: memref<${N}x${F}xf32>, %y: memref<${N}xf32>, %gram: memref<${F}x${F}xf32>, %moments: memref<${F}xf32>) kernel
      attributes {known_block_size = array<i32: ${F}, ${F}, 1>,
                  fsr.arg_names = ["x", "y", "gram", "moments"],
                  fsr.workload = {x = "normal(0, 1)", y = "normal(0, 2)"}} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %rows = arith.constant ${N} : index
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %sum = scf.for %r = %c0 to %rows step %c1 iter_args(%s = %zero) -> (f32) {
      %a = memref.load %x[%r, %ty] : memref<${N}x${F}xf32>
      %b = memref.load %x[%r, %tx] : memref<${N}x${F}xf32>
      %ab = arith.mulf %a, %b : f32
      %n = arith.addf %s, %ab : f32
      scf.yield %n : f32
    }
    memref.store %sum, %gram[%ty, %tx] : memref<${F}x${F}xf32>
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first {
      %moment = scf.for %r = %c0 to %rows step %c1 iter_args(%s = %zero) -> (f32) {
        %a = memref.load %x[%r, %ty] : memref<${N}x${F}xf32>
        %b = memref.load %y[%r] : memref<${N}xf32>
        %ab = arith.mulf %a, %b : f32
        %n = arith.addf %s, %ab : f32
        scf.yield %n : f32
      }
      memref.store %moment, %moments[%ty] : memref<${F}xf32>
    }
    gpu.return
  }

  gpu.func @ols_solve(%gram: memref<${F}x${F}xf32>, %moments: memref<${F}xf32>, %beta: memref<${F}xf32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>,
                  fsr.arg_names = ["gram", "moments", "beta"],
                  fsr.workload = {gram = "gram(${N})", moments = "normal(0, ${N})"}} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %f = arith.constant ${F} : index
    %width = arith.constant ${F1} : index
    %last = arith.constant ${LAST} : index
    %m = memref.alloca() : memref<${F}x${F1}xf32>
    scf.for %i = %c0 to %f step %c1 {
      scf.for %j = %c0 to %f step %c1 {
        %g = memref.load %gram[%i, %j] : memref<${F}x${F}xf32>
        memref.store %g, %m[%i, %j] : memref<${F}x${F1}xf32>
      }
      %b = memref.load %moments[%i] : memref<${F}xf32>
      memref.store %b, %m[%i, %f] : memref<${F}x${F1}xf32>
    }
    // Gauss: the matrix is positive definite and needs no pivots.
    scf.for %p = %c0 to %f step %c1 {
      %pivot = memref.load %m[%p, %p] : memref<${F}x${F1}xf32>
      %next = arith.addi %p, %c1 : index
      scf.for %i = %next to %f step %c1 {
        %v = memref.load %m[%i, %p] : memref<${F}x${F1}xf32>
        %factor = arith.divf %v, %pivot : f32
        scf.for %j = %next to %width step %c1 {
          %u = memref.load %m[%p, %j] : memref<${F}x${F1}xf32>
          %w = memref.load %m[%i, %j] : memref<${F}x${F1}xf32>
          %fu = arith.mulf %factor, %u : f32
          %d = arith.subf %w, %fu : f32
          memref.store %d, %m[%i, %j] : memref<${F}x${F1}xf32>
        }
      }
    }
    scf.for %back = %c0 to %f step %c1 {
      %i = arith.subi %last, %back : index
      %right = memref.load %m[%i, %f] : memref<${F}x${F1}xf32>
      %from = arith.addi %i, %c1 : index
      %rest = scf.for %j = %from to %f step %c1 iter_args(%s = %right) -> (f32) {
        %u = memref.load %m[%i, %j] : memref<${F}x${F1}xf32>
        %b = memref.load %beta[%j] : memref<${F}xf32>
        %ub = arith.mulf %u, %b : f32
        %d = arith.subf %s, %ub : f32
        scf.yield %d : f32
      }
      %pivot = memref.load %m[%i, %i] : memref<${F}x${F1}xf32>
      %b = arith.divf %rest, %pivot : f32
      memref.store %b, %beta[%i] : memref<${F}xf32>
    }
    gpu.return
  }
}
