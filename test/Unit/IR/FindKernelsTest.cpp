// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which kernels are found, and the sentence for each one that is not taken.
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

using namespace fsr;

namespace {

using FindKernels = ModuleTest;

/// A module with one kernel `@k`; the pieces are put in as text.
std::string small(llvm::StringRef parameters, llvm::StringRef operands,
                  llvm::StringRef body = "", llvm::StringRef beside = "",
                  llvm::StringRef host = "") {
  std::string text = R"mlir(
module attributes {gpu.container_module} {
  gpu.module @m {
    BESIDE
    gpu.func @k(PARAMETERS) kernel {
      BODY
      gpu.return
    }
  }
  func.func @main(HOST) {
    %c1 = arith.constant 1 : index
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(OPERANDS)
    return
  }
}
)mlir";
  text = with(text, "BESIDE", beside);
  text = with(text, "PARAMETERS", parameters);
  text = with(text, "BODY", body);
  text = with(text, "HOST", host.empty() ? operands : host);
  return with(text, operands.empty() ? "args(OPERANDS)" : "OPERANDS", operands);
}

std::string oneArgument(llvm::StringRef type) {
  return small(("%x: " + type).str(), ("%p : " + type).str());
}

TEST_F(FindKernels, TakesTheSharedModules) {
  for (const char *text : {matmulModule, softmaxModule, layerNormModule})
    EXPECT_EQ(whyNot(text), "");
}

TEST_F(FindKernels, TakesEveryConstantScalar) {
  for (const char *type : {"i1", "i8", "i16", "i32", "i64", "index", "f16",
                           "bf16", "f32", "f64"}) {
    std::string value = type[0] == 'i' ? "1" : "1.5";
    if (llvm::StringRef(type) == "i1")
      value = "true";
    std::string constant =
        (llvm::Twine("%p = arith.constant ") + value +
         (value == "true" ? llvm::Twine() : llvm::Twine(" : ") + type) + "\n")
            .str();
    std::string text = with(small((llvm::Twine("%x: ") + type).str(),
                                  (llvm::Twine("%p : ") + type).str(), "", "",
                                  "%unused : i32"),
                            "%c1 = arith.constant 1 : index",
                            (constant + "%c1 = arith.constant 1 : index"));
    EXPECT_EQ(whyNot(text), "") << type;
    // Proved for no value but those that were checked.
    EXPECT_EQ(whyNot(oneArgument(type)),
              "its argument a0 is a scalar that is no constant at the launch")
        << type;
  }
}

TEST_F(FindKernels, TakesStridedBuffers) {
  for (const char *type :
       {"memref<f32>", "memref<4x8xf16>", "memref<4x8xf32, 1>",
        "memref<4x8xf32, #gpu.address_space<global>>",
        "memref<4x8xf32, strided<[16, 1], offset: 4>>"})
    EXPECT_EQ(whyNot(oneArgument(type)), "") << type;
}

TEST_F(FindKernels, NamesArgumentsThatAreNotTaken) {
  std::pair<const char *, const char *> cases[] = {
      {"memref<?xf32>", "its argument a0 has a dynamic size"},
      {"memref<*xf32>",
       "its argument a0 is an unranked memref, which has no fixed ABI"},
      {"memref<4xf32, strided<[?]>>",
       "its argument a0 has a dynamic stride or offset"},
      {"memref<4xf32, strided<[1], offset: ?>>",
       "its argument a0 has a dynamic stride or offset"},
      {"memref<4xf32, 3>", "its argument a0 is not in global memory"},
      {"memref<4xindex>", "its argument a0 holds index elements, whose width "
                          "a later lowering decides"},
      {"memref<4xcomplex<f32>>", "its argument a0 has elements of the type "
                                 "complex<f32>, which is not supported"},
      {"memref<4xvector<4xf32>>", "its argument a0 has elements of the type "
                                  "vector<4xf32>, which is not supported"},
      {"memref<0xf32>", "its argument a0 is empty"},
      {"memref<4x4xf32, strided<[0, 1]>>",
       "its argument a0 has a layout that runs backwards or reaches an element "
       "twice"},
      {"vector<4xf32>",
       "its argument a0 has the type vector<4xf32>; scalars are integers of 1 "
       "to 64 bits, index, f16, bf16, f32 and f64"},
      {"i7", "its argument a0 has the type i7; scalars are integers of 1 to 64 "
             "bits, index, f16, bf16, f32 and f64"}};
  for (auto [type, sentence] : cases)
    EXPECT_EQ(whyNot(oneArgument(type)), sentence) << type;
}

