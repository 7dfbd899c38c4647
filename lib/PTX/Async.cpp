// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Decode.h for what belongs to this family. Here: which part of it an
// instruction belongs to, fences between proxies, and the forms of the barrier
// of a cluster; Cluster.cpp says what it does.
//
//===----------------------------------------------------------------------===//

#include "Async.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

namespace {

void nothing(Warp &, const Op &, LaneMask) {}

Decoded decodeCluster(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  bool isArrival = instruction.has("arrive"), isWait = instruction.has("wait");
  auto *info = decoder.makeInfo<BarrierInfo>();
  info->isAligned = false;
  for (StringRef modifier : instruction.modifiers) {
    if (modifier == "relaxed" && isArrival)
      info->isRelaxed = true;
    else if (modifier == "aligned")
      info->isAligned = true;
    else if (modifier != "cluster" && modifier != "arrive" &&
             modifier != "wait" && !(modifier == "release" && isArrival) &&
             !(modifier == "acquire" && isWait))
      return decoder.failModifier(modifier);
  }
  if (isArrival == isWait || !decoder.expectOperands(0))
    return decoder.fail("expected .arrive or .wait");
  info->kind = isWait ? BarrierInfo::Kind::ClusterWait
                      : BarrierInfo::Kind::ClusterArrive;
  op.opClass = OpClass::Barrier;
  op.control = Control::Barrier;
  op.info = info;
  return Decoded::Done;
}

/// A fence whose form is this and no other orders as one of the cluster does.
Decoded clusterFence(Decoder &decoder, Op &op,
                     llvm::ArrayRef<StringRef> wanted) {
  if (llvm::ArrayRef<StringRef>(decoder.instruction().modifiers) != wanted ||
      !decoder.expectOperands(0))
    return decoder.fail("fence." + llvm::join(wanted, ".") + " wanted");
  auto *info = decoder.makeInfo<FenceInfo>();
  info->scope = Scope::Cluster;
  op.control = Control::Fence;
  op.info = info;
  return Decoded::Done;
}

/// Proxies are not told apart: copies see what their thread sees.
Decoded decodeFence(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  op.opClass = OpClass::Barrier;
  if (instruction.has("mbarrier_init"))
    return clusterFence(decoder, op, {"mbarrier_init", "release", "cluster"});
  bool isGeneric = instruction.has("async::generic");
  if (isGeneric && instruction.has("acquire"))
    return clusterFence(decoder, op,
                        {"proxy", "async::generic", "acquire",
                         "sync_restrict::shared::cluster", "cluster"});
  if (isGeneric && instruction.has("release"))
    return clusterFence(decoder, op,
                        {"proxy", "async::generic", "release",
                         "sync_restrict::shared::cta", "cluster"});
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
  if ((opcode == "st" || opcode == "red") && instruction.has("async"))
    return decodeRemote(decoder, op);
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
