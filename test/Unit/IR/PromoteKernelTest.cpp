// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Clones in f64: what is retyped, what is read as it was, and each reason to
// refuse. What clones compute is held against shadow mode elsewhere
// (test/Validation/clone.test).
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

using namespace fsr;

namespace {

/// Reads %v and %w of %x (f32, read) and %h (f16, read); %y is written.
std::string kernel(llvm::StringRef body, llvm::StringRef more = "") {
  return (R"(module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<chip = "sm_90", flags = {fast}>] {
    )" + more +
          R"(
    gpu.func @f(%x: memref<64xf32>, %h: memref<64xf16>, %y: memref<64xf32>,
                %i: memref<64xi32>, %s: f32) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %two = arith.constant 2.0 : f32
      %t = gpu.thread_id x
      %v = memref.load %x[%t] : memref<64xf32>
      %w = memref.load %h[%t] : memref<64xf16>
      %u = arith.mulf %v, %two fastmath<fast> : f32
      )" + body +
          R"(
      gpu.return
    }
  }
})")
      .str();
}

struct PromoteKernel : ModuleTest {
  /// The clone, or "refused: …".
  std::string promote(const std::string &text,
                      std::vector<unsigned> written = {2}) {
    auto module = parse(text);
    if (!module)
      return "does not parse";
    if (llvm::Error error = promoteKernel(*module, written))
      return "refused: " + llvm::toString(std::move(error));
    return print(*module);
  }
  std::string lower(const std::string &text) {
    auto module = parse(text);
    if (llvm::Error error = promoteKernel(*module, {2}))
      return "refused: " + llvm::toString(std::move(error));
    auto ptx = lowerReference(*module, "sm_90");
    return ptx ? *ptx : "failed: " + llvm::toString(ptx.takeError());
  }
  void expectRefused(llvm::StringRef body, llvm::StringRef why) {
    EXPECT_EQ(promote(kernel(body)), ("refused: " + why).str()) << body.str();
  }
  static bool has(const std::string &text, llvm::StringRef part) {
    return llvm::StringRef(text).contains(part);
  }
};

