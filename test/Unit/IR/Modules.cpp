// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The shared modules, small enough to read, and the helpers around them.
//
//===----------------------------------------------------------------------===//

#include "Modules.h"

#include "mlir/Dialect/GPU/Pipelines/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

using namespace mlir;

namespace fsr {

const char *const matmulModule = R"mlir(
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @matmul(%a: memref<96x112xf32>, %b: memref<112x80xf32>,
                     %c: memref<96x80xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %m = arith.constant 96 : index
      %n = arith.constant 80 : index
      %k = arith.constant 112 : index
      %zero = arith.constant 0.0 : f32
      %bx = gpu.block_id x
      %by = gpu.block_id y
      %dx = gpu.block_dim x
      %dy = gpu.block_dim y
      %tx = gpu.thread_id x
      %ty = gpu.thread_id y
      %jb = arith.muli %bx, %dx : index
      %j = arith.addi %jb, %tx : index
      %ib = arith.muli %by, %dy : index
      %i = arith.addi %ib, %ty : index
      %inI = arith.cmpi slt, %i, %m : index
      %inJ = arith.cmpi slt, %j, %n : index
      %in = arith.andi %inI, %inJ : i1
      scf.if %in {
        %sum = scf.for %p = %c0 to %k step %c1 iter_args(%s = %zero) -> f32 {
          %x = memref.load %a[%i, %p] : memref<96x112xf32>
          %y = memref.load %b[%p, %j] : memref<112x80xf32>
          %xy = arith.mulf %x, %y : f32
          %t = arith.addf %s, %xy : f32
          scf.yield %t : f32
        }
        memref.store %sum, %c[%i, %j] : memref<96x80xf32>
      }
      gpu.return
    }
  }
  func.func @main(%a: memref<96x112xf32> {llvm.noalias},
                  %b: memref<112x80xf32> {llvm.noalias},
                  %c: memref<96x80xf32> {llvm.noalias}) {
    %c1 = arith.constant 1 : index
    %c5 = arith.constant 5 : index
    %c6 = arith.constant 6 : index
    %c16 = arith.constant 16 : index
    gpu.launch_func @kernels::@matmul blocks in (%c5, %c6, %c1)
        threads in (%c16, %c16, %c1)
        args(%a : memref<96x112xf32>, %b : memref<112x80xf32>,
             %c : memref<96x80xf32>)
    return
  }
}
)mlir";

const char *const softmaxModule = R"mlir(
module attributes {gpu.container_module} {
  gpu.module @kernels [#nvvm.target<chip = "sm_90">] {
    gpu.func @softmax(%x: memref<64x128xf32>, %y: memref<64x128xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant 128 : index
      %zero = arith.constant 0.0 : f32
      %low = arith.constant 0xFF800000 : f32
      %row = gpu.block_id x
      %max = scf.for %j = %c0 to %n step %c1 iter_args(%m = %low) -> f32 {
        %v = memref.load %x[%row, %j] : memref<64x128xf32>
        %w = arith.maximumf %m, %v : f32
        scf.yield %w : f32
      }
      %sum = scf.for %j = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 {
        %v = memref.load %x[%row, %j] : memref<64x128xf32>
        %d = arith.subf %v, %max : f32
        %e = math.exp %d : f32
        %t = arith.addf %s, %e : f32
        scf.yield %t : f32
      }
      %tid = gpu.thread_id x
      %step = gpu.block_dim x
      scf.for %j = %tid to %n step %step {
        %v = memref.load %x[%row, %j] : memref<64x128xf32>
        %d = arith.subf %v, %max : f32
        %e = math.exp %d : f32
        %q = arith.divf %e, %sum : f32
        memref.store %q, %y[%row, %j] : memref<64x128xf32>
      }
      gpu.return
    }
  }
  func.func @main(%s: memref<64x128xf32>) -> memref<64x128xf32> {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %y = memref.alloc() {alignment = 64 : i64} : memref<64x128xf32>
    gpu.launch_func @kernels::@softmax blocks in (%c64, %c1, %c1)
        threads in (%c32, %c1, %c1)
        args(%s : memref<64x128xf32>, %y : memref<64x128xf32>)
    return %y : memref<64x128xf32>
  }
}
)mlir";

