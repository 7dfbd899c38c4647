// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A spliced module verifies, lowers under every calling convention, and does
// not change again; a record that does not fit leaves the module as it was.
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

#include "mlir/IR/Verifier.h"

using namespace fsr;

namespace {

struct Splice : ModuleTest {
  void expectLowers(mlir::ModuleOp module, llvm::StringRef call) {
    EXPECT_TRUE(succeeded(mlir::verify(module)));
    for (bool bare : {false, true})
      for (int64_t width : {64, 32}) {
        std::string text = lowerToLLVM(module, bare, width);
        EXPECT_NE(text.find(call.str()), std::string::npos)
            << "bare " << bare << " width " << width << "\n"
            << text;
      }
  }

  /// The error of splicing `record` into a fresh module of `text`.
  std::string refusal(llvm::StringRef text,
                      llvm::function_ref<void(Record &)> change) {
    auto module = parse(text);
    KernelSite site = onlySite(*module);
    Record record = recordFor(site);
    change(record);
    std::string before = print(*module);
    std::string message = llvm::toString(splice(site, record));
    EXPECT_EQ(before, print(*module));
    return message;
  }
};

size_t count(llvm::StringRef text, llvm::StringRef what) {
  return text.count(what);
}

TEST_F(Splice, SynchronousLaunch) {
  auto module = parse(matmulModule);
  KernelSite site = onlySite(*module);
  Record record = recordFor(site);
  ASSERT_EQ(llvm::toString(splice(site, record)), "");
  EXPECT_EQ(site.kernel, nullptr);
  ASSERT_EQ(site.launches.size(), 1u);
  mlir::gpu::LaunchFuncOp launch = site.launches[0];
  EXPECT_EQ(launch.getKernelModuleName(), "fsr_0123456789ab");
  EXPECT_EQ(launch.getKernelName(), "fast");
  EXPECT_FALSE(launch.getAsyncToken());
  EXPECT_FALSE(launch.hasClusterSize());
  for (mlir::Type type : launch.getKernelOperands().getTypes())
    EXPECT_TRUE(type.isInteger(64));
  EXPECT_EQ(launch->getAttrOfType<mlir::StringAttr>("fsr.task").getValue(),
            record.taskKey);
  EXPECT_EQ(launch->getAttrOfType<mlir::StringAttr>("fsr.record").getValue(),
            record.id);
  EXPECT_EQ(launch->getAttrOfType<mlir::StringAttr>("fsr.evidence").getValue(),
            nameOf(EvidenceLevel::Measured));
  EXPECT_EQ(
      launch->getAttrOfType<mlir::StringAttr>("fsr.source").getValue().size(),
      64u);
  std::string text = print(*module);
  EXPECT_EQ(text.find("gpu.module"), std::string::npos);
  EXPECT_LT(text.find("gpu.binary"), text.find("func.func"));
  EXPECT_NE(text.find("#nvvm.target<chip = \"sm_90a\">"), std::string::npos);
  expectLowers(*module, "i64 7, i64 3, i64 1, i64 128, i64 1, i64 1, i32 0");
}

TEST_F(Splice, TwiceChangesNothing) {
  auto module = parse(softmaxModule);
  KernelSite site = onlySite(*module);
  ASSERT_EQ(llvm::toString(splice(site, recordFor(site))), "");
  EXPECT_TRUE(findKernels(*module).empty());
}

TEST_F(Splice, ScalarsGoAsTheyAre) {
  auto module = parse(layerNormModule);
  KernelSite site = onlySite(*module);
  ASSERT_EQ(llvm::toString(splice(site, recordFor(site))), "");
  auto types = site.launches[0].getKernelOperands().getTypes();
  ASSERT_EQ(types.size(), 5u);
  EXPECT_TRUE(types[0].isF32());
  EXPECT_TRUE(types[1].isInteger(64));
  EXPECT_TRUE(types[2].isF32());
  EXPECT_TRUE(types[3].isInteger(64)); // The index.
  expectLowers(*module, "@mgpuLaunchKernel");
}

TEST_F(Splice, ScratchSeveralLaunchesAndClusters) {
  auto module = parse(softmaxModule);
  KernelSite site = onlySite(*module);
  Record record = recordFor(site);
  record.plan.scratch = {{"part", 1001, true}, {"other", 0, false}};
  record.plan.launches[0].args = {"a0", "part", "a0.size1"};
  record.plan.launches.push_back(record.plan.launches[0]);
  record.plan.launches[1].args = {"part", "other", "a1"};
  record.plan.launches[1].shape.grid = {8, 1, 1};
  record.plan.launches[1].shape.cluster = {2, 1, 1};
  record.plan.launches[1].shape.sharedBytes = 1024;
  ASSERT_EQ(llvm::toString(splice(site, record)), "");
  ASSERT_EQ(site.launches.size(), 2u);
  std::string text = print(*module);
  EXPECT_EQ(count(text, "gpu.alloc async"), 2u);
  EXPECT_NE(text.find("memref<251xi32>"), std::string::npos);
  EXPECT_EQ(count(text, "gpu.memset async"), 1u);
  EXPECT_EQ(count(text, "gpu.dealloc async"), 2u);
  expectLowers(*module, "@mgpuLaunchClusterKernel(");
  // One stream for all of it, and the memory is freed on it.
  std::string lowered = lowerToLLVM(*module);
  EXPECT_EQ(count(lowered, "call ptr @mgpuStreamCreate"), 1u);
  EXPECT_EQ(count(lowered, "call void @mgpuMemFree"), 2u);
  EXPECT_EQ(count(lowered, "call void @mgpuMemset32"), 1u);
  EXPECT_EQ(count(lowered, "call void @mgpuStreamSynchronize"), 1u);
}

std::string asyncModule() {
  std::string text = with(softmaxModule, "gpu.launch_func @kernels",
                          "%t0 = gpu.wait async\n"
                          "%t1 = gpu.launch_func async [%t0] @kernels");
  return with(text, "return %y", "gpu.wait [%t1]\n return %y");
}

TEST_F(Splice, AsyncTokensStay) {
  for (bool scratch : {false, true}) {
    auto module = parse(asyncModule());
    KernelSite site = onlySite(*module);
    Record record = recordFor(site);
    if (scratch)
      record.plan.scratch = {{"part", 16, false}};
    ASSERT_EQ(llvm::toString(splice(site, record)), "");
    EXPECT_TRUE(site.launches[0].getAsyncToken());
    EXPECT_EQ(site.launches[0].getAsyncDependencies().size(), 1u);
    expectLowers(*module, "@mgpuLaunchKernel");
    EXPECT_EQ(count(lowerToLLVM(*module), "call ptr @mgpuStreamCreate"), 1u);
  }
}

TEST_F(Splice, SeveralDependenciesAreJoined) {
  std::string text = with(asyncModule(), "%t0 = gpu.wait async",
                          "%t0 = gpu.wait async\n%u0 = gpu.wait async");
  text = with(text, "async [%t0] @kernels", "async [%t0, %u0] @kernels");
  auto module = parse(text);
  KernelSite site = onlySite(*module);
  ASSERT_EQ(llvm::toString(splice(site, recordFor(site))), "");
  EXPECT_EQ(site.launches[0].getAsyncDependencies().size(), 1u);
  expectLowers(*module, "@mgpuLaunchKernel");
}

TEST_F(Splice, OffsetIsAdded) {
  auto module = parse(R"mlir(
module attributes {gpu.container_module} {
  gpu.module @m {
    gpu.func @k(%x: memref<8xf32, strided<[1], offset: 5>>) kernel {
      gpu.return
    }
  }
  func.func @main(%a: memref<16xf32>) {
    %c1 = arith.constant 1 : index
    %v = memref.subview %a[5] [8] [1]
      : memref<16xf32> to memref<8xf32, strided<[1], offset: 5>>
    gpu.launch_func @m::@k blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1)
      args(%v : memref<8xf32, strided<[1], offset: 5>>)
    return
  }
})mlir");
  KernelSite site = onlySite(*module);
  ASSERT_EQ(llvm::toString(splice(site, recordFor(site))), "");
  EXPECT_NE(print(*module).find("arith.constant 20 : i64"), std::string::npos);
  expectLowers(*module, ", 20\n");
}

