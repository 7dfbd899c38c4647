gpu.module @kernels {
  gpu.func @sigmoid(%x: memref<${N}xf32>, %y: memref<${N}xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>,
                  fsr.arg_names = ["x", "y"],
                  fsr.workload = {x = "tails(3, 0.01, 100)"}} {
    %one = arith.constant 1.0 : f32
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
    %n = arith.negf %v : f32
    %e = math.exp %n : f32
    %d = arith.addf %e, %one : f32
    %q = arith.divf %one, %d : f32
    memref.store %q, %y[%i] : memref<${N}xf32>
    //@if GUARD
    }
    //@end
    gpu.return
  }
}
