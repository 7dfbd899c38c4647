// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// histogram: 256 bins, i32, 67108864 elements; an atomic add an element.
// Made by benchmarks/kernels/generate.py from templates/histogram.mlir; change that.
// Prints the number of elements, then the sum, the sum of the absolute values and
// 16 elements of the result: each as the bits of an f64, then in decimal.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @histogram(%x: memref<67108864xi32>, %bins: memref<256xi32>) kernel
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
      %v = memref.load %x[%i] : memref<67108864xi32>
      %bin = arith.index_cast %v : i32 to index
      %old = memref.atomic_rmw addi %one, %bins[%bin] : (i32, memref<256xi32>) -> i32
      gpu.return
    }
  }
  gpu.module @harness {
    // x: whole numbers from 0 to below 256, by a hash of the element's place.
    gpu.func @fill_x(%buffer: memref<67108864xi32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %i = arith.addi %bx0, %tx : index
      %count = arith.constant 67108864 : index
      %inside = arith.cmpi ult, %i, %count : index
      scf.if %inside {
        %i32 = arith.index_cast %i : index to i32
        %seed = arith.constant 2654435769 : i32
        %s13 = arith.constant 13 : i32
        %s16 = arith.constant 16 : i32
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
        %span = arith.constant 256 : i32
        %v = arith.remui %h3, %span : i32

        memref.store %v, %buffer[%i] : memref<67108864xi32>
      }
      gpu.return
    }
    // Thread t adds up elements t, t + 4096, ... in f64: the sums at t, the sums
    // of the absolute values behind them, then 16 elements as they are.
    gpu.func @check(%buffer: memref<256xi32>, %partial: memref<8208xf64>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %zero = arith.constant 0.0 : f64
      %count = arith.constant 256 : index
      %lanes = arith.constant 4096 : index
      %samples = arith.constant 16 : index
      %stride = arith.constant 17 : index
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %t = arith.addi %bx0, %tx : index
      %sum, %abs = scf.for %i = %t to %count step %lanes iter_args(%s0 = %zero, %a0 = %zero) -> (f64, f64) {

        %v = memref.load %buffer[%i] : memref<256xi32>
        %w = arith.sitofp %v : i32 to f64
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

        %v = memref.load %buffer[%i] : memref<256xi32>
        %w = arith.sitofp %v : i32 to f64
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
    %blocks_x = arith.constant 262144 : index
    %zero_bins = arith.constant 0 : i32
    %block_x = arith.constant 256 : index
    %grid_x = arith.constant 262144 : index
    %block_y = arith.constant 1 : index
    %grid_y = arith.constant 1 : index
    %start = gpu.wait async
    %x, %token_x = gpu.alloc async [%start] () : memref<67108864xi32>
    %bins, %token_bins = gpu.alloc async [%token_x] () : memref<256xi32>
    %partial, %token = gpu.alloc async [%token_bins] () : memref<8208xf64>
    gpu.wait [%token]
    gpu.launch_func @harness::@fill_x blocks in (%blocks_x, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<67108864xi32>)
    %before_bins = gpu.wait async
    %set_bins = gpu.memset async [%before_bins] %bins, %zero_bins : memref<256xi32>, i32
    gpu.wait [%set_bins]
    gpu.launch_func @kernels::@histogram blocks in (%grid_x, %grid_y, %c1) threads in (%block_x, %block_y, %c1)
        args(%x : memref<67108864xi32>, %bins : memref<256xi32>)
    gpu.launch_func @harness::@check blocks in (%lane_blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%bins : memref<256xi32>, %partial : memref<8208xf64>)
    %host = memref.alloc() : memref<8208xf64>
    %ready = gpu.wait async
    %copied = gpu.memcpy async [%ready] %host, %partial : memref<8208xf64>, memref<8208xf64>
    %freed_x = gpu.dealloc async [%copied] %x : memref<67108864xi32>
    %freed_bins = gpu.dealloc async [%freed_x] %bins : memref<256xi32>
    %freed_partial = gpu.dealloc async [%freed_bins] %partial : memref<8208xf64>
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
    %count = arith.constant 256 : i64
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
