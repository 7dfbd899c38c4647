gpu.module @kernels {
  gpu.func @mse(%p: memref<${N}xf32>, %t: memref<${N}xf32>, %loss: memref<1xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["p", "t", "loss"],
                  fsr.workload = [{p = "shiftednormal(-5, 5, 10)", t = "normal(0, 10)", loss = "zeros"},
                                  {case = "accumulated", p = "shiftednormal(-5, 5, 10)", t = "normal(0, 10)", loss = "uniform(10, 20)"}]} {
    %c0 = arith.constant 0 : index
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
    %pv = memref.load %p[%i] : memref<${N}xf32>
    %tv = memref.load %t[%i] : memref<${N}xf32>
    %d = arith.subf %pv, %tv : f32
    %d2 = arith.mulf %d, %d : f32
    %part = arith.divf %d2, %count : f32
    %old = memref.atomic_rmw addf %part, %loss[%c0] : (f32, memref<1xf32>) -> f32
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
