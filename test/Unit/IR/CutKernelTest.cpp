// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a task says of its kernel: arguments, facts, work, workload, texts.
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

using namespace fsr;

namespace {

using CutKernel = ModuleTest;

bool hasFact(const KernelTask &task, llvm::StringRef fact) {
  return llvm::is_contained(task.facts, fact);
}

TEST_F(CutKernel, Matmul) {
  KernelTask task = cut(matmulModule);
  EXPECT_EQ(task.name, "matmul");
  EXPECT_EQ(task.target, "sm_90");
  EXPECT_EQ(task.key, keyOf(matmulModule));
  ASSERT_EQ(task.arguments.size(), 3u);
  EXPECT_EQ(task.arguments[0].name, "a0");
  EXPECT_EQ(task.arguments[0].sizes, (std::vector<int64_t>{96, 112}));
  EXPECT_EQ(task.arguments[0].strides, (std::vector<int64_t>{112, 1}));
  EXPECT_EQ(task.arguments[0].access, Access::Read);
  EXPECT_EQ(task.arguments[1].access, Access::Read);
  EXPECT_EQ(task.arguments[2].access, Access::Write);
  EXPECT_EQ(task.arguments[2].alignment, 4);
  EXPECT_EQ(task.launch.grid, (std::array<int64_t, 3>{5, 6, 1}));
  EXPECT_EQ(task.launch.block, (std::array<int64_t, 3>{16, 16, 1}));
  EXPECT_EQ(task.reference.entry, "matmul");
  EXPECT_EQ(task.reference.abi, ReferenceAbi::Descriptor);
  EXPECT_TRUE(task.reference.ptx.empty());
  EXPECT_FALSE(task.fastMath);
  EXPECT_TRUE(hasFact(task, "a0: 96x112 f32, row-major contiguous, offset 0, "
                            "aligned to 4 bytes, only read"));
  EXPECT_TRUE(hasFact(task, "the original runs 5x6x1 blocks of 16x16x1 "
                            "threads"));
  EXPECT_TRUE(hasFact(task, "trip counts of the loops, in order, at most: "
                            "112"));
  EXPECT_TRUE(hasFact(task, "a0 and a1 do not overlap"));

  // Neither says so of itself, and both are only read.
  std::string text = with(matmulModule, "%a: memref<96x112xf32> {llvm.noalias}",
                          "%a: memref<96x112xf32>");
  task = cut(with(text, "%b: memref<112x80xf32> {llvm.noalias}",
                  "%b: memref<112x80xf32>"));
  EXPECT_FALSE(hasFact(task, "a0 and a1 do not overlap"));
  EXPECT_TRUE(hasFact(task, "a0 and a2 do not overlap"));
}

TEST_F(CutKernel, MatmulWork) {
  WorkEstimate work = cut(matmulModule).work;
  EXPECT_DOUBLE_EQ(work.flops, 2.0 * 96 * 80 * 112);
  EXPECT_DOUBLE_EQ(work.bytesRead, 4.0 * (96 * 112 + 112 * 80));
  EXPECT_DOUBLE_EQ(work.bytesWritten, 4.0 * 96 * 80);
  EXPECT_EQ(work.accumulation, 112);
  EXPECT_TRUE(work.exactOnIntegers);
}

TEST_F(CutKernel, SoftmaxWork) {
  KernelTask task = cut(softmaxModule);
  EXPECT_EQ(task.work.accumulation, 128);
  EXPECT_FALSE(task.work.exactOnIntegers);
  EXPECT_TRUE(hasFact(task, "trip counts of the loops, in order, at most: "
                            "128, 128, 4"));
  // A fresh allocation is aligned as it says and overlaps no argument.
  EXPECT_EQ(task.arguments[1].alignment, 64);
  EXPECT_EQ(task.arguments[0].alignment, 4);
  EXPECT_TRUE(hasFact(task, "a0 and a1 do not overlap"));
}

TEST_F(CutKernel, LayerNormScalars) {
  KernelTask task = cut(layerNormModule);
  ASSERT_EQ(task.arguments.size(), 5u);
  EXPECT_EQ(task.arguments[0].constantBits, "3727c5ac");
  EXPECT_EQ(task.arguments[2].constantBits, "3d000000");
  EXPECT_EQ(task.arguments[3].constantBits, "0000000000000020");
  EXPECT_EQ(task.arguments[3].element, ElementType::I64);
  EXPECT_FALSE(task.arguments[1].constantBits);
  EXPECT_FALSE(task.work.exactOnIntegers);
}

TEST_F(CutKernel, WhatIsNotExactOnIntegers) {
  // A division is not exact, nor is a constant that is no small integer, nor
  // more bfloat16 additions than its significand holds.
  EXPECT_FALSE(cut(with(matmulModule, "arith.mulf %x", "arith.divf %x"))
                   .work.exactOnIntegers);
  EXPECT_FALSE(
      cut(with(matmulModule, "arith.constant 0.0", "arith.constant 0.1"))
          .work.exactOnIntegers);
  std::string narrow = matmulModule;
  for (size_t at = 0; (at = narrow.find("f32", at)) != std::string::npos;)
    narrow.replace(at, 3, "bf16");
  EXPECT_FALSE(cut(narrow).work.exactOnIntegers);
}

TEST_F(CutKernel, WhatOnlyMovesAndChooses) {
  EXPECT_FALSE(cut(matmulModule).work.movesOnly);
  std::string text =
      with(matmulModule, "arith.mulf %x, %y", "arith.minimumf %x, %y");
  EXPECT_FALSE(cut(text).work.movesOnly);
  text = with(text, "arith.addf", "arith.maximumf");
  KernelTask task = cut(text);
  EXPECT_TRUE(task.work.movesOnly);
  EXPECT_TRUE(
      hasFact(task, "no operation on floats rounds: results must be equal"));
}

TEST_F(CutKernel, SumsKeptInMemoryCount) {
  std::string text = with(matmulModule, "iter_args(%s = %zero) -> f32 {", "{");
  text = with(text, "%sum = scf.for", "scf.for");
  text = with(text, "arith.addf %s, %xy", "arith.addf %old, %xy");
  text = with(text, "%x = memref.load %a",
              "%old = memref.load %c[%i, %j] : memref<96x80xf32>\n"
              "%x = memref.load %a");
  text = with(text, "scf.yield %t : f32",
              "memref.store %t, %c[%i, %j] : memref<96x80xf32>");
  text = with(text, "memref.store %sum, %c[%i, %j] : memref<96x80xf32>", "");
  KernelTask task = cut(text);
  EXPECT_EQ(task.work.accumulation, 112);
  EXPECT_EQ(task.arguments[2].access, Access::ReadWrite);
}

TEST_F(CutKernel, FastMath) {
  KernelTask task =
      cut(with(matmulModule, "%x, %y : f32", "%x, %y fastmath<arcp> : f32"));
  EXPECT_TRUE(task.fastMath);
  EXPECT_TRUE(hasFact(task, "fast-math flags of the original: arcp"));
  EXPECT_FALSE(
      cut(with(matmulModule, "%x, %y : f32", "%x, %y fastmath<contract> : f32"))
          .fastMath);
  EXPECT_TRUE(cut(with(softmaxModule, "chip = \"sm_90\"",
                       "chip = \"sm_90\", flags = {fast}"))
                  .fastMath);
}

TEST_F(CutKernel, WhereOnlyFiniteInputsAreTried) {
  auto reason = [&](const std::string &text) {
    return cut(text).work.finiteOnly;
  };
  EXPECT_EQ(reason(matmulModule), "");
  EXPECT_EQ(reason(softmaxModule), "");
  EXPECT_EQ(
      reason(with(matmulModule, "%x, %y : f32", "%x, %y fastmath<nnan> : f32")),
      "the original allows fast math");
  const char product[] = "%xy = arith.mulf %x, %y : f32";
  auto instead = [&](const char *ops) {
    return reason(with(matmulModule, product, ops));
  };
  // Element by element a comparison is as good as any other operation.
  EXPECT_EQ(instead("%less = arith.cmpf olt, %x, %y : f32\n"
                    "%xy = arith.select %less, %x, %y : f32"),
            "");
  EXPECT_EQ(instead("%less = arith.cmpf olt, %x, %s : f32\n"
                    "%xy = arith.select %less, %x, %s : f32"),
            "the original keeps one of several floats by comparing them in "
            "turn");
  EXPECT_EQ(instead("%less = arith.cmpf olt, %x, %y : f32\n"
                    "%same = arith.xori %less, %less : i1\n"
                    "%xy = scf.if %same -> f32 { scf.yield %x : f32 } else "
                    "{ scf.yield %y : f32 }"),
            "comparisons of floats decide which way the original goes");
  EXPECT_EQ(instead("%whole = arith.fptosi %x : f32 to i32\n"
                    "%xy = arith.sitofp %whole : i32 to f32"),
            "`arith.fptosi` of the original makes integers of floats");
  EXPECT_EQ(instead("%whole = arith.bitcast %x : f32 to i32\n"
                    "%xy = arith.sitofp %whole : i32 to f32"),
            "`arith.bitcast` of the original makes integers of floats");
  EXPECT_EQ(instead("%xy = llvm.fmul %x, %y : f32"),
            "`llvm.fmul` of the original is not known here");
  std::string finite =
      with(softmaxModule, "%y : memref<64x128xf32>)",
           "%y : memref<64x128xf32>) {fsr.workload = {finite}}");
  KernelTask task = cut(finite);
  EXPECT_EQ(task.work.finiteOnly, "the workload says that inputs are finite");
  EXPECT_EQ(task.key, keyOf(softmaxModule));
  EXPECT_TRUE(hasFact(task, "the workload says that no buffer that is read "
                            "holds a NaN or an infinity"));
}

// However it is written, and by whatever name it is read again.
TEST_F(CutKernel, WhatTheKernelItselfKeepsIsComparedInTurn) {
  const char store[] = "memref.store %sum, %c[%i, %j] : memref<96x80xf32>";
  auto reason = [&](llvm::StringRef load, llvm::StringRef instead) {
    std::string text =
        with(matmulModule, "%xy = arith.mulf %x, %y : f32",
             load.str() + "%less = arith.cmpf olt, %x, %old : f32\n"
                          "%xy = arith.select %less, %x, %old : f32");
    text = with(text, store, instead.str());
    text = with(text, "gpu.func @matmul",
                "func.func private @put(%to: memref<96x80xf32>, %v: f32) {\n"
                "%c0 = arith.constant 0 : index\n"
                "memref.store %v, %to[%c0, %c0] : memref<96x80xf32>\n"
                "return }\ngpu.func @matmul");
    return cut(text).work.finiteOnly;
  };
  const std::string inTurn =
      "the original keeps one of several floats by comparing them in turn";
  const char view[] =
      "%v = memref.subview %c[0, 0] [96, 80] [1, 1] : memref<96x80xf32> to "
      "memref<96x80xf32, strided<[80, 1]>>\n";
  const char plain[] = "%old = memref.load %c[%i, %j] : memref<96x80xf32>\n";
  // %b is read, and nothing else.
  EXPECT_EQ(
      reason("%old = memref.load %b[%p, %i] : memref<112x80xf32>\n", store),
      "");
  EXPECT_EQ(reason(plain, store), inTurn);
  EXPECT_EQ(reason(plain, "%was = memref.atomic_rmw addf %sum, %c[%i, %j] : "
                          "(f32, memref<96x80xf32>) -> f32"),
            inTurn);
  EXPECT_EQ(reason(plain, "affine.store %sum, %c[0, 0] : memref<96x80xf32>"),
            inTurn);
  EXPECT_EQ(reason(plain, "%one = vector.from_elements %sum : vector<1xf32>\n"
                          "vector.store %one, %c[%i, %j] : memref<96x80xf32>, "
                          "vector<1xf32>"),
            inTurn);
  EXPECT_EQ(reason(plain, view + std::string("memref.store %sum, %v[%i, %j] : "
                                             "memref<96x80xf32, "
                                             "strided<[80, 1]>>")),
            inTurn);
  EXPECT_EQ(reason(plain, "func.call @put(%c, %sum) : (memref<96x80xf32>, f32) "
                          "-> ()"),
            inTurn);
  EXPECT_EQ(reason(view + std::string("%old = memref.load %v[%i, %j] : "
                                      "memref<96x80xf32, strided<[80, 1]>>\n"),
                   store),
            inTurn);
}

TEST_F(CutKernel, ArgumentNames) {
  std::string text =
      with(matmulModule, "%c: memref<96x80xf32>) kernel",
           "%c: memref<96x80xf32>) kernel attributes {fsr.arg_names = "
           "[\"left\", \"a1\"]}");
  KernelTask task = cut(text);
  EXPECT_EQ(task.arguments[0].name, "left");
  EXPECT_EQ(task.arguments[2].name, "a2");
  // Two of one name, keywords and words of the plan are not usable.
  for (const char *name : {"a1", "float", "same", "x y", ""})
    EXPECT_EQ(cut(with(text, "left", name)).arguments[0].name, "a0") << name;
}

TEST_F(CutKernel, AccessThroughViewsAndCalls) {
  std::string text = with(
      matmulModule, "memref.store %sum, %c[%i, %j] : memref<96x80xf32>",
      "%v = memref.subview %c[0, 0] [96, 80] [1, 1] : memref<96x80xf32> to "
      "memref<96x80xf32, strided<[80, 1]>>\n"
      "memref.store %sum, %v[%i, %j] : memref<96x80xf32, strided<[80, 1]>>");
  EXPECT_EQ(cut(text).arguments[2].access, Access::Write);
  std::string call =
      with(matmulModule, "memref.store %sum, %c[%i, %j] : memref<96x80xf32>",
           "func.call @put(%c, %sum) : (memref<96x80xf32>, f32) -> ()");
  call = with(call, "gpu.func @matmul",
              "func.func private @put(%to: memref<96x80xf32>, %v: f32) {\n"
              "%c0 = arith.constant 0 : index\n"
              "memref.store %v, %to[%c0, %c0] : memref<96x80xf32>\n"
              "return }\ngpu.func @matmul");
  KernelTask task = cut(call);
  EXPECT_EQ(task.arguments[2].access, Access::Write);
  EXPECT_NE(task.reference.mlir.find("@put"), std::string::npos);
  EXPECT_NE(task.kernelMlir.find("@put"), std::string::npos);
}

TEST_F(CutKernel, EscapedPointerIsReadAndWritten) {
  EXPECT_EQ(cut(with(matmulModule, "gpu.return",
                     "%p = memref.extract_aligned_pointer_as_index %b : "
                     "memref<112x80xf32> -> index\n"
                     "memref.store %zero, %c[%p, %p] : memref<96x80xf32>\n"
                     "gpu.return"))
                .arguments[1]
                .access,
            Access::ReadWrite);
}

TEST_F(CutKernel, AtomicsReadAndWrite) {
  KernelTask task = cut(
      with(matmulModule, "memref.store %sum, %c[%i, %j] : memref<96x80xf32>",
           "%o = memref.atomic_rmw addf %sum, %c[%i, %j] : (f32, "
           "memref<96x80xf32>) -> f32"));
  EXPECT_EQ(task.arguments[2].access, Access::ReadWrite);
  EXPECT_TRUE(task.work.addsAtomically);
  EXPECT_FALSE(cut(matmulModule).work.addsAtomically);
}

TEST_F(CutKernel, AssumedAlignmentAndOffsets) {
  std::string text = with(softmaxModule, "gpu.launch_func",
                          "%x = memref.assume_alignment %s, 32 : "
                          "memref<64x128xf32>\ngpu.launch_func");
  text = with(text, "args(%s :", "args(%x :");
  EXPECT_EQ(cut(text).arguments[0].alignment, 32);

  // An offset of 4 bytes leaves 4 of the 64.
  std::string offset = R"mlir(
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%x: memref<8xf32, strided<[1], offset: 1>>) kernel {
      gpu.return
    }
  }
  func.func @main() {
    %c1 = arith.constant 1 : index
    %a = memref.alloc() {alignment = 64 : i64} : memref<16xf32>
    %v = memref.subview %a[1] [8] [1]
      : memref<16xf32> to memref<8xf32, strided<[1], offset: 1>>
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%v : memref<8xf32, strided<[1], offset: 1>>)
    return
  }
})mlir";
  KernelTask task = cut(offset);
  EXPECT_EQ(task.arguments[0].alignment, 4);
  EXPECT_EQ(task.arguments[0].offset, 1);
  EXPECT_EQ(task.arguments[0].access, Access::None);
}

