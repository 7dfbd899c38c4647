gpu.module @kernels {
  gpu.func @histogram(%x: memref<${N}xi32>, %bins: memref<256xi32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["x", "bins"],
                  fsr.workload = [{x = "integers(0, 255)", bins = "zeros"},
                                  {case = "one bin", x = "equal(17)", bins = "zeros"},
                                  {case = "zipf, accumulated", x = "zipf(0, 255)", bins = "integers(0, 1000)"}]} {
    %one = arith.constant 1 : i32
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
    %v = memref.load %x[%i] : memref<${N}xi32>
    %bin = arith.index_cast %v : i32 to index
    %old = memref.atomic_rmw addi %one, %bins[%bin] : (i32, memref<256xi32>) -> i32
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
