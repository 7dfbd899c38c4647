// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The PTX of the kernels, and the tasks that they are the original of.
//
//===----------------------------------------------------------------------===//

#include "Kernels.h"

#include "fsr/Support/Hash.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>

namespace fsr::study {

namespace {

/// %one is 1 and %nil is 0: the grid is flat.
constexpr const char *head = R"(.version 6.3
.target sm_75
.address_size 64
.visible .entry k(PARAMETERS) {
  .reg .pred %p;
  .reg .b32 %i, %j, %n, %step, %one, %nil, %w<4>;
  .reg .f32 %a, %f, %g;
  .reg .b64 %x, %y, %from, %to, %off;
  ld.param.u64 %x, [px];
  cvta.to.global.u64 %x, %x;
LOADY
  mov.u32 %one, %nctaid.y;
  mov.u32 %nil, %nctaid.z;
  sub.u32 %nil, %nil, 1;
  mov.u32 %i, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %j, %tid.x;
  mad.lo.u32 %i, %i, %n, %j;
  mov.u32 %step, %nctaid.x;
  mul.lo.u32 %step, %step, %n;
  mul.lo.u32 %n, %one, ITERATIONS;
)";

constexpr const char *computeBody = R"(  mul.wide.u32 %off, %i, 4;
  add.s64 %from, %x, %off;
  add.s64 %to, %y, %off;
  ld.global.u32 %w0, [%from];
  cvt.rn.f32.s32 %a, %w0;
  cvt.rn.f32.u32 %f, %one;
  cvt.rn.f32.u32 %g, %nil;
loop:
  fma.rn.f32 %a, %a, %f, %g;
  sub.u32 %n, %n, 1;
  setp.ne.u32 %p, %n, 0;
  @%p bra loop;
  cvt.rzi.s32.f32 %w0, %a;
  st.global.u32 [%to], %w0;
  ret;
}
)";

constexpr const char *memoryBody = R"(loop:
  setp.ge.u32 %p, %i, %n;
  @%p bra done;
  rem.u32 %j, %i, BLOCKS;
  mul.wide.u32 %off, %j, 16;
  add.s64 %from, %x, %off;
  add.s64 %to, %y, %off;
  ld.global.v4.u32 {%w0, %w1, %w2, %w3}, [%from];
  add.u32 %w0, %w0, %nil;
  add.u32 %w1, %w1, %nil;
  add.u32 %w2, %w2, %nil;
  add.u32 %w3, %w3, %nil;
  st.global.v4.u32 [%to], {%w0, %w1, %w2, %w3};
  add.u32 %i, %i, %step;
  bra loop;
done:
  ret;
}
)";

constexpr const char *emptyBody = R"(  ret;
}
)";

void replaceIn(std::string &text, llvm::StringRef from, llvm::StringRef to) {
  size_t at = text.find(from.str());
  if (at != std::string::npos)
    text.replace(at, from.size(), to.str());
}

} // namespace

llvm::StringRef nameOf(Kind kind) {
  switch (kind) {
  case Kind::Compute:
    return "compute";
  case Kind::Memory:
    return "memory";
  case Kind::Empty:
    return "empty";
  }
  llvm_unreachable("a kind of kernel without a name");
}

int64_t Kernel::blocks() const {
  return multiprocessors * (kind == Kind::Memory ? 8 : 4);
}

int64_t Kernel::elements() const {
  if (kind != Kind::Memory)
    return blocks() * threadsPerBlock;
  return 4 * std::clamp<int64_t>(sizedFor, 1, mostBlocks);
}

std::string Kernel::ptx() const {
  std::string text = head;
  text += kind == Kind::Compute  ? computeBody
          : kind == Kind::Memory ? memoryBody
                                 : emptyBody;
  replaceIn(text, "PARAMETERS",
            inPlace ? ".param .u64 px" : ".param .u64 px, .param .u64 py");
  replaceIn(text, "LOADY",
            inPlace ? "  mov.u64 %y, %x;"
                    : "  ld.param.u64 %y, [py];\n"
                      "  cvta.to.global.u64 %y, %y;");
  replaceIn(text, "ITERATIONS", std::to_string(iterations));
  replaceIn(text, "BLOCKS", std::to_string(elements() / 4));
  return text;
}

KernelTask Kernel::task() const {
  KernelTask task;
  task.name = nameOf(kind).str();
  task.key = sha256(ptx());
  task.target = "sm_90";
  task.reference.entry = "k";
  task.reference.abi = ReferenceAbi::BarePointer;
  for (const char *name : {"x", "y"}) {
    Argument argument;
    argument.name = name;
    argument.element = ElementType::I32;
    argument.isBuffer = true;
    argument.sizes = {elements()};
    argument.strides = {1};
    argument.alignment = 16;
    argument.access = inPlace                        ? Access::ReadWrite
                      : llvm::StringRef(name) == "x" ? Access::Read
                                                     : Access::Write;
    task.arguments.push_back(argument);
    if (inPlace)
      break;
  }
  task.launch.grid = {blocks(), 1, 1};
  task.launch.block = {threadsPerBlock, 1, 1};
  task.work.exactOnIntegers = true;
  WorkloadCase one;
  one.name = "static";
  FillRecipe recipe;
  recipe.family = "integers";
  recipe.parameters = {0, 1000};
  one.fills.assign(task.arguments.size(), recipe);
  task.workload = {one};
  return task;
}

ResolvedPlan Kernel::plan() const {
  ResolvedLaunch launch;
  launch.kernel = "k";
  launch.args = {"x"};
  if (!inPlace)
    launch.args.push_back("y");
  launch.shape.grid = {blocks(), 1, 1};
  launch.shape.block = {threadsPerBlock, 1, 1};
  ResolvedPlan plan;
  plan.launches = {launch};
  return plan;
}

} // namespace fsr::study
