// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// max_pool3d: kernel 3, stride 2, padding 1, dilation 3, f32, 2 times 4 of 20 x 18 x 16; one thread an output.
// Made by benchmarks/kernels/generate.py from templates/max_pool3d.mlir; change that.
// Prints the number of elements, then the sum, the sum of the absolute values and
// 16 elements of the result: each as the bits of an f64, then in decimal.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @max_pool3d(%x: memref<2x4x20x18x16xf32>, %y: memref<2x4x8x7x6xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>,
          fsr.arg_names = ["x", "y"],
          fsr.workload = {x = "normal(0, 1)"}} {
      %lowest = arith.constant 0xFF800000 : f32
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %stride = arith.constant 2 : index
      %dilation = arith.constant 3 : index
      %reach = arith.constant 9 : index
      %channels = arith.constant 4 : index
      %out_d = arith.constant 8 : index
      %out_h = arith.constant 7 : index
      %out_w = arith.constant 6 : index
      %size_d = arith.constant 20 : index
      %size_h = arith.constant 18 : index
      %size_w = arith.constant 16 : index
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %i = arith.addi %bx0, %tx : index
      %total = arith.constant 2688 : index
      %inside = arith.cmpi ult, %i, %total : index
      scf.if %inside {
        %ow = arith.remui %i, %out_w : index
        %i0 = arith.divui %i, %out_w : index
        %oh = arith.remui %i0, %out_h : index
        %i1 = arith.divui %i0, %out_h : index
        %od = arith.remui %i1, %out_d : index
        %i2 = arith.divui %i1, %out_d : index
        %c = arith.remui %i2, %channels : index
        %n = arith.divui %i2, %channels : index
        %d0 = arith.muli %od, %stride : index
        %h0 = arith.muli %oh, %stride : index
        %w0 = arith.muli %ow, %stride : index
        // Places are one further than in %x, for the padding: below one or above the
        // size is outside.
        %max = scf.for %kd = %c0 to %reach step %dilation iter_args(%m0 = %lowest) -> (f32) {
          %pd = arith.addi %d0, %kd : index
          %md = scf.for %kh = %c0 to %reach step %dilation iter_args(%m1 = %m0) -> (f32) {
            %ph = arith.addi %h0, %kh : index
            %mh = scf.for %kw = %c0 to %reach step %dilation iter_args(%m2 = %m1) -> (f32) {
              %pw = arith.addi %w0, %kw : index
              %d = arith.subi %pd, %c1 : index
              %h = arith.subi %ph, %c1 : index
              %w = arith.subi %pw, %c1 : index
              %in_d = arith.cmpi ult, %d, %size_d : index
              %in_h = arith.cmpi ult, %h, %size_h : index
              %in_w = arith.cmpi ult, %w, %size_w : index
              %in_dh = arith.andi %in_d, %in_h : i1
              %in = arith.andi %in_dh, %in_w : i1
              %next = scf.if %in -> (f32) {
                %v = memref.load %x[%n, %c, %d, %h, %w] : memref<2x4x20x18x16xf32>
                %larger = arith.maximumf %m2, %v : f32
                scf.yield %larger : f32
              } else {
                scf.yield %m2 : f32
              }
              scf.yield %next : f32
            }
            scf.yield %mh : f32
          }
          scf.yield %md : f32
        }
        memref.store %max, %y[%n, %c, %od, %oh, %ow] : memref<2x4x8x7x6xf32>
      }
      gpu.return
    }
  }
  gpu.module @harness {
    // x: uniform, mean 0.0, half width 1.732051, by a hash of the element's place.
    gpu.func @fill_x(%buffer: memref<2x4x20x18x16xf32>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %i = arith.addi %bx0, %tx : index
      %count = arith.constant 46080 : index
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
        %size4 = arith.constant 16 : index
        %at4 = arith.remui %i, %size4 : index
        %rest4 = arith.divui %i, %size4 : index
        %size3 = arith.constant 18 : index
        %at3 = arith.remui %rest4, %size3 : index
        %rest3 = arith.divui %rest4, %size3 : index
        %size2 = arith.constant 20 : index
        %at2 = arith.remui %rest3, %size2 : index
        %rest2 = arith.divui %rest3, %size2 : index
        %size1 = arith.constant 4 : index
        %at1 = arith.remui %rest2, %size1 : index
        %rest1 = arith.divui %rest2, %size1 : index
        memref.store %v, %buffer[%rest1, %at1, %at2, %at3, %at4] : memref<2x4x20x18x16xf32>
      }
      gpu.return
    }
    // Thread t adds up elements t, t + 4096, ... in f64: the sums at t, the sums
    // of the absolute values behind them, then 16 elements as they are.
    gpu.func @check(%buffer: memref<2x4x8x7x6xf32>, %partial: memref<8208xf64>) kernel
        attributes {known_block_size = array<i32: 256, 1, 1>, fsr.keep} {
      %zero = arith.constant 0.0 : f64
      %count = arith.constant 2688 : index
      %lanes = arith.constant 4096 : index
      %samples = arith.constant 16 : index
      %stride = arith.constant 179 : index
      %bx = gpu.block_id x
      %dx = gpu.block_dim x
      %tx = gpu.thread_id x
      %bx0 = arith.muli %bx, %dx : index
      %t = arith.addi %bx0, %tx : index
      %sum, %abs = scf.for %i = %t to %count step %lanes iter_args(%s0 = %zero, %a0 = %zero) -> (f64, f64) {
        %size4 = arith.constant 6 : index
        %at4 = arith.remui %i, %size4 : index
        %rest4 = arith.divui %i, %size4 : index
        %size3 = arith.constant 7 : index
        %at3 = arith.remui %rest4, %size3 : index
        %rest3 = arith.divui %rest4, %size3 : index
        %size2 = arith.constant 8 : index
        %at2 = arith.remui %rest3, %size2 : index
        %rest2 = arith.divui %rest3, %size2 : index
        %size1 = arith.constant 4 : index
        %at1 = arith.remui %rest2, %size1 : index
        %rest1 = arith.divui %rest2, %size1 : index
        %v = memref.load %buffer[%rest1, %at1, %at2, %at3, %at4] : memref<2x4x8x7x6xf32>
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
        %size4 = arith.constant 6 : index
        %at4 = arith.remui %i, %size4 : index
        %rest4 = arith.divui %i, %size4 : index
        %size3 = arith.constant 7 : index
        %at3 = arith.remui %rest4, %size3 : index
        %rest3 = arith.divui %rest4, %size3 : index
        %size2 = arith.constant 8 : index
        %at2 = arith.remui %rest3, %size2 : index
        %rest2 = arith.divui %rest3, %size2 : index
        %size1 = arith.constant 4 : index
        %at1 = arith.remui %rest2, %size1 : index
        %rest1 = arith.divui %rest2, %size1 : index
        %v = memref.load %buffer[%rest1, %at1, %at2, %at3, %at4] : memref<2x4x8x7x6xf32>
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
    %blocks_x = arith.constant 180 : index
    %block_x = arith.constant 256 : index
    %grid_x = arith.constant 11 : index
    %block_y = arith.constant 1 : index
    %grid_y = arith.constant 1 : index
    %start = gpu.wait async
    %x, %token_x = gpu.alloc async [%start] () : memref<2x4x20x18x16xf32>
    %y, %token_y = gpu.alloc async [%token_x] () : memref<2x4x8x7x6xf32>
    %partial, %token = gpu.alloc async [%token_y] () : memref<8208xf64>
    gpu.wait [%token]
    gpu.launch_func @harness::@fill_x blocks in (%blocks_x, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%x : memref<2x4x20x18x16xf32>)
    gpu.launch_func @kernels::@max_pool3d blocks in (%grid_x, %grid_y, %c1) threads in (%block_x, %block_y, %c1)
        args(%x : memref<2x4x20x18x16xf32>, %y : memref<2x4x8x7x6xf32>)
    gpu.launch_func @harness::@check blocks in (%lane_blocks, %c1, %c1) threads in (%c256, %c1, %c1)
        args(%y : memref<2x4x8x7x6xf32>, %partial : memref<8208xf64>)
    %host = memref.alloc() : memref<8208xf64>
    %ready = gpu.wait async
    %copied = gpu.memcpy async [%ready] %host, %partial : memref<8208xf64>, memref<8208xf64>
    %freed_x = gpu.dealloc async [%copied] %x : memref<2x4x20x18x16xf32>
    %freed_y = gpu.dealloc async [%freed_x] %y : memref<2x4x8x7x6xf32>
    %freed_partial = gpu.dealloc async [%freed_y] %partial : memref<8208xf64>
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
    %count = arith.constant 2688 : i64
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
