gpu.module @kernels {
  gpu.func @max_pool3d(%x: memref<${N}x${C}x${D}x${H}x${W}xf32>, %y: memref<${N}x${C}x${OD}x${OH}x${OW}xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["x", "y"],
                  fsr.workload = {x = "normal(0, 1)"}} {
    %lowest = arith.constant 0xFF800000 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %stride = arith.constant 2 : index
    %dilation = arith.constant 3 : index
    %reach = arith.constant 9 : index
    %channels = arith.constant ${C} : index
    %out_d = arith.constant ${OD} : index
    %out_h = arith.constant ${OH} : index
    %out_w = arith.constant ${OW} : index
    %size_d = arith.constant ${D} : index
    %size_h = arith.constant ${H} : index
    %size_w = arith.constant ${W} : index
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
    %ow = arith.remui %i, %out_w : index
    %i0 = arith.divui %i, %out_w : index
    %oh = arith.remui %i0, %out_h : index
    %i1 = arith.divui %i0, %out_h : index
    %od = arith.remui %i1, %out_d : index
    %i2 = arith.divui %i1, %out_d : index
    %c = arith.remui %i2, %channels : index
    %n = arith.divui %i2, %channels : index
    %d0 = arith.muli %od, %stride : index
    %h0 = arith.muli %oh, %stride : index
    %w0 = arith.muli %ow, %stride : index
    // Places are one further than in %x, for the padding: below one or above the
    // size is outside.
    %max = scf.for %kd = %c0 to %reach step %dilation iter_args(%m0 = %lowest) -> (f32) {
      %pd = arith.addi %d0, %kd : index
      %md = scf.for %kh = %c0 to %reach step %dilation iter_args(%m1 = %m0) -> (f32) {
        %ph = arith.addi %h0, %kh : index
        %mh = scf.for %kw = %c0 to %reach step %dilation iter_args(%m2 = %m1) -> (f32) {
          %pw = arith.addi %w0, %kw : index
          %d = arith.subi %pd, %c1 : index
          %h = arith.subi %ph, %c1 : index
          %w = arith.subi %pw, %c1 : index
          %in_d = arith.cmpi ult, %d, %size_d : index
          %in_h = arith.cmpi ult, %h, %size_h : index
          %in_w = arith.cmpi ult, %w, %size_w : index
          %in_dh = arith.andi %in_d, %in_h : i1
          %in = arith.andi %in_dh, %in_w : i1
          %next = scf.if %in -> (f32) {
            %v = memref.load %x[%n, %c, %d, %h, %w] : memref<${N}x${C}x${D}x${H}x${W}xf32>
            %larger = arith.maximumf %m2, %v : f32
            scf.yield %larger : f32
          } else {
            scf.yield %m2 : f32
          }
          scf.yield %next : f32
        }
        scf.yield %mh : f32
      }
      scf.yield %md : f32
    }
    memref.store %max, %y[%n, %c, %od, %oh, %ow] : memref<${N}x${C}x${OD}x${OH}x${OW}xf32>
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
