// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// matrix_copy: B = A, f32, 191 x 157; one thread an element.
// Made by benchmarks/kernels/generate.py from templates/matrix_copy.mlir; change that.
// Prints the number of elements, then the sum, the sum of the absolute values and
// 16 elements of the result: each as the bits of an f64, then in decimal.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @matrix_copy(%a: memref<191x157xf32>, %b: memref<191x157xf32>) kernel
        attributes {known_block_size = array<i32: 16, 16, 1>,
          fsr.arg_names = ["a", "b"],
          fsr.workload = {a = "uniform(-1, 1)"}} {
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
      %rows = arith.constant 191 : index
      %cols = arith.constant 157 : index
      %row_in = arith.cmpi ult, %row, %rows : index
      %col_in = arith.cmpi ult, %col, %cols : index
      %inside = arith.andi %row_in, %col_in : i1
      scf.if %inside {
        %v = memref.load %a[%row, %col] : memref<191x157xf32>
        memref.store %v, %b[%row, %col] : memref<191x157xf32>
      }
      gpu.return
    }
  }
  gpu.module @harness {
    // a: uniform, mean 0.0, half width 1.0, by a hash of the element's place.
    gpu.func @fill_a(%buffer: memref<191x157xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %i = arith.addi %bx0, %tx : index
      %count = arith.constant 29987 : index
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
        %half = arith.constant 1.0 : f32
        %mean = arith.constant 0.0 : f32
        %d = arith.subf %step, %centre : f32
        %u = arith.mulf %d, %unit : f32
        %w = arith.mulf %u, %half : f32
        %v = arith.addf %w, %mean : f32
        %width = arith.constant 157 : index
        %r = arith.divui %i, %width : index
        %c = arith.remui %i, %width : index
        memref.store %v, %buffer[%r, %c] : memref<191x157xf32>
      }
      gpu.return
    }
    // Thread t adds up elements t, t + 4096, ... in f64: the sums at t, the sums
    // of the absolute values behind them, then 16 elements as they are.
    gpu.func @check(%buffer: memref<191x157xf32>, %partial: memref<8208xf64>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %zero = arith.constant 0.0 : f64
      %count = arith.constant 29987 : index
      %lanes = arith.constant 4096 : index
      %samples = arith.constant 16 : index
      %stride = arith.constant 1999 : index
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %t = arith.addi %bx0, %tx : index
      %sum, %abs = scf.for %i = %t to %count step %lanes iter_args(%s0 = %zero, %a0 = %zero) -> (f64, f64) {
        %width = arith.constant 157 : index
        %r = arith.divui %i, %width : index
        %c = arith.remui %i, %width : index
        %v = memref.load %buffer[%r, %c] : memref<191x157xf32>
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
        %width = arith.constant 157 : index
        %r = arith.divui %i, %width : index
        %c = arith.remui %i, %width : index
        %v = memref.load %buffer[%r, %c] : memref<191x157xf32>
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
    %blocks_a = arith.constant 118 : index
    %block_x = arith.constant 16 : index
    %grid_x = arith.constant 10 : index
    %block_y = arith.constant 16 : index
    %grid_y = arith.constant 12 : index
    %start = gpu.wait async
    %a, %token_a = gpu.alloc async [%start] () : memref<191x157xf32>
    %b, %token_b = gpu.alloc async [%token_a] () : memref<191x157xf32>
    %partial, %token = gpu.alloc async [%token_b] () : memref<8208xf64>
    gpu.wait [%token]
    gpu.launch_func @harness::@fill_a blocks in (%blocks_a, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%a : memref<191x157xf32>)
    gpu.launch_func @kernels::@matrix_copy blocks in (%grid_x, %grid_y, %c1) threads in (%block_x, %block_y, %c1)
        args(%a : memref<191x157xf32>, %b : memref<191x157xf32>)
    gpu.launch_func @harness::@check blocks in (%lane_blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%b : memref<191x157xf32>, %partial : memref<8208xf64>)
    %host = memref.alloc() : memref<8208xf64>
    %ready = gpu.wait async
    %copied = gpu.memcpy async [%ready] %host, %partial : memref<8208xf64>, memref<8208xf64>
    %freed_a = gpu.dealloc async [%copied] %a : memref<191x157xf32>
    %freed_b = gpu.dealloc async [%freed_a] %b : memref<191x157xf32>
    %freed_partial = gpu.dealloc async [%freed_b] %partial : memref<8208xf64>
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
    %count = arith.constant 29987 : i64
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
