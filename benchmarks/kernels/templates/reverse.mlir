gpu.module @kernels {
  gpu.func @reverse(%x: memref<${N}xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["x"],
                  fsr.workload = {x = "uniform(-1, 1)"}} {
    %last = arith.constant ${LAST} : index
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
    %j = arith.subi %last, %i : index
    %v = memref.load %x[%i] : memref<${N}xf32>
    %w = memref.load %x[%j] : memref<${N}xf32>
    memref.store %w, %x[%i] : memref<${N}xf32>
    memref.store %v, %x[%j] : memref<${N}xf32>
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
