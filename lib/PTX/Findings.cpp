// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a kernel did wrong: how it is collected, where it happened, what it says
// to people. Of the same fault at the same line the one of the lowest block and
// thread is kept, and of too many lines the first ones, so that what is told of
// a launch that ran to its end does not hang on which host thread came first.
// Where a fault stops the launch, it does: other blocks stop where they are. So
// does which of two threads of a race is the second.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace fsr::ptx {

VirtualGpu::~VirtualGpu() = default;

llvm::StringRef nameOf(FindingKind kind) {
  switch (kind) {
  case FindingKind::OutOfBounds:
    return "out of bounds";
  case FindingKind::Misaligned:
    return "misaligned";
  case FindingKind::Uninitialized:
    return "uninitialized";
  case FindingKind::WriteToConst:
    return "write to read-only memory";
  case FindingKind::SharedRace:
    return "shared memory race";
  case FindingKind::GlobalRace:
    return "global memory race";
  case FindingKind::UnorderedMessage:
    return "unordered message";
  case FindingKind::BarrierDivergence:
    return "barrier divergence";
  case FindingKind::BarrierMismatch:
    return "barrier mismatch";
  case FindingKind::Deadlock:
    return "deadlock";
  case FindingKind::FinishedBlock:
    return "finished block";
  case FindingKind::AsyncInFlight:
    return "asynchronous copy in flight";
  case FindingKind::ShuffleMask:
    return "lane mask";
  case FindingKind::Budget:
    return "instruction budget";
  case FindingKind::Trap:
    return "trap";
  case FindingKind::Assert:
    return "assertion";
  case FindingKind::BadJump:
    return "bad jump";
  case FindingKind::StackOverflow:
    return "stack overflow";
  case FindingKind::Other:
    return "fault";
  }
  llvm_unreachable("unknown kind of finding");
}

llvm::StringRef nameOf(BlockOrder order) {
  switch (order) {
  case BlockOrder::OfSchedule:
    return "of-schedule";
  case BlockOrder::Descending:
    return "descending";
  case BlockOrder::Random:
    return "random";
  }
  llvm_unreachable("unknown order");
}

llvm::StringRef nameOf(Schedule schedule) {
  switch (schedule) {
  case Schedule::Lockstep:
    return "lockstep";
  case Schedule::SplitLanes:
    return "split-lanes";
  case Schedule::RandomWarps:
    return "random-warps";
  }
  llvm_unreachable("unknown schedule");
}

std::string Finding::text() const {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << nameOf(kind);
  if (!file.empty())
    os << " at " << file << ":" << line;
  else if (!kernel.empty())
    os << " in " << kernel;
  if (!inlined.empty())
    os << " [" << inlined << "]";
  if (ptxLine) {
    os << " (PTX line " << ptxLine;
    if (!ptxText.empty())
      os << " `" << ptxText << "`";
    os << ")";
  }
  auto triple = [&](const std::array<unsigned, 3> &of) {
    os << "(" << of[0] << "," << of[1] << "," << of[2] << ")";
  };
  os << ": " << message << "; block ";
  triple(block);
  os << ", thread ";
  triple(thread);
  if (count > 1)
    os << ", " << count << " times";
  return result;
}

Counters &Counters::operator+=(const Counters &other) {
  uint64_t Counters::*const members[] = {&Counters::warpInstructions,
                                         &Counters::laneInstructions,
                                         &Counters::integer,
                                         &Counters::float16,
                                         &Counters::float32,
                                         &Counters::float64,
                                         &Counters::special,
                                         &Counters::conversion,
                                         &Counters::control,
                                         &Counters::memory,
                                         &Counters::barrier,
                                         &Counters::shuffle,
                                         &Counters::tensor,
                                         &Counters::atomic,
                                         &Counters::flops16,
                                         &Counters::flops32,
                                         &Counters::flops64,
                                         &Counters::tensorFlops,
                                         &Counters::globalLoadBytes,
                                         &Counters::globalStoreBytes,
                                         &Counters::sharedLoadBytes,
                                         &Counters::sharedStoreBytes,
                                         &Counters::localLoadBytes,
                                         &Counters::localStoreBytes,
                                         &Counters::globalRequests,
                                         &Counters::globalSectors,
                                         &Counters::uniqueSectors,
                                         &Counters::sharedRequests,
                                         &Counters::bankCycles,
                                         &Counters::branches,
                                         &Counters::divergentBranches,
                                         &Counters::atomicSerial};
  static_assert(sizeof(members) / sizeof(members[0]) * sizeof(uint64_t) ==
                    sizeof(Counters),
                "a counter is not summed");
  for (uint64_t Counters::*member : members)
    this->*member += other.*member;
  return *this;
}

//===----------------------------------------------------------------------===//
// FindingSink
//===----------------------------------------------------------------------===//

static auto orderOf(const Finding &finding) {
  auto reversed = [](const std::array<unsigned, 3> &of) {
    return std::array<unsigned, 3>{of[2], of[1], of[0]};
  };
  return std::make_tuple(reversed(finding.block), reversed(finding.thread),
                         finding.ptxLine);
}