TEST_F(CutKernel, DefaultWorkload) {
  KernelTask task = cut(layerNormModule);
  ASSERT_EQ(task.workload.size(), 1u);
  ASSERT_EQ(task.workload[0].fills.size(), 5u);
  EXPECT_EQ(task.workload[0].fills[1].print(), "normal(0, 1)");
  EXPECT_EQ(task.workload[0].fills[3].print(), "integers(0, 15)");
}

TEST_F(CutKernel, WorkloadAttribute) {
  std::string func = with(softmaxModule, "%y: memref<64x128xf32>) kernel {",
                          "%y: memref<64x128xf32>) kernel attributes "
                          "{fsr.workload = {a0 = \"uniform(-2, 2)\"}} {");
  EXPECT_EQ(cut(func).workload[0].fills[0].print(), "uniform(-2, 2)");
  EXPECT_EQ(cut(func).workload[0].fills[1].print(), "normal(0, 1)");
  // The launch's own goes first; several cases, each with a weight.
  std::string both =
      with(func, "%y : memref<64x128xf32>)",
           "%y : memref<64x128xf32>) {fsr.workload = [{a0 = \"zeros\"}, "
           "{a0 = \"iota\", case = \"ramp\", weight = 3.0}]}");
  KernelTask task = cut(both);
  ASSERT_EQ(task.workload.size(), 2u);
  EXPECT_EQ(task.workload[0].fills[0].print(), "zeros");
  EXPECT_EQ(task.workload[1].name, "ramp");
  EXPECT_EQ(task.workload[1].weight, 3);
  std::string list =
      with(func, "{a0 = \"uniform(-2, 2)\"}", "[\"zeros\", \"iota\"]");
  EXPECT_EQ(cut(list).workload[0].fills[1].print(), "iota");
}

