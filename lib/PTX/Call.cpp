// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Calls: a frame for each, parameters copied from the caller's local memory to
// the callee's and results back, with what is known of each byte. Also the
// functions that CUDA gives: printf, assertions, malloc and free.
//
//===----------------------------------------------------------------------===//

#include "DeviceHeap.h"
#include "Engine.h"
#include "Printf.h"
#include "Shadow.h"

#include "llvm/ADT/StringExtras.h"

#include <cstring>

namespace fsr::ptx {

static constexpr unsigned mostDepth = 1000;
/// Of local memory a lane; a GPU's limit.
static constexpr uint64_t mostLocalBytes = 512 << 10;
static constexpr size_t mostOutput = 1 << 20;

static unsigned firstLane(LaneMask lanes) { return __builtin_ctz(lanes); }

bool WarpRun::call(size_t at, const Op &op) {
  const auto &info = *static_cast<const CallInfo *>(op.info);
  if (info.builtin != CallInfo::Builtin::None) {
    callBuiltin(groups[at], op, info);
    ++groups[at].pc;
    return !run_.launch.findings->isStopped();
  }
  const Program *callee = info.callee;
  if (!callee) {
    Slot slot = op.operand(0);
    splitByValue(at, slot, true);
    unsigned lane = firstLane(groups[at].mask);
    if (warp.tracksTaint && (warp.taint(slot) & groups[at].mask))
      warp.breakProof(op,
                      "which function is called depends on buffer contents");
    uint64_t address = warp.lanes<uint64_t>(slot)[lane];
    uint64_t number = (address - firstFunctionAddress) / functionStride;
    if (address < firstFunctionAddress || address % functionStride ||
        number >= run_.functions.byAddress.size() ||
        !run_.functions.byAddress[number]) {
      warp.fatal(op, lane, FindingKind::BadJump, address,
                 "calls 0x" + llvm::utohexstr(address, true) +
                     ", where no function is");
      return false;
    }
    callee = run_.functions.byAddress[number];
    uint64_t frameBytes = groups[at].frame->program->frame.localBytes;
    auto fits = [&](const std::vector<uint32_t> &offsets,
                    llvm::ArrayRef<Variable> declared) {
      if (offsets.size() != declared.size())
        return false;
      for (size_t i = 0; i < offsets.size(); ++i)
        if (declared[i].space == Space::Generic ||
            (offsets[i] != CallInfo::ignored &&
             offsets[i] + declared[i].bytes > frameBytes))
          return false;
      return true;
    };
    if (!fits(info.argumentOffsets, callee->function->parameters) ||
        !fits(info.resultOffsets, callee->function->results)) {
      warp.fatal(op, lane, FindingKind::BadJump, address,
                 callee->function->name +
                     " does not take the parameters that the call gives");
      return false;
    }
  }
  Group &group = groups[at];
  Frame &from = *group.frame;
  unsigned lane = firstLane(group.mask);
  uint64_t base = from.localBase + from.program->frame.localBytes;
  if (from.depth + 1 >= mostDepth ||
      base + callee->frame.localBytes > mostLocalBytes) {
    warp.fatal(op, lane, FindingKind::StackOverflow, 0,
               "calls nested " + llvm::Twine(from.depth + 1) + " deep with " +
                   llvm::Twine(base) + " bytes of local memory; at most " +
                   llvm::Twine(mostDepth) + " deep and " +
                   llvm::Twine(mostLocalBytes) + " bytes are allowed");
    return false;
  }
  std::shared_ptr<Frame> frame = enter(*callee, group.mask, base);
  frame->caller = group.frame;
  frame->returnTo = group.pc + 1;
  frame->call = &op;
  frame->depth = from.depth + 1;
  for (size_t i = 0; i < callee->parameters.size(); ++i) {
    uint64_t to = base + callee->frame.offsets.lookup(
                             callee->function->parameters[i].name);
    uint64_t source = from.localBase + info.argumentOffsets[i];
    for (LaneMask rest = group.mask; rest; rest &= rest - 1) {
      unsigned one = firstLane(rest);
      std::memcpy(localMemory.data(one) + to, localMemory.data(one) + source,
                  callee->parameters[i].bytes);
      std::memcpy(localMemory.state(one) + to, localMemory.state(one) + source,
                  callee->parameters[i].bytes);
      if (shadow)
        shadow->local.copy(ShadowRegisters::localKey(one, to),
                           ShadowRegisters::localKey(one, source),
                           callee->parameters[i].bytes);
    }
  }
  group.frame = std::move(frame);
  group.pc = 0;
  return false;
}

void WarpRun::returnFrom(size_t at) {
  Group &group = groups[at];
  std::shared_ptr<Frame> frame = group.frame, caller = frame->caller;
  const auto &info = *static_cast<const CallInfo *>(frame->call->info);
  const Program &callee = *frame->program;
  for (size_t i = 0; i < callee.results.size(); ++i) {
    if (info.resultOffsets[i] == CallInfo::ignored)
      continue;
    uint64_t from = frame->localBase + callee.frame.offsets.lookup(
                                           callee.function->results[i].name);
    uint64_t to = caller->localBase + info.resultOffsets[i];
    for (LaneMask rest = group.mask; rest; rest &= rest - 1) {
      unsigned one = firstLane(rest);
      std::memcpy(localMemory.data(one) + to, localMemory.data(one) + from,
                  callee.results[i].bytes);
      std::memcpy(localMemory.state(one) + to, localMemory.state(one) + from,
                  callee.results[i].bytes);
      if (shadow)
        shadow->local.copy(ShadowRegisters::localKey(one, to),
                           ShadowRegisters::localKey(one, from),
                           callee.results[i].bytes);
    }
  }
  group.pc = frame->returnTo;
  group.frame = std::move(caller);
}

//===----------------------------------------------------------------------===//
// What CUDA gives
//===----------------------------------------------------------------------===//

bool WarpRun::readGeneric(uint64_t address, unsigned lane, void *to,
                          size_t bytes) {
  auto from = [&](const uint8_t *data, uint64_t size, uint64_t offset) {
    if (offset > size || bytes > size - offset)
      return false;
    std::memcpy(to, data + offset, bytes);
    return true;
  };
  if (address - localWindow < windowBytes)
    return from(localMemory.data(lane), localMemory.size(),
                address - localWindow);
  if (address - sharedWindow < windowBytes) {
    Region &region = run_.block.shared.region();
    return from(region.data, region.bytes, address - sharedWindow);
  }
  if (address - paramWindow < windowBytes) {
    const Region &region = run_.launch.params;
    return from(region.data, region.bytes, address - paramWindow);
  }
  const Region *region = run_.launch.memory->find(address);
  return region && from(region->data, region->bytes, address - region->address);
}

std::string WarpRun::readText(uint64_t address, unsigned lane, size_t most) {
  std::string text;
  char c = 0;
  while (text.size() < most &&
         readGeneric(address + text.size(), lane, &c, 1) && c)
    text += c;
  return text;
}

static uint64_t argument(LocalMemory &local, const Frame &frame,
                         const CallInfo &info, unsigned lane, unsigned index,
                         unsigned bytes) {
  uint64_t value = 0;
  uint64_t offset = frame.localBase + info.argumentOffsets[index];
  std::memcpy(&value, local.data(lane) + offset, bytes);
  return value;
}

void WarpRun::callBuiltin(Group &group, const Op &op, const CallInfo &info) {
  Frame &frame = *group.frame;
  Launch &launch = run_.launch;
  auto setResult = [&](unsigned lane, uint64_t value, unsigned bytes) {
    if (info.resultOffsets.empty() ||
        info.resultOffsets[0] == CallInfo::ignored)
      return;
    uint64_t offset = frame.localBase + info.resultOffsets[0];
    std::memcpy(localMemory.data(lane) + offset, &value, bytes);
    std::memset(localMemory.state(lane) + offset, Written, bytes);
  };
  for (LaneMask rest = group.mask; rest; rest &= rest - 1) {
    unsigned lane = firstLane(rest);
    switch (info.builtin) {
    case CallInfo::Builtin::None:
      llvm_unreachable("not one of CUDA's");
    case CallInfo::Builtin::Vprintf: {
      uint64_t format = argument(localMemory, frame, info, lane, 0, 8);
      uint64_t values = argument(localMemory, frame, info, lane, 1, 8);
      std::string text = formatPrintf(
          readText(format, lane, 64 << 10),
          [&](uint64_t offset, void *to, size_t bytes) {
            return readGeneric(values + offset, lane, to, bytes);
          },
          [&](uint64_t address) { return readText(address, lane, 64 << 10); });
      std::lock_guard<std::mutex> held(launch.lock);
      if (launch.output.size() + text.size() <= mostOutput)
        launch.output += text;
      setResult(lane, text.size(), 4);
      break;
    }
    case CallInfo::Builtin::AssertFail: {
      auto text = [&](unsigned index) {
        return readText(argument(localMemory, frame, info, lane, index, 8),
                        lane, 4096);
      };
      warp.fatal(
          op, lane, FindingKind::Assert, 0,
          "assertion `" + text(0) + "` failed in " + text(3) + " at " +
              text(1) + ":" +
              llvm::Twine(argument(localMemory, frame, info, lane, 2, 4)));
      break;
    }
    case CallInfo::Builtin::Malloc: {
      uint64_t bytes = argument(localMemory, frame, info, lane, 0, 8);
      uint64_t address = launch.heap ? launch.heap->allocate(bytes) : 0;
      setResult(lane, address, 8);
      if (warp.tracksTaint)
        warp.breakProof(op, "an address that malloc gives depends on the order "
                            "of threads");
      break;
    }
    case CallInfo::Builtin::Free: {
      uint64_t address = argument(localMemory, frame, info, lane, 0, 8);
      if (address && !(launch.heap && launch.heap->release(address)))
        warp.report(op, lane, FindingKind::OutOfBounds, address,
                    "free of what malloc did not give");
      break;
    }
    }
  }
}

} // namespace fsr::ptx
