gpu.module @kernels {
  gpu.func @dot(%a: memref<${N}xf32>, %b: memref<${N}xf32>, %sum: memref<1xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["a", "b", "sum"],
                  fsr.workload = [{a = "normal(0, 1)", b = "normal(0, 1)", sum = "zeros"},
                                  {case = "accumulated", a = "normal(0, 1)", b = "normal(0, 1)", sum = "uniform(100, 200)"}]} {
    %c0 = arith.constant 0 : index
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
    %av = memref.load %a[%i] : memref<${N}xf32>
    %bv = memref.load %b[%i] : memref<${N}xf32>
    %part = arith.mulf %av, %bv : f32
    %old = memref.atomic_rmw addf %part, %sum[%c0] : (f32, memref<1xf32>) -> f32
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
