// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A matrix product in PTX, one thread an output, with the step of its sum left
// open; and the task that it is the original of.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_WORKER_KERNELS_H
#define FSR_TEST_WORKER_KERNELS_H

#include "WorkerHarness.h"

namespace fsr {

constexpr int64_t matmulRows = 32, matmulDepth = 64, matmulColumns = 32;

/// Adds %x * %y to %acc.
constexpr llvm::StringLiteral plainStep = "  fma.rn.f32 %acc, %x, %y, %acc;\n";
/// The sum is held in f16.
constexpr llvm::StringLiteral halfStep = R"(  fma.rn.f32 %acc, %x, %y, %acc;
  cvt.rn.f16.f32 %h, %acc;
  cvt.f32.f16 %acc, %h;
)";
/// The factors are cut to 11 bits, the sum is not.
constexpr llvm::StringLiteral tf32Step = R"(  cvt.rna.tf32.f32 %bits, %x;
  mov.b32 %x, %bits;
  cvt.rna.tf32.f32 %bits, %y;
  mov.b32 %y, %bits;
  fma.rn.f32 %acc, %x, %y, %acc;
)";
/// Two sums that take turns.
constexpr llvm::StringLiteral splitStep =
    R"(  fma.rn.f32 %other, %x, %y, %other;
  mov.f32 %swap, %other;
  mov.f32 %other, %acc;
  mov.f32 %acc, %swap;
)";

inline std::string matmulPtx(llvm::StringRef name, llvm::StringRef step,
                             llvm::StringRef atEnd = "") {
  return (
             R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry )" +
             name + R"((.param .u64 pa, .param .u64 pb, .param .u64 pc) {
  .reg .pred %p;
  .reg .b16 %h;
  .reg .b32 %k, %row, %col, %at, %bits;
  .reg .f32 %x, %y, %acc, %other, %swap;
  .reg .b64 %a, %b, %c, %off;
  ld.param.u64 %a, [pa];
  ld.param.u64 %b, [pb];
  ld.param.u64 %c, [pc];
  mov.u32 %row, %ctaid.y;
  mov.u32 %at, %tid.y;
  mad.lo.u32 %row, %row, 16, %at;
  mov.u32 %col, %ctaid.x;
  mov.u32 %at, %tid.x;
  mad.lo.u32 %col, %col, 16, %at;
  mul.wide.u32 %off, %row, 256;
  add.s64 %a, %a, %off;
  mul.wide.u32 %off, %col, 4;
  add.s64 %b, %b, %off;
  add.s64 %c, %c, %off;
  mul.wide.u32 %off, %row, 128;
  add.s64 %c, %c, %off;
  mov.f32 %acc, 0f00000000;
  mov.f32 %other, 0f00000000;
  mov.u32 %k, 0;
loop:
  ld.global.f32 %x, [%a];
  ld.global.f32 %y, [%b];
)" + step + R"(  add.s64 %a, %a, 4;
  add.s64 %b, %b, 128;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p, %k, 64;
  @%p bra loop;
  add.f32 %acc, %acc, %other;
)" + atEnd + R"(  st.global.f32 [%c], %acc;
  ret;
}
)")
      .str();
}

inline KernelTask matmulTask() {
  KernelTask task = Trying().task;
  task.name = task.reference.entry = "matmul";
  task.reference.abi = ReferenceAbi::BarePointer;
  task.arguments = {bufferArgument("a", ElementType::F32,
                                   {matmulRows, matmulDepth}, Access::Read),
                    bufferArgument("b", ElementType::F32,
                                   {matmulDepth, matmulColumns}, Access::Read),
                    bufferArgument("c", ElementType::F32,
                                   {matmulRows, matmulColumns}, Access::Write)};
  task.launch.grid = {2, 2, 1};
  task.launch.block = {16, 16, 1};
  task.work.accumulation = matmulDepth;
  task.workload[0].fills.assign(3, *FillRecipe::parse("normal(0, 1)"));
  return task;
}

} // namespace fsr

#endif // FSR_TEST_WORKER_KERNELS_H
