// One use of everything of the gpu dialect that becomes a call of the runtime,
// in the forms that gpu-lower-to-nvvm-pipeline of MLIR 22.1 lowers. Two entries
// to run without a GPU: @quiet launches nothing, @launch launches. @everything
// prints what kernels wrote to device, host-shared and registered memory.

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @fill(%a: memref<32xf32>) kernel {
      %i = gpu.thread_id x
      %c = arith.constant 1.0 : f32
      memref.store %c, %a[%i] : memref<32xf32>
      gpu.return
    }
  }
  func.func private @printI64(i64)
  func.func private @printF32(f32)
  func.func private @printNewline()

  func.func @quiet() {
    %c = arith.constant 7 : i64
    call @printI64(%c) : (i64) -> ()
    return
  }

  func.func @launch() {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %before = arith.constant 8 : i64
    %after = arith.constant 9 : i64
    %m = memref.alloc() : memref<32xf32>
    call @printI64(%before) : (i64) -> ()
    gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1)
        threads in (%c32, %c1, %c1) args(%m : memref<32xf32>)
    call @printI64(%after) : (i64) -> ()
    memref.dealloc %m : memref<32xf32>
    return
  }

  func.func @show(%a: memref<32xf32>) {
    %c31 = arith.constant 31 : index
    %last = memref.load %a[%c31] : memref<32xf32>
    call @printF32(%last) : (f32) -> ()
    call @printNewline() : () -> ()
    return
  }

  func.func @everything() {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c31 = arith.constant 31 : index
    %f = arith.constant 0.0 : f32
    %h = arith.constant 0.0 : f16
    %device = arith.constant 0 : i32
    gpu.set_default_device %device
    %m = memref.alloc() : memref<32xf32>
    %u = memref.cast %m : memref<32xf32> to memref<*xf32>
    gpu.host_register %u : memref<*xf32>
    %t0 = gpu.wait async
    %d, %t1 = gpu.alloc async [%t0] () : memref<32xf32>
    %e, %t2 = gpu.alloc async [%t1] () : memref<32xf16>
    %t3 = gpu.memset async [%t2] %d, %f : memref<32xf32>, f32
    %t4 = gpu.memset async [%t3] %e, %h : memref<32xf16>, f16
    %t5 = gpu.launch_func async [%t4] @kernels::@fill
        blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%d : memref<32xf32>)
    %t6 = gpu.wait async
    %t7 = gpu.wait async [%t5, %t6]
    %t8 = gpu.memcpy async [%t7] %m, %d : memref<32xf32>, memref<32xf32>
    %t9 = gpu.dealloc async [%t8] %d : memref<32xf32>
    gpu.wait [%t9]
    %s = gpu.alloc host_shared () : memref<32xf32>
    gpu.launch_func @kernels::@fill clusters in (%c1, %c1, %c1)
        blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%s : memref<32xf32>)
    call @show(%m) : (memref<32xf32>) -> ()
    call @show(%s) : (memref<32xf32>) -> ()
    memref.store %f, %m[%c31] : memref<32xf32>
    call @show(%m) : (memref<32xf32>) -> ()
    gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1)
        threads in (%c32, %c1, %c1) args(%m : memref<32xf32>)
    call @show(%m) : (memref<32xf32>) -> ()
    gpu.host_unregister %u : memref<*xf32>
    return
  }
}