TEST_F(Splice, MemorySpaceOne) {
  std::string text = matmulModule;
  for (size_t at = 0; (at = text.find("80xf32>", at)) != std::string::npos;
       at += 9)
    text.replace(at, 7, "80xf32, 1>");
  auto module = parse(text);
  KernelSite site = onlySite(*module);
  ASSERT_EQ(llvm::toString(splice(site, recordFor(site))), "");
  EXPECT_NE(lowerToLLVM(*module).find("@mgpuLaunchKernel"), std::string::npos);
}

/// Two copies of one kernel under two names, launched once each.
std::string twoKernels() {
  std::string text = matmulModule;
  size_t from = text.find("gpu.func"), to = text.find("  }\n  func.func");
  std::string kernel = with(text.substr(from, to - from), "@matmul", "@again");
  text.insert(to, kernel);
  from = text.find("gpu.launch_func"), to = text.find("return\n  }\n}", from);
  std::string launch = with(text.substr(from, to - from), "@matmul", "@again");
  text.insert(to, launch);
  return text;
}

TEST_F(Splice, PlanSpeaksTheRecordsNames) {
  auto module = parse(matmulModule);
  KernelSite site = onlySite(*module);
  Record record = recordFor(site);
  // The record's names are this module's, in another order.
  record.argumentNames = {"a2", "left", "a0"};
  record.plan.launches[0].args = {"a0", "left", "a2"};
  mlir::Value operands[3];
  for (unsigned i = 0; i < 3; ++i)
    operands[i] = site.launches[0].getKernelOperand(i);
  ASSERT_EQ(llvm::toString(splice(site, record)), "");
  for (unsigned i = 0; i < 3; ++i)
    EXPECT_EQ(site.launches[0]
                  .getKernelOperand(i)
                  .getDefiningOp()
                  ->getOperand(0)
                  .getDefiningOp()
                  ->getOperand(0),
              operands[2 - i]);
}

