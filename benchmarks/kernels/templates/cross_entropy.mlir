gpu.module @kernels {
  gpu.func @cross_entropy(%logits: memref<${R}x${C}xf32>, %labels: memref<${R}xi32>, %loss: memref<1xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["logits", "labels", "loss"],
                  fsr.workload = [{logits = "normal(0, 3)", labels = "integers(0, ${LAST})", loss = "zeros"},
                                  {case = "accumulated", logits = "normal(0, 3)", labels = "integers(0, ${LAST})", loss = "uniform(1, 2)"}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %lowest = arith.constant 0xFF800000 : f32
    %count = arith.constant ${R}.0 : f32
    %cols = arith.constant ${C} : index
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
    %max = scf.for %j = %c0 to %cols step %c1 iter_args(%m = %lowest) -> (f32) {
      %v = memref.load %logits[%i, %j] : memref<${R}x${C}xf32>
      %n = arith.maximumf %m, %v : f32
      scf.yield %n : f32
    }
    %sum = scf.for %j = %c0 to %cols step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %logits[%i, %j] : memref<${R}x${C}xf32>
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %n = arith.addf %s, %e : f32
      scf.yield %n : f32
    }
    %label = memref.load %labels[%i] : memref<${R}xi32>
    %at = arith.index_cast %label : i32 to index
    %lv = memref.load %logits[%i, %at] : memref<${R}x${C}xf32>
    %log = math.log %sum : f32
    %above = arith.subf %max, %lv : f32
    %row_loss = arith.addf %log, %above : f32
    %part = arith.divf %row_loss, %count : f32
    %old = memref.atomic_rmw addf %part, %loss[%c0] : (f32, memref<1xf32>) -> f32
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
