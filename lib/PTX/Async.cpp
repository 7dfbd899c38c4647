// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Decode.h for what belongs to this family. Here: which part of it an
// instruction belongs to, fences between proxies, and the barrier of a cluster,
// which has one block.
//
//===----------------------------------------------------------------------===//

#include "Async.h"

#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

void nothing(Warp &, const Op &, LaneMask) {}

/// What is released at the barrier of the cluster; no variable lies there.
constexpr uint64_t clusterPlace = sharedWindow + windowBytes - 8;

void arriveCluster(Warp &warp, const Op &op, LaneMask active) {
  BlockAsync &async = asyncOf(warp);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest), thread = warp.threadIndex(lane);
    if (async.clusterArrivals[thread] != async.clusterWaits[thread]) {
      warp.fatal(op, lane, FindingKind::BarrierMismatch, 0,
                 "arrives twice without a wait between");
      return;
    }
    ++async.clusterArrivals[thread];
  }
  if (warp.checksRaces)
    publishAt(warp, active, clusterPlace, Scope::Cluster, op.immediate,
              /*isUpdate=*/true);
}

void waitCluster(Warp &warp, const Op &op, LaneMask active) {
  BlockAsync &async = asyncOf(warp);
  uint64_t least = ~uint64_t(0);
  for (const auto &one : warp.block->warps)
    for (LaneMask rest = one->existing & ~one->exited; rest; rest &= rest - 1)
      least = std::min(
          least, async.clusterArrivals[one->threadIndex(__builtin_ctz(rest))]);
  LaneMask passed = 0;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest), thread = warp.threadIndex(lane);
    uint64_t arrivals = async.clusterArrivals[thread];
    if (arrivals == async.clusterWaits[thread]) {
      warp.fatal(op, lane, FindingKind::BarrierMismatch, 0,
                 "waits without having arrived");
      return;
    }
    if (least < arrivals) {
      warp.mustWait |= LaneMask(1) << lane;
      continue;
    }
    ++async.clusterWaits[thread];
    passed |= LaneMask(1) << lane;
  }
  if (passed && warp.checksRaces)
    learnAt(warp, passed, clusterPlace, Scope::Cluster, /*isOrdering=*/true,
            /*isUpdate=*/false);
}

Decoded decodeCluster(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  bool isArrival = instruction.has("arrive"), isWait = instruction.has("wait");
  op.immediate = 1;
  for (StringRef modifier : instruction.modifiers) {
    if (modifier == "relaxed" && isArrival)
      op.immediate = 0;
    else if (modifier != "cluster" && modifier != "arrive" &&
             modifier != "wait" && modifier != "aligned" &&
             !(modifier == "release" && isArrival) &&
             !(modifier == "acquire" && isWait))
      return decoder.failModifier(modifier);
  }
  if (isArrival == isWait || !decoder.expectOperands(0))
    return decoder.fail("expected .arrive or .wait");
  for (unsigned size : decoder.owner().requiredCluster)
    if (size > 1)
      return decoder.fail("clusters of several blocks are not supported");
  op.opClass = OpClass::Barrier;
  op.control = isWait ? Control::Wait : Control::Plain;
  op.run = isWait ? waitCluster : arriveCluster;
  return Decoded::Done;
}

/// Proxies are not told apart: copies see what their thread sees.
Decoded decodeFence(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  op.opClass = OpClass::Barrier;
  if (instruction.has("mbarrier_init")) {
    static constexpr StringRef wanted[] = {"mbarrier_init", "release",
                                           "cluster"};
    if (llvm::ArrayRef<StringRef>(instruction.modifiers) !=
            llvm::ArrayRef<StringRef>(wanted) ||
        !decoder.expectOperands(0))
      return decoder.fail("fence.mbarrier_init.release.cluster wanted");
    auto *info = decoder.makeInfo<FenceInfo>();
    info->scope = Scope::Cluster;
    op.control = Control::Fence;
    op.info = info;
    return Decoded::Done;
  }
  for (StringRef modifier : instruction.modifiers) {
    bool isKnown =
        llvm::StringSwitch<bool>(modifier)
            .Cases({"proxy", "async", "async::generic"}, true)
            .Cases({"async.global", "async.shared::cta"}, true)
            .Cases({"global", "shared::cta", "shared::cluster"}, true)
            .Case("alias", true)
            .Default(false);
    if (!isKnown)
      return decoder.failModifier(modifier);
  }
  if (!decoder.expectOperands(0))
    return Decoded::Failed;
  op.run = nothing;
  return Decoded::Done;
}

} // namespace

Decoded decodeAsync(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  StringRef opcode = instruction.opcode;
  if (opcode == "mbarrier")
    return decodeMbarrier(decoder, op);
  if (opcode == "cp" && instruction.has("reduce"))
    return decoder.fail("copies that reduce are not supported");
  if (opcode == "cp" && instruction.has("bulk"))
    return decodeBulk(decoder, op);
  if (opcode == "cp" && instruction.has("mbarrier"))
    return decodeCopyArrival(decoder, op);
  if (opcode == "barrier" && instruction.has("cluster"))
    return decodeCluster(decoder, op);
  if (opcode == "fence" &&
      (instruction.has("proxy") || instruction.has("mbarrier_init")))
    return decodeFence(decoder, op);
  if (opcode == "wgmma" || opcode == "tcgen05")
    return decoder.fail(
        "instructions of several warps' tensor cores are not supported");
  if (opcode == "tensormap")
    return decoder.fail("tensor maps are not supported");
  return Decoded::NotMine;
}

} // namespace fsr::ptx
