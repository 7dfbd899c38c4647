gpu.module @kernels {
  gpu.func @prefix_sum(%x: memref<${N}xf32>, %y: memref<${N}xf32>) kernel
      attributes {known_block_size = array<i32: 1, 1, 1>,
                  fsr.arg_names = ["x", "y"],
                  fsr.workload = {x = "uniform(0, 1)"}} {
    %zero = arith.constant 0.0 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %count = arith.constant ${N} : index
    %sum = scf.for %i = %c0 to %count step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<${N}xf32>
      %n = arith.addf %s, %v : f32
      memref.store %n, %y[%i] : memref<${N}xf32>
      scf.yield %n : f32
    }
    gpu.return
  }
}
