// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// conv2d: one channel, valid, cross-correlation, f32, 3072 x 3072 by 15 x 15; one thread an output.
// Made by benchmarks/kernels/generate.py from templates/conv2d.mlir; change that.
// Prints the number of elements, then the sum, the sum of the absolute values and
// 16 elements of the result: each as the bits of an f64, then in decimal.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @conv2d(%image: memref<3072x3072xf32>, %filter: memref<15x15xf32>, %out: memref<3058x3058xf32>) kernel
        attributes {known_block_size = array<i32: 16, 16, 1>,
          fsr.arg_names = ["image", "filter", "out"],
          fsr.workload = {image = "normal(0, 1)", filter = "normal(0, 1)"}} {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %size = arith.constant 15 : index
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %dx = gpu.block_dim x
      %dy = gpu.block_dim y
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %by0 = arith.muli %by, %dy : index
      %row = arith.addi %by0, %ty : index
      %bx0 = arith.muli %bx, %dx : index
      %col = arith.addi %bx0, %tx : index
      %rows = arith.constant 3058 : index
      %cols = arith.constant 3058 : index
      %row_in = arith.cmpi ult, %row, %rows : index
      %col_in = arith.cmpi ult, %col, %cols : index
      %inside = arith.andi %row_in, %col_in : i1
      scf.if %inside {
        %sum = scf.for %u = %c0 to %size step %c1 iter_args(%s0 = %zero) -> (f32) {
          %p = arith.addi %row, %u : index
          %line = scf.for %w = %c0 to %size step %c1 iter_args(%s1 = %s0) -> (f32) {
            %q = arith.addi %col, %w : index
            %iv = memref.load %image[%p, %q] : memref<3072x3072xf32>
            %fv = memref.load %filter[%u, %w] : memref<15x15xf32>
            %product = arith.mulf %iv, %fv : f32
            %next = arith.addf %s1, %product : f32
            scf.yield %next : f32
          }
          scf.yield %line : f32
        }
        memref.store %sum, %out[%row, %col] : memref<3058x3058xf32>
      }
      gpu.return
    }
  }
  gpu.module @harness {
    // image: uniform, mean 0.0, half width 1.732051, by a hash of the element's place.
    gpu.func @fill_image(%buffer: memref<3072x3072xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %i = arith.addi %bx0, %tx : index
      %count = arith.constant 9437184 : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %i32 = arith.index_cast %i : index to i32
        %seed = arith.constant 2654435769 : i32
        %s13 = arith.constant 13 : i32
        %s16 = arith.constant 16 : i32
        %s8 = arith.constant 8 : i32
        %m1 = arith.constant 0x85EBCA6B : i32
        %m2 = arith.constant 0xC2B2AE35 : i32
        %h0 = arith.addi %i32, %seed : i32
        %r0 = arith.shrui %h0, %s16 : i32
        %x0 = arith.xori %h0, %r0 : i32
        %h1 = arith.muli %x0, %m1 : i32
        %r1 = arith.shrui %h1, %s13 : i32
        %x1 = arith.xori %h1, %r1 : i32
        %h2 = arith.muli %x1, %m2 : i32
        %r2 = arith.shrui %h2, %s16 : i32
        %h3 = arith.xori %h2, %r2 : i32
        // 24 bits are exact in f32; the centre of 2^24 steps is 2^23.
        %bits = arith.shrui %h3, %s8 : i32
        %step = arith.uitofp %bits : i32 to f32
        %centre = arith.constant 8388608.0 : f32
        %unit = arith.constant 1.1920928955078125e-07 : f32
        %half = arith.constant 1.732051 : f32
        %mean = arith.constant 0.0 : f32
        %d = arith.subf %step, %centre : f32
        %u = arith.mulf %d, %unit : f32
        %w = arith.mulf %u, %half : f32
        %v = arith.addf %w, %mean : f32
        %width = arith.constant 3072 : index
        %r = arith.divui %i, %width : index
        %c = arith.remui %i, %width : index
        memref.store %v, %buffer[%r, %c] : memref<3072x3072xf32>
      }
      gpu.return
    }
    // filter: uniform, mean 0.0, half width 1.732051, by a hash of the element's place.
    gpu.func @fill_filter(%buffer: memref<15x15xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %i = arith.addi %bx0, %tx : index
      %count = arith.constant 225 : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %i32 = arith.index_cast %i : index to i32
        %seed = arith.constant 1013904242 : i32
        %s13 = arith.constant 13 : i32
        %s16 = arith.constant 16 : i32
        %s8 = arith.constant 8 : i32
        %m1 = arith.constant 0x85EBCA6B : i32
        %m2 = arith.constant 0xC2B2AE35 : i32
        %h0 = arith.addi %i32, %seed : i32
        %r0 = arith.shrui %h0, %s16 : i32
        %x0 = arith.xori %h0, %r0 : i32
        %h1 = arith.muli %x0, %m1 : i32
        %r1 = arith.shrui %h1, %s13 : i32
        %x1 = arith.xori %h1, %r1 : i32
        %h2 = arith.muli %x1, %m2 : i32
        %r2 = arith.shrui %h2, %s16 : i32
        %h3 = arith.xori %h2, %r2 : i32
        // 24 bits are exact in f32; the centre of 2^24 steps is 2^23.
        %bits = arith.shrui %h3, %s8 : i32
        %step = arith.uitofp %bits : i32 to f32
        %centre = arith.constant 8388608.0 : f32
        %unit = arith.constant 1.1920928955078125e-07 : f32
        %half = arith.constant 1.732051 : f32
        %mean = arith.constant 0.0 : f32
        %d = arith.subf %step, %centre : f32
        %u = arith.mulf %d, %unit : f32
        %w = arith.mulf %u, %half : f32
        %v = arith.addf %w, %mean : f32
        %width = arith.constant 15 : index
        %r = arith.divui %i, %width : index
        %c = arith.remui %i, %width : index
        memref.store %v, %buffer[%r, %c] : memref<15x15xf32>
      }
      gpu.return
    }
    // Thread t adds up elements t, t + 4096, ... in f64: the sums at t, the sums
    // of the absolute values behind them, then 16 elements as they are.
    gpu.func @check(%buffer: memref<3058x3058xf32>, %partial: memref<8208xf64>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %zero = arith.constant 0.0 : f64
      %count = arith.constant 9351364 : index
      %lanes = arith.constant 4096 : index
      %samples = arith.constant 16 : index
      %stride = arith.constant 623424 : index
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %t = arith.addi %bx0, %tx : index
      %sum, %abs = scf.for %i = %t to %count step %lanes iter_args(%s0 = %zero, %a0 = %zero) -> (f64, f64) {
        %width = arith.constant 3058 : index
        %r = arith.divui %i, %width : index
        %c = arith.remui %i, %width : index
        %v = memref.load %buffer[%r, %c] : memref<3058x3058xf32>
        %w = arith.extf %v : f32 to f64
        %m = math.absf %w : f64
        %s1 = arith.addf %s0, %w : f64
        %a1 = arith.addf %a0, %m : f64
        scf.yield %s1, %a1 : f64, f64
      }
      memref.store %sum, %partial[%t] : memref<8208xf64>
      %second = arith.addi %t, %lanes : index
      memref.store %abs, %partial[%second] : memref<8208xf64>
      %sampling = arith.cmpi ult, %t, %samples : index
      scf.if %sampling {
        %i = arith.muli %t, %stride : index
        %width = arith.constant 3058 : index
        %r = arith.divui %i, %width : index
        %c = arith.remui %i, %width : index
        %v = memref.load %buffer[%r, %c] : memref<3058x3058xf32>
        %w = arith.extf %v : f32 to f64
        %third = arith.addi %second, %lanes : index
        memref.store %w, %partial[%third] : memref<8208xf64>
      }
      gpu.return
    }
  }

  func.func private @printI64(i64)
  func.func private @printF64(f64)
  func.func private @printComma()
  func.func private @printNewline()

  func.func private @print(%value: f64) {
    %bits = arith.bitcast %value : f64 to i64
    func.call @printI64(%bits) : (i64) -> ()
    func.call @printComma() : () -> ()
    func.call @printF64(%value) : (f64) -> ()
    func.call @printNewline() : () -> ()
    return
  }

  func.func @main() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %lanes = arith.constant 4096 : index
    %partials = arith.constant 8208 : index
    %lane_blocks = arith.constant 16 : index
    %c256 = arith.constant 256 : index
    %blocks_image = arith.constant 36864 : index
    %blocks_filter = arith.constant 1 : index
    %block_x = arith.constant 16 : index
    %grid_x = arith.constant 192 : index
    %block_y = arith.constant 16 : index
    %grid_y = arith.constant 192 : index
    %start = gpu.wait async
    %image, %token_image = gpu.alloc async [%start] () : memref<3072x3072xf32>
    %filter, %token_filter = gpu.alloc async [%token_image] () : memref<15x15xf32>
    %out, %token_out = gpu.alloc async [%token_filter] () : memref<3058x3058xf32>
    %partial, %token = gpu.alloc async [%token_out] () : memref<8208xf64>
    gpu.wait [%token]
    gpu.launch_func @harness::@fill_image blocks in (%blocks_image, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%image : memref<3072x3072xf32>)
    gpu.launch_func @harness::@fill_filter blocks in (%blocks_filter, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%filter : memref<15x15xf32>)
    gpu.launch_func @kernels::@conv2d blocks in (%grid_x, %grid_y, %c1) threads in (%block_x, %block_y, %c1)
        args(%image : memref<3072x3072xf32>, %filter : memref<15x15xf32>, %out : memref<3058x3058xf32>)
    gpu.launch_func @harness::@check blocks in (%lane_blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%out : memref<3058x3058xf32>, %partial : memref<8208xf64>)
    %host = memref.alloc() : memref<8208xf64>
    %ready = gpu.wait async
    %copied = gpu.memcpy async [%ready] %host, %partial : memref<8208xf64>, memref<8208xf64>
    %freed_image = gpu.dealloc async [%copied] %image : memref<3072x3072xf32>
    %freed_filter = gpu.dealloc async [%freed_image] %filter : memref<15x15xf32>
    %freed_out = gpu.dealloc async [%freed_filter] %out : memref<3058x3058xf32>
    %freed_partial = gpu.dealloc async [%freed_out] %partial : memref<8208xf64>
    gpu.wait [%freed_partial]
    %zero = arith.constant 0.0 : f64
    %total, %total_abs = scf.for %i = %c0 to %lanes step %c1 iter_args(%s0 = %zero, %a0 = %zero) -> (f64, f64) {
      %sv = memref.load %host[%i] : memref<8208xf64>
      %j = arith.addi %i, %lanes : index
      %av = memref.load %host[%j] : memref<8208xf64>
      %s1 = arith.addf %s0, %sv : f64
      %a1 = arith.addf %a0, %av : f64
      scf.yield %s1, %a1 : f64, f64
    }
    %count = arith.constant 9351364 : i64
    func.call @printI64(%count) : (i64) -> ()
    func.call @printNewline() : () -> ()
    func.call @print(%total) : (f64) -> ()
    func.call @print(%total_abs) : (f64) -> ()
    %first_sample = arith.addi %lanes, %lanes : index
    scf.for %i = %first_sample to %partials step %c1 {
      %sample = memref.load %host[%i] : memref<8208xf64>
      func.call @print(%sample) : (f64) -> ()
    }
    memref.dealloc %host : memref<8208xf64>
    return
  }
}
