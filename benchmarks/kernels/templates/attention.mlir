gpu.module @kernels {
  gpu.func @attention(%q: memref<${S}x${D}xf32>, %k: memref<${S}x${D}xf32>, %v: memref<${S}x${D}xf32>, %y: memref<${S}x${D}xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>,
                  fsr.arg_names = ["q", "k", "v", "y"],
                  fsr.workload = [{q = "normal(0, 1)", k = "normal(0, 1)", v = "normal(0, 1)"},
                                  {case = "one large score", q = "spike(1, 60)"}]} {
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %scale = arith.constant ${SCALE} : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %depth = arith.constant ${DEPTH} : index
    %keys = arith.constant ${S} : index
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %dx = gpu.block_dim x
    %dy = gpu.block_dim y
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %by0 = arith.muli %by, %dy : index
    %head = arith.addi %by0, %ty : index
    %bx0 = arith.muli %bx, %dx : index
    %row = arith.addi %bx0, %tx : index
    //@if GUARD
    %rows = arith.constant ${S} : index
    %inside = arith.cmpi ult, %row, %rows : index
    scf.if %inside {
    //@end
    %first = arith.muli %head, %depth : index
    %max = scf.for %j = %c0 to %keys step %c1 iter_args(%m = %lowest) -> (f32) {
      %dot = scf.for %d = %c0 to %depth step %c1 iter_args(%s = %zero) -> (f32) {
        %at = arith.addi %first, %d : index
        %qv = memref.load %q[%row, %at] : memref<${S}x${D}xf32>
        %kv = memref.load %k[%j, %at] : memref<${S}x${D}xf32>
        %product = arith.mulf %qv, %kv : f32
        %next = arith.addf %s, %product : f32
        scf.yield %next : f32
      }
      %score = arith.mulf %dot, %scale : f32
      %larger = arith.maximumf %m, %score : f32
      scf.yield %larger : f32
    }
    scf.for %d = %c0 to %depth step %c1 {
      %at = arith.addi %first, %d : index
      memref.store %zero, %y[%row, %at] : memref<${S}x${D}xf32>
    }
    %sum = scf.for %j = %c0 to %keys step %c1 iter_args(%t = %zero) -> (f32) {
      %dot = scf.for %d = %c0 to %depth step %c1 iter_args(%s = %zero) -> (f32) {
        %at = arith.addi %first, %d : index
        %qv = memref.load %q[%row, %at] : memref<${S}x${D}xf32>
        %kv = memref.load %k[%j, %at] : memref<${S}x${D}xf32>
        %product = arith.mulf %qv, %kv : f32
        %next = arith.addf %s, %product : f32
        scf.yield %next : f32
      }
      %score = arith.mulf %dot, %scale : f32
      %shifted = arith.subf %score, %max : f32
      %e = math.exp %shifted : f32
      scf.for %d = %c0 to %depth step %c1 {
        %at = arith.addi %first, %d : index
        %vv = memref.load %v[%j, %at] : memref<${S}x${D}xf32>
        %yv = memref.load %y[%row, %at] : memref<${S}x${D}xf32>
        %weighted = arith.mulf %e, %vv : f32
        %added = arith.addf %yv, %weighted : f32
        memref.store %added, %y[%row, %at] : memref<${S}x${D}xf32>
      }
      %total = arith.addf %t, %e : f32
      scf.yield %total : f32
    }
    scf.for %d = %c0 to %depth step %c1 {
      %at = arith.addi %first, %d : index
      %yv = memref.load %y[%row, %at] : memref<${S}x${D}xf32>
      %o = arith.divf %yv, %sum : f32
      memref.store %o, %y[%row, %at] : memref<${S}x${D}xf32>
    }
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