TEST_F(Splice, OtherKernelsStay) {
  auto module = parse(twoKernels());
  std::vector<KernelSite> sites = findKernels(*module);
  ASSERT_EQ(sites.size(), 2u);
  ASSERT_EQ(llvm::toString(splice(sites[0], recordFor(sites[0]))), "");
  KernelSite left = onlySite(*module);
  EXPECT_EQ(left.name, "again");
  EXPECT_EQ(left.whyNot, "");
  // Of width 32 the stock pipeline does not even lower the original.
  for (bool bare : {false, true})
    EXPECT_NE(lowerToLLVM(*module, bare).find("@mgpuLaunchKernel"),
              std::string::npos);
}

TEST_F(Splice, IdenticalKernelsShareOneBinary) {
  auto module = parse(twoKernels());
  std::vector<KernelSite> sites = findKernels(*module);
  Record record = recordFor(sites[0]);
  for (KernelSite &site : sites)
    ASSERT_EQ(llvm::toString(splice(site, record)), "");
  std::string text = print(*module);
  EXPECT_EQ(count(text, "gpu.binary"), 1u);
  EXPECT_EQ(count(text, "gpu.module"), 0u);
  EXPECT_EQ(count(text, "gpu.launch_func"), 2u);
  expectLowers(*module, "@mgpuLaunchKernel");
}

TEST_F(Splice, TakenSymbolGetsMoreDigits) {
  auto module = parse(with(matmulModule, "func.func @main",
                           "func.func private @fsr_0123456789ab()\n"
                           "func.func @main"));
  KernelSite site = onlySite(*module);
  ASSERT_EQ(llvm::toString(splice(site, recordFor(site))), "");
  EXPECT_EQ(site.launches[0].getKernelModuleName(), "fsr_0123456789abc");
}

TEST_F(Splice, RefusesWhatDoesNotFit) {
  std::string front = "record 0123456789ab for kernel matmul: ";
  auto no = [&](llvm::function_ref<void(Record &)> change) {
    std::string message = refusal(matmulModule, change);
    EXPECT_EQ(message.find(front), 0u) << message;
    return message.substr(std::min(front.size(), message.size()));
  };
  EXPECT_EQ(no([](Record &r) {
              r.taskKey = std::string(64, 'f');
            }).find("it is for the task ffffffffffff, the kernel is "),
            0u);
  EXPECT_EQ(no([](Record &r) { r.argumentNames.pop_back(); }),
            "it is for 2 arguments, the kernel has 3");
  EXPECT_EQ(no([](Record &r) { r.argumentNames[1] = "a0"; }),
            "argument name 'a0' is there twice or cannot be used");
  EXPECT_EQ(no([](Record &r) { r.chip = "sm_80"; }),
            "it was built for sm_80, the target is sm_90");
  EXPECT_EQ(no([](Record &r) {
              r.fatbin = "\x7f"
                         "ELF";
            }),
            "its binary is no fat binary");
  EXPECT_EQ(no([](Record &r) { r.plan.launches.clear(); }),
            "its plan has no launch");
  EXPECT_EQ(no([](Record &r) { r.plan.launches[0].kernel = "slow"; }),
            "its plan launches 'slow', which its binary does not hold");
  EXPECT_EQ(no([](Record &r) { r.plan.launches[0].args.push_back("q"); }),
            "launch of 'fast': it passes 'q', which is no argument of the "
            "kernel, size or scratch buffer");
  EXPECT_EQ(no([](Record &r) { r.plan.launches[0].shape.grid[1] = 70000; }),
            "launch of 'fast': a grid size is 70000, wanted 1 to 65535");
  EXPECT_EQ(no([](Record &r) { r.plan.launches[0].shape.block[1] = 0; }),
            "launch of 'fast': a block size is 0, wanted 1 to 1024");
  EXPECT_EQ(no([](Record &r) { r.plan.launches[0].shape.block[1] = 16; }),
            "launch of 'fast': a block has 2048 threads, at most 1024 fit");
  EXPECT_EQ(no([](Record &r) { r.plan.launches[0].shape.cluster[0] = 2; }),
            "launch of 'fast': a cluster size is 2, wanted a divisor of the "
            "grid up to 8");
  EXPECT_NE(no([](Record &r) {
              r.plan.launches[0].shape.sharedBytes = int64_t(1) << 40;
            }).find("bytes of dynamic and 0 of static shared memory"),
            std::string::npos);
  EXPECT_EQ(no([](Record &r) { r.plan.scratch = {{"a0", 4, false}}; }),
            "scratch buffer 'a0' has a name that is taken or cannot be used");
  EXPECT_EQ(no([](Record &r) {
              r.plan.scratch = {{"p", 4, false}, {"p", 4, false}};
            }),
            "two scratch buffers are called 'p'");
  EXPECT_EQ(no([](Record &r) { r.plan.scratch = {{"p", -4, false}}; }),
            "scratch buffer 'p' has -4 bytes");
  EXPECT_EQ(refusal(matmulModule, [](Record &r) { r.id = ""; }),
            "record  for kernel matmul: it has no id");
}

} // namespace
