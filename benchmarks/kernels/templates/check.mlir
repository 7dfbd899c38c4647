  // Thread t adds up elements t, t + ${LANES}, ... in f64: the sums at t, the sums
  // of the absolute values behind them, then ${SAMPLES} elements as they are.
  gpu.func @check(%buffer: ${type}, %partial: memref<${PARTIALS}xf64>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
    %zero = arith.constant 0.0 : f64
    %count = arith.constant ${count} : index
    %lanes = arith.constant ${LANES} : index
    %samples = arith.constant ${SAMPLES} : index
    %stride = arith.constant ${stride} : index
    %bx = gpu.block_id x
    %dx = gpu.block_dim x
    %tx = gpu.thread_id x
    %bx0 = arith.muli %bx, %dx : index
    %t = arith.addi %bx0, %tx : index
    %sum, %abs = scf.for %i = %t to %count step %lanes iter_args(%s0 = %zero, %a0 = %zero) -> (f64, f64) {
${place}
      %v = memref.load %buffer[${indices}] : ${type}
      //@if F32
      %w = arith.extf %v : f32 to f64
      //@end
      //@if I32
      %w = arith.sitofp %v : i32 to f64
      //@end
      %m = math.absf %w : f64
      %s1 = arith.addf %s0, %w : f64
      %a1 = arith.addf %a0, %m : f64
      scf.yield %s1, %a1 : f64, f64
    }
    memref.store %sum, %partial[%t] : memref<${PARTIALS}xf64>
    %second = arith.addi %t, %lanes : index
    memref.store %abs, %partial[%second] : memref<${PARTIALS}xf64>
    %sampling = arith.cmpi ult, %t, %samples : index
    scf.if %sampling {
      //@if FEW
      %i = arith.remui %t, %count : index
      //@else
      %i = arith.muli %t, %stride : index
      //@end
${place}
      %v = memref.load %buffer[${indices}] : ${type}
      //@if F32
      %w = arith.extf %v : f32 to f64
      //@end
      //@if I32
      %w = arith.sitofp %v : i32 to f64
      //@end
      %third = arith.addi %second, %lanes : index
      memref.store %w, %partial[%third] : memref<${PARTIALS}xf64>
    }
    gpu.return
  }
