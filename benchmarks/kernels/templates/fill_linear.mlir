  // ${name}: feature j of %x by 1 + j/8, and noise of deviation 0.1.
  gpu.func @fill_${name}(%buffer: ${type}, %x: memref<${N}x${F}xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
    %bx = gpu.block_id x
    %dx = gpu.block_dim x
    %tx = gpu.thread_id x
    %bx0 = arith.muli %bx, %dx : index
    %i = arith.addi %bx0, %tx : index
    %count = arith.constant ${count} : index
    %inside = arith.cmpi ult, %i, %count : index
    scf.if %inside {
      %i32 = arith.index_cast %i : index to i32
      %seed = arith.constant ${seed} : i32
      %s13 = arith.constant 13 : i32
      %s16 = arith.constant 16 : i32
      %s8 = arith.constant 8 : i32
      %m1 = arith.constant 0x85EBCA6B : i32
      %m2 = arith.constant 0xC2B2AE35 : i32
      %h0 = arith.addi %i32, %seed : i32
      %r0 = arith.shrui %h0, %s16 : i32
      %x0 = arith.xori %h0, %r0 : i32
      %h1 = arith.muli %x0, %m1 : i32
      %r1 = arith.shrui %h1, %s13 : i32
      %x1 = arith.xori %h1, %r1 : i32
      %h2 = arith.muli %x1, %m2 : i32
      %r2 = arith.shrui %h2, %s16 : i32
      %h3 = arith.xori %h2, %r2 : i32
      // 24 bits are exact in f32; the centre of 2^24 steps is 2^23.
      %bits = arith.shrui %h3, %s8 : i32
      %step = arith.uitofp %bits : i32 to f32
      %centre = arith.constant 8388608.0 : f32
      %unit = arith.constant 1.1920928955078125e-07 : f32
      %width = arith.constant 0.173205 : f32
      %d = arith.subf %step, %centre : f32
      %u = arith.mulf %d, %unit : f32
      %noise = arith.mulf %u, %width : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %f = arith.constant ${F} : index
      %one = arith.constant 1.0 : f32
      %eighth = arith.constant 0.125 : f32
      %v = scf.for %j = %c0 to %f step %c1 iter_args(%s = %noise) -> (f32) {
        %j32 = arith.index_cast %j : index to i32
        %jf = arith.uitofp %j32 : i32 to f32
        %more = arith.mulf %jf, %eighth : f32
        %factor = arith.addf %one, %more : f32
        %xv = memref.load %x[%i, %j] : memref<${N}x${F}xf32>
        %product = arith.mulf %xv, %factor : f32
        %next = arith.addf %s, %product : f32
        scf.yield %next : f32
      }
${place}
      memref.store %v, %buffer[${indices}] : ${type}
    }
    gpu.return
  }