const char *const layerNormModule = R"mlir(
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @layer_norm(%eps: f32, %x: memref<64x32xf32>, %inverse: f32,
                         %n: index, %y: memref<64x32xf32>) kernel {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      %row = gpu.block_id x
      %sum, %squares = scf.for %j = %c0 to %n step %c1
          iter_args(%s = %zero, %q = %zero) -> (f32, f32) {
        %v = memref.load %x[%row, %j] : memref<64x32xf32>
        %s1 = arith.addf %s, %v : f32
        %vv = arith.mulf %v, %v : f32
        %q1 = arith.addf %q, %vv : f32
        scf.yield %s1, %q1 : f32, f32
      }
      %mean = arith.mulf %sum, %inverse : f32
      %mean2 = arith.mulf %mean, %mean : f32
      %square = arith.mulf %squares, %inverse : f32
      %variance = arith.subf %square, %mean2 : f32
      %shifted = arith.addf %variance, %eps : f32
      %scale = math.rsqrt %shifted : f32
      %tid = gpu.thread_id x
      %v = memref.load %x[%row, %tid] : memref<64x32xf32>
      %d = arith.subf %v, %mean : f32
      %r = arith.mulf %d, %scale : f32
      memref.store %r, %y[%row, %tid] : memref<64x32xf32>
      gpu.return
    }
  }
  func.func @main(%x: memref<64x32xf32> {llvm.noalias},
                  %y: memref<64x32xf32> {llvm.noalias}) {
    %c1 = arith.constant 1 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %eps = arith.constant 1.000000e-05 : f32
    %inverse = arith.constant 3.125000e-02 : f32
    gpu.launch_func @kernels::@layer_norm blocks in (%c64, %c1, %c1)
        threads in (%c32, %c1, %c1)
        args(%eps : f32, %x : memref<64x32xf32>, %inverse : f32, %c32 : index,
             %y : memref<64x32xf32>)
    return
  }
}
)mlir";

std::string with(std::string text, llvm::StringRef from, llvm::StringRef to) {
  size_t at = text.find(from.str());
  EXPECT_NE(at, std::string::npos) << "not in the module: " << from.str();
  if (at != std::string::npos)
    text.replace(at, from.size(), to.str());
  return text;
}

ModuleTest::ModuleTest() {
  DialectRegistry registry;
  registerAllDialects(registry);
  registerAllExtensions(registry);
  registerAllToLLVMIRTranslations(registry);
  context.appendDialectRegistry(registry);
  DialectRegistry ours;
  insertSpliceDialects(ours);
  for (llvm::StringRef name : ours.getDialectNames())
    context.getOrLoadDialect(name);
}

OwningOpRef<ModuleOp> ModuleTest::parse(llvm::StringRef text) {
  auto module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text.str();
  return module;
}

KernelSite ModuleTest::onlySite(ModuleOp module) {
  std::vector<KernelSite> sites = findKernels(module);
  EXPECT_EQ(sites.size(), 1u);
  return sites.empty() ? KernelSite() : sites.front();
}

std::string ModuleTest::whyNot(llvm::StringRef text) {
  auto module = parse(text);
  return module ? onlySite(*module).whyNot : "does not parse";
}

std::string ModuleTest::keyOf(llvm::StringRef text, llvm::StringRef target) {
  auto module = parse(text);
  if (!module)
    return "does not parse";
  auto key = kernelKey(findKernels(*module).front(), target);
  EXPECT_TRUE(bool(key));
  return key ? *key : llvm::toString(key.takeError());
}

KernelTask ModuleTest::cut(llvm::StringRef text) {
  auto module = parse(text);
  auto task = cutKernel(onlySite(*module), "sm_90");
  if (!task) {
    ADD_FAILURE() << llvm::toString(task.takeError());
    return {};
  }
  return std::move(*task);
}

Record ModuleTest::recordFor(const KernelSite &site) {
  KernelTask task = llvm::cantFail(cutKernel(site, "sm_90"));
  Record record;
  record.id =
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  record.taskKey = task.key;
  record.target = "sm_90";
  record.chip = "sm_90a";
  record.kernelName = task.name;
  for (const Argument &argument : task.arguments)
    record.argumentNames.push_back(argument.name);
  record.candidate.source = "extern \"C\" __global__ void fast() {}";
  record.fatbin = "\x50\xed\x55\xba the rest";
  record.evidence.level = EvidenceLevel::Measured;
  KernelResources resources;
  resources.kernel = "fast";
  record.resources.push_back(resources);
  ResolvedLaunch launch;
  launch.kernel = "fast";
  launch.shape.grid = {7, 3, 1};
  launch.shape.block = {128, 1, 1};
  launch.args = candidateAbiNames(task);
  record.plan.launches.push_back(launch);
  return record;
}

std::string ModuleTest::print(Operation *op) {
  std::string text;
  llvm::raw_string_ostream(text) << *op;
  return text;
}

std::string ModuleTest::lowerToLLVM(ModuleOp module, bool barePointers,
                                    int64_t indexWidth) {
  std::string problems;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    problems += diagnostic.str() + "\n";
    return success();
  });
  if (failed(verify(module)))
    return "failed: " + problems;
  OwningOpRef<ModuleOp> copy(module.clone());
  gpu::GPUToNVVMPipelineOptions options;
  options.cubinChip = "sm_90";
  options.cubinFeatures = "";
  options.cubinFormat = "isa";
  options.hostUseBarePtrCallConv = barePointers;
  options.kernelUseBarePtrCallConv = barePointers;
  options.indexBitWidth = indexWidth;
  PassManager manager(&context);
  gpu::buildLowerToNVVMPassPipeline(manager, options);
  if (failed(manager.run(*copy)))
    return "failed: " + problems;
  llvm::LLVMContext llvmContext;
  std::unique_ptr<llvm::Module> lowered =
      translateModuleToLLVMIR(*copy, llvmContext);
  if (!lowered)
    return "failed: " + problems;
  std::string text;
  llvm::raw_string_ostream stream(text);
  lowered->print(stream, nullptr);
  return text;
}

} // namespace fsr
