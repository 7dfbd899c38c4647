// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ols: solves X^T X b = X^T y, f32, 4194304 rows of 10 features; 10 x 10 threads over
// all rows, then one thread solves.
// Made by benchmarks/kernels/generate.py from templates/ols.mlir; change that.
// Prints the number of elements, then the sum, the sum of the absolute values and
// 16 elements of the result: each as the bits of an f64, then in decimal.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @ols_gram(%x: memref<4194304x10xf32>, %y: memref<4194304xf32>, %gram: memref<10x10xf32>, %moments: memref<10xf32>) kernel
        attributes {known_block_size = array<i32: 10, 10, 1>,
          fsr.arg_names = ["x", "y", "gram", "moments"],
          fsr.workload = {x = "normal(0, 1)", y = "normal(0, 2)"}} {
      %zero = arith.constant 0.0 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %rows = arith.constant 4194304 : index
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %sum = scf.for %r = %c0 to %rows step %c1 iter_args(%s = %zero) -> (f32) {
        %a = memref.load %x[%r, %ty] : memref<4194304x10xf32>
        %b = memref.load %x[%r, %tx] : memref<4194304x10xf32>
        %ab = arith.mulf %a, %b : f32
        %n = arith.addf %s, %ab : f32
        scf.yield %n : f32
      }
      memref.store %sum, %gram[%ty, %tx] : memref<10x10xf32>
      %first = arith.cmpi eq, %tx, %c0 : index
      scf.if %first {
        %moment = scf.for %r = %c0 to %rows step %c1 iter_args(%s = %zero) -> (f32) {
          %a = memref.load %x[%r, %ty] : memref<4194304x10xf32>
          %b = memref.load %y[%r] : memref<4194304xf32>
          %ab = arith.mulf %a, %b : f32
          %n = arith.addf %s, %ab : f32
          scf.yield %n : f32
        }
        memref.store %moment, %moments[%ty] : memref<10xf32>
      }
      gpu.return
    }

    gpu.func @ols_solve(%gram: memref<10x10xf32>, %moments: memref<10xf32>, %beta: memref<10xf32>) kernel
        attributes {known_block_size = array<i32: 1, 1, 1>,
          fsr.arg_names = ["gram", "moments", "beta"],
          fsr.workload = {gram = "gram(4194304)", moments = "normal(0, 4194304)"}} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %f = arith.constant 10 : index
      %width = arith.constant 11 : index
      %last = arith.constant 9 : index
      %m = memref.alloca() : memref<10x11xf32>
      scf.for %i = %c0 to %f step %c1 {
        scf.for %j = %c0 to %f step %c1 {
          %g = memref.load %gram[%i, %j] : memref<10x10xf32>
          memref.store %g, %m[%i, %j] : memref<10x11xf32>
        }
        %b = memref.load %moments[%i] : memref<10xf32>
        memref.store %b, %m[%i, %f] : memref<10x11xf32>
      }
      // Gauss: the matrix is positive definite and needs no pivots.
      scf.for %p = %c0 to %f step %c1 {
        %pivot = memref.load %m[%p, %p] : memref<10x11xf32>
        %next = arith.addi %p, %c1 : index
        scf.for %i = %next to %f step %c1 {
          %v = memref.load %m[%i, %p] : memref<10x11xf32>
          %factor = arith.divf %v, %pivot : f32
          scf.for %j = %next to %width step %c1 {
            %u = memref.load %m[%p, %j] : memref<10x11xf32>
            %w = memref.load %m[%i, %j] : memref<10x11xf32>
            %fu = arith.mulf %factor, %u : f32
            %d = arith.subf %w, %fu : f32
            memref.store %d, %m[%i, %j] : memref<10x11xf32>
          }
        }
      }
      scf.for %back = %c0 to %f step %c1 {
        %i = arith.subi %last, %back : index
        %right = memref.load %m[%i, %f] : memref<10x11xf32>
        %from = arith.addi %i, %c1 : index
        %rest = scf.for %j = %from to %f step %c1 iter_args(%s = %right) -> (f32) {
          %u = memref.load %m[%i, %j] : memref<10x11xf32>
          %b = memref.load %beta[%j] : memref<10xf32>
          %ub = arith.mulf %u, %b : f32
          %d = arith.subf %s, %ub : f32
          scf.yield %d : f32
        }
        %pivot = memref.load %m[%i, %i] : memref<10x11xf32>
        %b = arith.divf %rest, %pivot : f32
        memref.store %b, %beta[%i] : memref<10xf32>
      }
      gpu.return
    }
  }
  gpu.module @harness {
    // x: uniform, mean 0.0, half width 1.732051, by a hash of the element's place.
    gpu.func @fill_x(%buffer: memref<4194304x10xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %i = arith.addi %bx0, %tx : index
      %count = arith.constant 41943040 : index
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
        %width = arith.constant 10 : index
        %r = arith.divui %i, %width : index
        %c = arith.remui %i, %width : index
        memref.store %v, %buffer[%r, %c] : memref<4194304x10xf32>
      }
      gpu.return
    }
    // y: feature j of %x by 1 + j/8, and noise of deviation 0.1.
    gpu.func @fill_y(%buffer: memref<4194304xf32>, %x: memref<4194304x10xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %i = arith.addi %bx0, %tx : index
      %count = arith.constant 4194304 : index
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
        %width = arith.constant 0.173205 : f32
        %d = arith.subf %step, %centre : f32
        %u = arith.mulf %d, %unit : f32
        %noise = arith.mulf %u, %width : f32
        %c0 = arith.constant 0 : index
        %c1 = arith.constant 1 : index
        %f = arith.constant 10 : index
        %one = arith.constant 1.0 : f32
        %eighth = arith.constant 0.125 : f32
        %v = scf.for %j = %c0 to %f step %c1 iter_args(%s = %noise) -> (f32) {
          %j32 = arith.index_cast %j : index to i32
          %jf = arith.uitofp %j32 : i32 to f32
          %more = arith.mulf %jf, %eighth : f32
          %factor = arith.addf %one, %more : f32
          %xv = memref.load %x[%i, %j] : memref<4194304x10xf32>
          %product = arith.mulf %xv, %factor : f32
          %next = arith.addf %s, %product : f32
          scf.yield %next : f32
        }

        memref.store %v, %buffer[%i] : memref<4194304xf32>
      }
      gpu.return
    }
    // Thread t adds up elements t, t + 4096, ... in f64: the sums at t, the sums
    // of the absolute values behind them, then 16 elements as they are.
    gpu.func @check(%buffer: memref<10xf32>, %partial: memref<8208xf64>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %zero = arith.constant 0.0 : f64
      %count = arith.constant 10 : index
      %lanes = arith.constant 4096 : index
      %samples = arith.constant 16 : index
      %stride = arith.constant 1 : index
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %t = arith.addi %bx0, %tx : index
      %sum, %abs = scf.for %i = %t to %count step %lanes iter_args(%s0 = %zero, %a0 = %zero) -> (f64, f64) {

        %v = memref.load %buffer[%i] : memref<10xf32>
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
        %i = arith.remui %t, %count : index

        %v = memref.load %buffer[%i] : memref<10xf32>
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
    %blocks_x = arith.constant 163840 : index
    %blocks_y = arith.constant 16384 : index
    %block_x = arith.constant 10 : index
    %grid_x = arith.constant 1 : index
    %block_y = arith.constant 10 : index
    %grid_y = arith.constant 1 : index
    %block_x1 = arith.constant 1 : index
    %grid_x1 = arith.constant 1 : index
    %block_y1 = arith.constant 1 : index
    %grid_y1 = arith.constant 1 : index
    %start = gpu.wait async
    %x, %token_x = gpu.alloc async [%start] () : memref<4194304x10xf32>
    %y, %token_y = gpu.alloc async [%token_x] () : memref<4194304xf32>
    %gram, %token_gram = gpu.alloc async [%token_y] () : memref<10x10xf32>
    %moments, %token_moments = gpu.alloc async [%token_gram] () : memref<10xf32>
    %beta, %token_beta = gpu.alloc async [%token_moments] () : memref<10xf32>
    %partial, %token = gpu.alloc async [%token_beta] () : memref<8208xf64>
    gpu.wait [%token]
    gpu.launch_func @harness::@fill_x blocks in (%blocks_x, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<4194304x10xf32>)
    gpu.launch_func @harness::@fill_y blocks in (%blocks_y, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%y : memref<4194304xf32>, %x : memref<4194304x10xf32>)
    gpu.launch_func @kernels::@ols_gram blocks in (%grid_x, %grid_y, %c1) threads in (%block_x, %block_y, %c1)
        args(%x : memref<4194304x10xf32>, %y : memref<4194304xf32>, %gram : memref<10x10xf32>, %moments : memref<10xf32>)
    gpu.launch_func @kernels::@ols_solve blocks in (%grid_x1, %grid_y1, %c1) threads in (%block_x1, %block_y1, %c1)
        args(%gram : memref<10x10xf32>, %moments : memref<10xf32>, %beta : memref<10xf32>)
    gpu.launch_func @harness::@check blocks in (%lane_blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%beta : memref<10xf32>, %partial : memref<8208xf64>)
    %host = memref.alloc() : memref<8208xf64>
    %ready = gpu.wait async
    %copied = gpu.memcpy async [%ready] %host, %partial : memref<8208xf64>, memref<8208xf64>
    %freed_x = gpu.dealloc async [%copied] %x : memref<4194304x10xf32>
    %freed_y = gpu.dealloc async [%freed_x] %y : memref<4194304xf32>
    %freed_gram = gpu.dealloc async [%freed_y] %gram : memref<10x10xf32>
    %freed_moments = gpu.dealloc async [%freed_gram] %moments : memref<10xf32>
    %freed_beta = gpu.dealloc async [%freed_moments] %beta : memref<10xf32>
    %freed_partial = gpu.dealloc async [%freed_beta] %partial : memref<8208xf64>
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
    %count = arith.constant 10 : i64
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
