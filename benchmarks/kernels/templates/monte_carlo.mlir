gpu.module @kernels {
  gpu.func @monte_carlo(%samples: memref<${N}xf32>, %integral: memref<1xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["samples", "integral"],
                  fsr.workload = [{samples = "sines(0.5, 2)", integral = "zeros"},
                                  {case = "accumulated", samples = "sines(0.5, 2)", integral = "uniform(1, 2)"}]} {
    %c0 = arith.constant 0 : index
    // b - a, of the interval.
    %width = arith.constant 3.0 : f32
    %count = arith.constant ${N}.0 : f32
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
    %v = memref.load %samples[%i] : memref<${N}xf32>
    %w = arith.mulf %v, %width : f32
    %part = arith.divf %w, %count : f32
    %old = memref.atomic_rmw addf %part, %integral[%c0] : (f32, memref<1xf32>) -> f32
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
