  // ${name}: whole numbers from 0 to below ${span}, by a hash of the element's place.
  gpu.func @fill_${name}(%buffer: ${type}) kernel
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
      %span = arith.constant ${span} : i32
      %v = arith.remui %h3, %span : i32
${place}
      memref.store %v, %buffer[${indices}] : ${type}
    }
    gpu.return
  }