TEST_F(FindKernels, TooManyArguments) {
  std::string parameters, operands;
  for (int i = 0; i < 257; ++i) {
    std::string comma = i ? ", " : "";
    parameters += comma + "%x" + std::to_string(i) + ": i32";
    operands += comma + "%p" + std::to_string(i) + " : i32";
  }
  EXPECT_EQ(whyNot(small(parameters, operands)),
            "it has 257 arguments; at most 256 are supported");
}

TEST_F(FindKernels, NamesWhatTheBodyMustNotDo) {
  std::string helper = "func.func private @helper(i32)";
  std::string indirect = "%f = func.constant @there : () -> ()\n"
                         "func.call_indirect %f() : () -> ()";
  std::string there = "func.func @there() { return }";
  std::string global = "memref.global @state : memref<4xf32>";
  struct Case {
    std::string body, beside, sentence;
  } cases[] = {
      {"gpu.printf \"x\\n\"", "",
       "it prints, and a rewrite would have to print the same"},
      {"%t = arith.constant true\ncf.assert %t, \"no\"", "",
       "it asserts, and a rewrite would have to stop in the same cases"},
      {"%z = llvm.mlir.constant(0 : i64) : i64\n"
       "%p = llvm.inttoptr %z : i64 to !llvm.ptr",
       "", "it makes a pointer from an integer, so what it touches is unknown"},
      {"%z = arith.constant 0 : i32\nfunc.call @helper(%z) : (i32) -> ()",
       helper, "it calls 'helper', which has no body"},
      {indirect, there, "it calls a function that is only known at run time"},
      {"%g = memref.get_global @state : memref<4xf32>", global,
       "it uses the global 'state', whose value outlives a launch"},
      {"%c1 = arith.constant 1 : index\n"
       "gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1) "
       "threads(%g, %h, %i) in (%j = %c1, %l = %c1, %n = %c1) "
       "{ gpu.terminator }",
       "", "it launches another kernel"}};
  for (const Case &each : cases) {
    auto module = parse(small("", "", each.body, each.beside));
    ASSERT_TRUE(module);
    EXPECT_EQ(findKernels(*module).front().whyNot, each.sentence);
  }
}

TEST_F(FindKernels, UnregisteredOperation) {
  context.allowUnregisteredDialects();
  EXPECT_EQ(whyNot(small("", "", "\"my.op\"() : () -> ()")),
            "it has the unregistered operation 'my.op'");
}

TEST_F(FindKernels, TakesCalleesConstantsAndSharedMemory) {
  EXPECT_EQ(whyNot(small("", "", "func.call @f() : () -> ()",
                         "func.func private @f() { return }")),
            "");
  EXPECT_EQ(whyNot(small("", "", "%g = memref.get_global @t : memref<2xf32>",
                         "memref.global constant @t : memref<2xf32> = "
                         "dense<[1.0, 2.0]>")),
            "");
  EXPECT_EQ(whyNot(with(small("", ""), ") kernel",
                        ") workgroup(%s: memref<4xf32, 3>) kernel")),
            "");
}

TEST_F(FindKernels, StaticAndDynamicSharedMemory) {
  std::string text = small("", "",
                           "%d = gpu.dynamic_shared_memory : memref<?xi8, "
                           "#gpu.address_space<workgroup>>");
  EXPECT_EQ(whyNot(text), "");
  EXPECT_EQ(whyNot(with(text, ") kernel",
                        ") workgroup(%s: memref<4xf32, 3>) kernel")),
            "it has both static and dynamic shared memory, which overlap when "
            "MLIR 22 lowers them");
}