TEST_F(CutKernel, BadWorkloadIsOneError) {
  auto message = [&](llvm::StringRef attribute) {
    auto module = parse(with(
        softmaxModule, "%y : memref<64x128xf32>)",
        ("%y : memref<64x128xf32>) {fsr.workload = " + attribute + "}").str()));
    auto task = cutKernel(onlySite(*module), "sm_90");
    return task ? std::string("taken") : llvm::toString(task.takeError());
  };
  EXPECT_EQ(message("{b = \"zeros\"}"),
            "kernel softmax: fsr.workload: 'b' is no argument of the kernel, "
            "nor a case's name or positive weight, nor `finite` alone");
  EXPECT_EQ(message("{a0 = 3 : i32}"),
            "kernel softmax: fsr.workload: a0 has no text, wanted a fill such "
            "as \"normal(0, 1)\"");
  EXPECT_EQ(message("[\"zeros\"]"), "kernel softmax: fsr.workload: got 1 "
                                    "fills, wanted 2, one an argument");
  EXPECT_EQ(message("3 : i32"), "kernel softmax: fsr.workload: wanted a "
                                "dictionary of argument names and fills");
  EXPECT_EQ(message("{a0 = \"nonsense(1)\"}")
                .find("kernel softmax: fsr.workload: a0: "),
            0u);
}

