// A kernel that calls a function and reads a constant with names that PTX refuses.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    memref.global "private" constant @"the table" : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>
    func.func @"times::two"(%v: f32) -> f32 attributes {no_inline} {
      %two = arith.constant 2.0 : f32
      %w = arith.mulf %v, %two : f32
      return %w : f32
    }
    gpu.func @scale(%x: memref<4xf32>) kernel {
      %t = gpu.thread_id x
      %g = memref.get_global @"the table" : memref<4xf32>
      %v = memref.load %g[%t] : memref<4xf32>
      %w = func.call @"times::two"(%v) : (f32) -> f32
      memref.store %w, %x[%t] : memref<4xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@scale blocks in (%c1, %c1, %c1)
        threads in (%c4, %c1, %c1) args(%x : memref<4xf32>)
    return
  }
}