TEST_F(PromoteKernel, ReadsWhatIsThereAndWritesDoubles) {
  std::string clone = promote(kernel(R"(
      %wide = arith.extf %w : f16 to f32
      %a = arith.addf %u, %wide : f32
      %half = arith.truncf %a : f32 to f16
      %back = arith.extf %half : f16 to f32
      %b = arith.mulf %back, %s : f32
      memref.store %b, %y[%t] : memref<64xf32>)"));
  EXPECT_TRUE(has(clone, "memref<64xf32>, ")) << clone;
  EXPECT_TRUE(has(clone, "memref<64xf16>, "));
  EXPECT_TRUE(has(clone, "memref<64xf64>, "));
  EXPECT_TRUE(has(clone, "arith.extf %arg4 : f32 to f64"));
  EXPECT_TRUE(has(clone, ": f16 to f64"));
  EXPECT_TRUE(has(clone, "arith.constant 2.000000e+00 : f64"));
  // What the original stores in f16 between two steps is a rounding.
  EXPECT_FALSE(has(clone, "truncf"));
  EXPECT_FALSE(has(clone, "fast"));
}

TEST_F(PromoteKernel, LoopsMemoryAndBlocks) {
  std::string clone = promote(kernel(R"(
      %m = memref.alloca() : memref<8xf32>
      %part = memref.subview %y[8][8][1] : memref<64xf32> to memref<8xf32, strided<[1], offset: 8>>
      %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %u) -> (f32) {
        memref.store %acc, %m[%k] : memref<8xf32>
        %l = memref.load %m[%k] : memref<8xf32>
        %n = arith.addf %acc, %l : f32
        scf.yield %n : f32
      }
      memref.store %sum, %part[%c0] : memref<8xf32, strided<[1], offset: 8>>
      cf.br ^next(%sum : f32)
    ^next(%z: f32):
      memref.store %z, %y[%t] : memref<64xf32>)"));
  EXPECT_TRUE(has(clone, "memref.alloca() : memref<8xf64>")) << clone;
  EXPECT_TRUE(has(clone, "memref<8xf64, strided<[1], offset: 8>>"));
  EXPECT_TRUE(has(clone, "-> (f64)"));
}

TEST_F(PromoteKernel, ChoicesOfInputsAndExtremesStay) {
  std::string clone = promote(kernel(R"(
      %less = arith.cmpf olt, %v, %two : f32
      %a = arith.select %less, %u, %v : f32
      %larger = arith.cmpf ogt, %a, %u : f32
      %b = arith.select %larger, %a, %u : f32
      scf.if %less {
        memref.store %b, %y[%t] : memref<64xf32>
      })"));
  EXPECT_TRUE(has(clone, "arith.cmpf olt")) << clone;
  // Of what memory holds that only inputs were written to, too.
  EXPECT_TRUE(has(promote(kernel(R"(
      memref.store %v, %y[%t] : memref<64xf32>
      %o = memref.load %y[%c0] : memref<64xf32>
      %less = arith.cmpf olt, %o, %v : f32
      scf.if %less {
        memref.store %o, %y[%c1] : memref<64xf32>
      })")),
                  "memref<64xf64>"));
}

TEST_F(PromoteKernel, ShufflesReductionsAndAtomicsLower) {
  std::string ptx = lower(kernel(R"(
      %one = arith.constant 1 : i32
      %width = arith.constant 32 : i32
      %other, %valid = gpu.shuffle xor %u, %one, %width : f32
      %all = gpu.all_reduce add %other uniform {} : (f32) -> (f32)
      %old = memref.atomic_rmw addf %all, %y[%c0] : (f32, memref<64xf32>) -> f32)"));
  EXPECT_TRUE(has(ptx, "shfl.sync.bfly")) << ptx;
  EXPECT_TRUE(has(ptx, ".add.f64"));
  EXPECT_FALSE(has(ptx, "add.rn.f32"));
  EXPECT_FALSE(has(ptx, "add.f32"));
}

TEST_F(PromoteKernel, RoundedValuesDecideNothing) {
  expectRefused(R"(
      %k = arith.constant dense_resource<weights> : vector<4xf32>
      %one = vector.extract %k[0] : f32 from vector<4xf32>
      memref.store %one, %y[%t] : memref<64xf32>)",
                "a constant's numbers are not in the text");
  expectRefused(R"(
      %less = arith.cmpf olt, %u, %two : f32
      scf.if %less {
        memref.store %v, %y[%t] : memref<64xf32>
      })",
                "a comparison of rounded values decides");
  expectRefused(R"(
      %less = arith.cmpf olt, %u, %two : f32
      %a = arith.select %less, %v, %two : f32
      memref.store %a, %y[%t] : memref<64xf32>)",
                "a comparison of rounded values decides");
  // By way of memory and of a loop.
  expectRefused(R"(
      memref.store %u, %y[%t] : memref<64xf32>
      %o = memref.load %y[%c0] : memref<64xf32>
      %less = arith.cmpf olt, %o, %v : f32
      scf.if %less {
        memref.store %v, %y[%t] : memref<64xf32>
      })",
                "a comparison of rounded values decides");
  expectRefused(R"(
      %n = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %v) -> (f32) {
        %more = arith.addf %acc, %v : f32
        scf.yield %more : f32
      }
      %less = arith.cmpf olt, %n, %v : f32
      scf.if %less {
        memref.store %v, %y[%t] : memref<64xf32>
      })",
                "a comparison of rounded values decides");
  expectRefused(R"(
      %n = arith.fptosi %u : f32 to i32
      memref.store %n, %i[%t] : memref<64xi32>)",
                "a rounded value goes into arith.fptosi");
  expectRefused(R"(
      %n = math.floor %u : f32
      memref.store %n, %y[%t] : memref<64xf32>)",
                "a rounded value goes into math.floor");
}

TEST_F(PromoteKernel, Refusals) {
  expectRefused(R"(
      %n = arith.bitcast %v : f32 to i32
      memref.store %n, %i[%t] : memref<64xi32>)",
                "arith.bitcast is not cloned");
  expectRefused("memref.store %u, %x[%t] : memref<64xf32>",
                "a buffer is written that the task calls read-only");
  expectRefused(R"(
      %old = memref.atomic_rmw addf %u, %y[%c0] : (f32, memref<64xf32>) -> f32
      memref.store %old, %y[%c1] : memref<64xf32>)",
                "what an atomic operation found in memory is used");
  expectRefused(R"(
      %c = arith.cmpi ult, %t, %c8 : index
      %p = arith.select %c, %x, %y : memref<64xf32>
      %l = memref.load %p[%t] : memref<64xf32>
      memref.store %l, %y[%t] : memref<64xf32>)",
                "arith.select chooses between buffers");
  std::string doubles = with(kernel("%d = arith.extf %u : f32 to f64\n"
                                    "memref.store %d, %i[%t] : memref<64xf64>"),
                             "%i: memref<64xi32>", "%i: memref<64xf64>");
  EXPECT_EQ(promote(doubles), "refused: its results are f64 already");
  std::string shared = with(kernel("memref.store %u, %y[%t] : memref<64xf32>"),
                            "%s: f32) kernel",
                            "%s: f32) workgroup(%g: memref<8192xf32, "
                            "#gpu.address_space<workgroup>>) kernel");
  EXPECT_EQ(promote(shared),
            "refused: in f64 it would have 65536 bytes of static shared "
            "memory, more than 49152");
}

} // namespace