/// The same for all findings that are told as one.
static auto placeOf(const Finding &finding) {
  return std::make_tuple(finding.file,
                         finding.file.empty() ? finding.ptxLine : finding.line,
                         unsigned(finding.kind), finding.kernel);
}

void FindingSink::add(Finding finding, bool isRemark) {
  std::lock_guard<std::mutex> held(lock);
  std::vector<Finding> &to = isRemark ? remarks : findings;
  for (Finding &known : to) {
    // Loops that a compiler unrolls are many instructions of one line.
    if (placeOf(known) != placeOf(finding))
      continue;
    uint64_t count = known.count + finding.count;
    if (orderOf(finding) < orderOf(known))
      known = std::move(finding);
    known.count = count;
    return;
  }
  if (to.size() < most) {
    to.push_back(std::move(finding));
    return;
  }
  auto last = std::max_element(to.begin(), to.end(),
                               [](const Finding &a, const Finding &b) {
                                 return placeOf(a) < placeOf(b);
                               });
  if (last != to.end() && placeOf(finding) < placeOf(*last))
    *last = std::move(finding);
}

/// By place, since the order they came in depends on the host's threads.
static std::vector<Finding> sorted(std::vector<Finding> findings) {
  llvm::sort(findings, [](const Finding &a, const Finding &b) {
    return std::make_tuple(a.ptxLine, unsigned(a.kind), a.kernel) <
           std::make_tuple(b.ptxLine, unsigned(b.kind), b.kernel);
  });
  return findings;
}

std::vector<Finding> FindingSink::takeFindings() {
  std::lock_guard<std::mutex> held(lock);
  return sorted(std::move(findings));
}

std::vector<Finding> FindingSink::takeRemarks() {
  std::lock_guard<std::mutex> held(lock);
  return sorted(std::move(remarks));
}

//===----------------------------------------------------------------------===//
// Warp: where it happened
//===----------------------------------------------------------------------===//

std::array<unsigned, 3> Warp::threadOf(unsigned lane) const {
  const std::array<unsigned, 3> &size = block->launch->shape.block;
  unsigned linear = threadIndex(lane);
  return {linear % size[0], linear / size[0] % size[1],
          linear / (size[0] * size[1])};
}

void setPlace(Finding &finding, const Program &program, uint32_t source) {
  if (source >= program.function->code.size())
    return;
  const Module &module = *program.module;
  const Instruction &from = program.function->code[source];
  finding.ptxLine = from.location.line;
  finding.ptxText = module.lineText(from.location.line).take_front(200).str();
  if (!from.siteFile || from.siteFile >= module.files.size())
    return;
  finding.file = module.files[from.siteFile];
  finding.line = from.siteLine;
  if (from.siteFile != from.file && from.file < module.files.size())
    finding.inlined = module.files[from.file] + ":" + std::to_string(from.line);
}

static Finding makeFinding(const Warp &warp, const Op &op, unsigned lane,
                           FindingKind kind, uint64_t address,
                           const llvm::Twine &message) {
  Finding finding;
  finding.kind = kind;
  finding.address = address;
  finding.message = message.str();
  finding.block = warp.block->index;
  finding.thread = warp.threadOf(lane);
  finding.kernel = warp.block->launch->program->function->name;
  if (warp.frame)
    setPlace(finding, *warp.frame->program, op.source);
  return finding;
}

void Warp::report(const Op &op, unsigned lane, FindingKind kind,
                  uint64_t address, const llvm::Twine &message) {
  block->launch->findings->add(
      makeFinding(*this, op, lane, kind, address, message));
}

void Warp::fatal(const Op &op, unsigned lane, FindingKind kind,
                 uint64_t address, const llvm::Twine &message) {
  report(op, lane, kind, address, message);
  block->launch->findings->stop();
}

void Warp::remark(const Op &op, unsigned lane, FindingKind kind,
                  uint64_t address, const llvm::Twine &message) {
  block->launch->findings->add(
      makeFinding(*this, op, lane, kind, address, message), true);
}

/// Only the first is told.
static void note(Warp &warp, const Op &op, const llvm::Twine &why,
                 std::atomic<bool> &isNoted, std::string &text) {
  if (isNoted.exchange(true))
    return;
  Finding at = makeFinding(warp, op, 0, FindingKind::Other, 0, why);
  std::lock_guard<std::mutex> held(warp.block->launch->lock);
  llvm::raw_string_ostream os(text);
  if (!at.file.empty())
    os << at.file << ":" << at.line << " ";
  os << "(PTX line " << at.ptxLine << " `" << at.ptxText
     << "`): " << at.message;
}

void Warp::breakProof(const Op &op, const llvm::Twine &why) {
  Launch &launch = *block->launch;
  note(*this, op, why, launch.isProofBroken, launch.proofBroken);
}

void Warp::doubtShadow(const Op &op, const llvm::Twine &why) {
  Launch &launch = *block->launch;
  note(*this, op, why, launch.isShadowDoubted, launch.shadowDoubt);
}

} // namespace fsr::ptx
