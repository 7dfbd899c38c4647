// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ${what}
// Made by benchmarks/kernels/generate.py from templates/${kernel}.mlir; change that.
// Prints the number of elements, then the sum, the sum of the absolute values and
// ${SAMPLES} elements of the result: each as the bits of an f64, then in decimal.
module attributes {gpu.container_module} {
${kernels}
gpu.module @harness {
${fills}
${check}
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
  %lanes = arith.constant ${LANES} : index
  %partials = arith.constant ${PARTIALS} : index
  %lane_blocks = arith.constant ${LANE_BLOCKS} : index
  %c256 = arith.constant 256 : index
${constants}
  %start = gpu.wait async
${allocs}
  %partial, %token = gpu.alloc async [${last}] () : memref<${PARTIALS}xf64>
  gpu.wait [%token]
${launch_fills}
${launches}
  gpu.launch_func @harness::@check blocks in (%lane_blocks, %c1, %c1) threads in (%c256, %c1, %c1)
      args(%${output} : ${output_type}, %partial : memref<${PARTIALS}xf64>)
  %host = memref.alloc() : memref<${PARTIALS}xf64>
  %ready = gpu.wait async
  %copied = gpu.memcpy async [%ready] %host, %partial : memref<${PARTIALS}xf64>, memref<${PARTIALS}xf64>
${deallocs}
  gpu.wait [${freed}]
  %zero = arith.constant 0.0 : f64
  %total, %total_abs = scf.for %i = %c0 to %lanes step %c1 iter_args(%s0 = %zero, %a0 = %zero) -> (f64, f64) {
    %sv = memref.load %host[%i] : memref<${PARTIALS}xf64>
    %j = arith.addi %i, %lanes : index
    %av = memref.load %host[%j] : memref<${PARTIALS}xf64>
    %s1 = arith.addf %s0, %sv : f64
    %a1 = arith.addf %a0, %av : f64
    scf.yield %s1, %a1 : f64, f64
  }
  %count = arith.constant ${count} : i64
  func.call @printI64(%count) : (i64) -> ()
  func.call @printNewline() : () -> ()
  func.call @print(%total) : (f64) -> ()
  func.call @print(%total_abs) : (f64) -> ()
  %first_sample = arith.addi %lanes, %lanes : index
  scf.for %i = %first_sample to %partials step %c1 {
    %sample = memref.load %host[%i] : memref<${PARTIALS}xf64>
    func.call @print(%sample) : (f64) -> ()
  }
  memref.dealloc %host : memref<${PARTIALS}xf64>
  return
}
}
