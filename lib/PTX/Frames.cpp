// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The registers and local variables of a call: taken from those that nobody
// uses any more where possible, filled with what does not change in a thread's
// life.
//
//===----------------------------------------------------------------------===//

#include "Engine.h"

#include <cstring>

namespace fsr::ptx {

static unsigned firstLane(LaneMask lanes) { return __builtin_ctz(lanes); }

std::shared_ptr<Frame> WarpRun::enter(const Program &program, LaneMask lanes,
                                      uint64_t localBase) {
  std::shared_ptr<Frame> frame;
  for (size_t i = 0; i < spareFrames.size(); ++i) {
    if (spareFrames[i].use_count() != 1)
      continue;
    frame = spareFrames[i];
    if (frame->program == &program)
      break;
  }
  if (!frame) {
    frame = std::make_shared<Frame>();
    spareFrames.push_back(frame);
  }
  bool isSame = frame->program == &program;
  frame->program = &program;
  frame->caller.reset();
  frame->returnTo = 0;
  frame->call = nullptr;
  frame->depth = 0;
  if (!isSame)
    frame->registers.assign(size_t(program.numSlots) * slotBytes, 0);
  frame->taint.assign(program.numSlots + 2, 0);
  frame->written.assign(program.numSlots + 2, allLanes);
  for (auto [slot, number] : program.trackedRegisters)
    frame->written[slot] = 0;
  frame->localBase = localBase;
  uint64_t bytes = program.frame.localBytes;
  if (bytes) {
    if (localMemory.size() < localBase + bytes)
      localMemory.grow(localBase + bytes);
    for (LaneMask rest = lanes; rest; rest &= rest - 1)
      std::memset(localMemory.state(firstLane(rest)) + localBase, 0, bytes);
  }
  fillSpecials(*frame);
  return frame;
}

void WarpRun::fillSpecials(Frame &frame) {
  const Launch &launch = run_.launch;
  const LaunchShapeOf &shape = launch.shape;
  const Block &block = run_.block;
  for (const SpecialSlot &special : frame.program->specials) {
    uint8_t *to = frame.registers.data() + size_t(special.slot) * slotBytes;
    auto fill = [&](auto valueOf) {
      for (unsigned lane = 0; lane < warpLanes; ++lane) {
        uint64_t value = valueOf(lane);
        if (special.width == 64)
          std::memcpy(to + lane * 8, &value, 8);
        else
          std::memcpy(to + lane * 4, &value, 4);
      }
    };
    auto all = [&](uint64_t value) { fill([&](unsigned) { return value; }); };
    llvm::StringRef name = special.name;
    if (name.empty()) {
      all(frame.localBase + special.offset);
      continue;
    }
    unsigned axis = 3;
    if (name.size() > 2 && name[name.size() - 2] == '.') {
      axis = llvm::StringRef("xyzw").find(name.back());
      name = name.drop_back(2);
    }
    auto component = [&](const std::array<unsigned, 3> &of, unsigned past) {
      all(axis < 3 ? of[axis] : past);
    };
    std::array<unsigned, 3> cluster = shape.cluster, clusters, clusterId,
                            inCluster;
    for (unsigned i = 0; i < 3; ++i) {
      clusters[i] = shape.grid[i] / cluster[i];
      clusterId[i] = block.index[i] / cluster[i];
      inCluster[i] = block.index[i] % cluster[i];
    }
    if (name == "%tid")
      fill([&](unsigned lane) -> uint64_t {
        return axis < 3 ? warp.threadOf(lane)[axis] : 0;
      });
    else if (name == "%ntid")
      component(shape.block, 0);
    else if (name == "%ctaid")
      component(block.index, 0);
    else if (name == "%nctaid")
      component(shape.grid, 0);
    else if (name == "%clusterid")
      component(clusterId, 0);
    else if (name == "%nclusterid")
      component(clusters, 0);
    else if (name == "%cluster_ctaid")
      component(inCluster, 0);
    else if (name == "%cluster_nctaid")
      component(cluster, 0);
    else if (name == "%laneid")
      fill([](unsigned lane) -> uint64_t { return lane; });
    else if (name == "%warpid") {
      all(warp.index);
      // A GPU may have it otherwise, even from one look to the next.
      frame.taint[special.slot] = allLanes;
    } else if (name == "%nwarpid")
      all(64);
    else if (name == "%nsmid")
      all(launch.numMultiprocessors);
    else if (name == "%gridid")
      all(launch.number);
    else if (name == "%lanemask_eq")
      fill([](unsigned lane) { return uint64_t(1) << lane; });
    else if (name == "%lanemask_lt")
      fill([](unsigned lane) { return (uint64_t(1) << lane) - 1; });
    else if (name == "%lanemask_le")
      fill([](unsigned lane) { return (uint64_t(2) << lane) - 1; });
    else if (name == "%lanemask_gt")
      fill([](unsigned lane) { return uint64_t(~((2ull << lane) - 1)); });
    else if (name == "%lanemask_ge")
      fill([](unsigned lane) { return uint64_t(~((1ull << lane) - 1)); });
    else if (name == "%cluster_ctarank")
      all(inCluster[0] +
          cluster[0] * (inCluster[1] + uint64_t(cluster[1]) * inCluster[2]));
    else if (name == "%cluster_nctarank")
      all(uint64_t(cluster[0]) * cluster[1] * cluster[2]);
    else if (name == "%is_explicit_cluster")
      std::memset(to, launch.isExplicitCluster ? 0xff : 0, sizeof(LaneMask));
    else if (name == "%dynamic_smem_size")
      all(shape.sharedBytes);
    else if (name == "%total_smem_size" || name == "%aggr_smem_size")
      all(shape.sharedBytes + launch.program->sharedBytes);
    else if (name == "%reserved_smem_offset_1")
      all(run_.reservedShared());
    else if (name == "%envreg1")
      all(launch.gridWorkspace >> 32);
    else if (name == "%envreg2")
      all(uint32_t(launch.gridWorkspace));
    else
      all(0);
  }
}

void WarpRun::reset(LaneMask existing, uint64_t seed) {
  warp.existing = existing;
  warp.exited = 0;
  warp.clusterArrived = warp.clusterOwed = 0;
  warp.mustWait = 0;
  warp.executed = warp.changes = 0;
  spin = Spin();
  warp.tracksTaint = run_.launch.options.trackTaint;
  warp.checksRaces = run_.launch.options.checkRaces;
  random = Random(seed);
  turn = 0;
  isRunnable = true;
  lastExit = nullptr;
  groups.clear();
  if (!existing)
    return; // Not one of those that were chosen.
  groups.emplace_back();
  groups[0].mask = existing;
  groups[0].frame = enter(*run_.launch.program, existing, 0);
  warp.frame = groups[0].frame.get();
}

void WarpRun::load(const Group &group) {
  Frame &frame = *group.frame;
  warp.frame = &frame;
  warp.bases[0] = frame.registers.data();
  warp.bases[1] = const_cast<uint8_t *>(frame.program->constants.data());
  warp.taintOf = frame.taint.data();
  warp.writtenOf = frame.written.data();
}

} // namespace fsr::ptx