TEST_F(CutKernel, ReferenceStandsAlone) {
  std::string text = with(matmulModule, "gpu.func @matmul",
                          "gpu.func @other() kernel { gpu.return }\n"
                          "gpu.func @matmul");
  text = with(text, ") kernel {\n      %c0",
              ") kernel attributes "
              "{fsr.workload = {}} {\n %c0");
  auto module = parse(text);
  KernelTask task = llvm::cantFail(cutKernel(findKernels(*module)[1], "sm_90"));
  EXPECT_EQ(task.reference.mlir.find("@other"), std::string::npos);
  EXPECT_EQ(task.reference.mlir.find("fsr."), std::string::npos);
  auto alone = parse(task.reference.mlir);
  ASSERT_TRUE(alone);
  EXPECT_EQ(onlySite(*alone).name, "matmul");
}

TEST_F(CutKernel, LaunchTextHasTheOperands) {
  std::string text = cut(softmaxModule).launchMlir;
  EXPECT_NE(text.find("gpu.launch_func  @kernels::@softmax"),
            std::string::npos);
  EXPECT_NE(text.find("memref.alloc()"), std::string::npos);
  EXPECT_NE(text.find("arith.constant 64"), std::string::npos);
  EXPECT_EQ(text.find("return"), std::string::npos);
}

TEST_F(CutKernel, TaskSurvivesJson) {
  for (const char *text : {matmulModule, softmaxModule, layerNormModule}) {
    KernelTask task = cut(text), read;
    llvm::json::Path::Root root;
    ASSERT_TRUE(fromJSON(toJSON(task), read, root))
        << llvm::toString(root.getError());
    EXPECT_EQ(toJSON(read), toJSON(task));
  }
}

} // namespace
