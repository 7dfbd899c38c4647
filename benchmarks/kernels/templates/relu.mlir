gpu.module @kernels {
  gpu.func @relu(%x: memref<${N}xf32>, %y: memref<${N}xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["x", "y"],
                  fsr.workload = {x = "tails(1, 0.1, 0)"}} {
    %zero = arith.constant 0.0 : f32
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
    %v = memref.load %x[%i] : memref<${N}xf32>
    %m = arith.maximumf %v, %zero : f32
    memref.store %m, %y[%i] : memref<${N}xf32>
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