TEST_F(FindKernels, NamesLaunchesThatAreNotTaken) {
  EXPECT_EQ(whyNot(with(small("", "", "", "", "%c1 : index"),
                        "%c1 = arith.constant 1 : index", "")),
            "its grid, block, cluster or dynamic shared memory size is not a "
            "constant at the launch");
  std::string zero = with(small("", ""), "blocks in (%c1, %c1, %c1)",
                          "blocks in (%c1, %c0, %c1)");
  zero = with(zero, "%c1 = arith.constant 1 : index",
              "%c1 = arith.constant 1 : index\n"
              "%c0 = arith.constant 0 : index");
  EXPECT_EQ(whyNot(zero), "its launch has no blocks");
  std::string none = with(zero, "(%c1, %c0, %c1)", "(%c1, %c1, %c1)");
  none = with(none, "threads in (%c1, %c1, %c1)", "threads in (%c1, %c1, %c0)");
  EXPECT_EQ(whyNot(none), "its launch has no threads");
  std::string cluster =
      with(zero, "blocks in (%c1, %c0, %c1)",
           "clusters in (%c0, %c1, %c1) blocks in (%c1, %c1, %c1)");
  EXPECT_EQ(whyNot(cluster), "its launch has an empty cluster");
  EXPECT_EQ(whyNot(with(cluster, "clusters in (%c0,", "clusters in (%c1,")),
            "");
  std::string stream =
      with(small("", "", "", "", "%s : !llvm.ptr"), "gpu.launch_func @m",
           "gpu.launch_func <%s : !llvm.ptr> @m");
  EXPECT_EQ(whyNot(stream), "its launch runs on a stream object, which is a "
                            "form of lowered code");
}

TEST_F(FindKernels, CountsLaunches) {
  std::string text = small("", "");
  size_t from = text.find("gpu.launch_func"), to = text.find("return\n", from);
  std::string launch = text.substr(from, to - from);
  EXPECT_EQ(whyNot(with(text, launch, "")),
            "nothing in the module launches it");
  EXPECT_EQ(whyNot(with(text, launch, launch + launch)),
            "it is launched from 2 places; a kernel with one launch is taken");
  std::string fallback = launch + " {fsr.fallback}\n";
  EXPECT_EQ(whyNot(with(text, launch, fallback)),
            "it is the fallback of a kernel that was replaced");
}

TEST_F(FindKernels, OtherReferences) {
  EXPECT_EQ(whyNot(with(small("", ""), "return\n  }\n}",
                        "func.call @other() {kept = @m::@k} : () -> ()\n"
                        "return\n}\nfunc.func private @other()\n}")),
            "something other than its launch refers to it: 'func.call'");
}

TEST_F(FindKernels, LoweredKernel) {
  EXPECT_EQ(whyNot(R"mlir(
module attributes {gpu.container_module} {
  gpu.module @m {
    llvm.func @k() attributes {gpu.kernel, nvvm.kernel} { llvm.return }
  }
})mlir"),
            "it is an llvm.func already; run FSR before convert-gpu-to-nvvm");
}

TEST_F(FindKernels, LaunchThatIsNotOutlined) {
  auto module = parse(R"mlir(
func.func @main() {
  %c1 = arith.constant 1 : index
  gpu.launch blocks(%a, %b, %c) in (%d = %c1, %e = %c1, %f = %c1)
      threads(%g, %h, %i) in (%j = %c1, %k = %c1, %l = %c1) {
    gpu.terminator
  }
  return
})mlir");
  KernelSite site = onlySite(*module);
  EXPECT_EQ(site.name, "main_kernel");
  EXPECT_EQ(site.whyNot, "it is a gpu.launch; run gpu-kernel-outlining first");
  EXPECT_FALSE(site.gpuModule);
}

TEST_F(FindKernels, TargetComesFromOptionThenModule) {
  auto module = parse(softmaxModule);
  KernelSite site = onlySite(*module);
  EXPECT_EQ(llvm::cantFail(targetOf(site, "")), "sm_90");
  EXPECT_EQ(llvm::cantFail(targetOf(site, "sm_80")), "sm_80");
  auto wrong = targetOf(site, "ninety");
  EXPECT_FALSE(bool(wrong));
  llvm::consumeError(wrong.takeError());
  auto without = parse(matmulModule);
  EXPECT_EQ(llvm::cantFail(targetOf(onlySite(*without), "")), "");
}

} // namespace
