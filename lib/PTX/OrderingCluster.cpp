// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The order that the barrier of a cluster makes. An arrival releases what its
// thread did and had seen; who waits knows what all arrivals of the phase
// released. What a thread does between its arrival and its wait is in order
// with nobody, so ticks are kept by thread.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Ordering.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

namespace fsr::ptx {

/// More runs of threads that differ are not kept apart.
static constexpr size_t mostRuns = 60;

struct ClusterOrder {
  /// By rank, by thread: up to which tick the phase's arrivals release it.
  using Ticks = std::vector<std::vector<uint32_t>>;
  Ticks open, done;
  KnowledgePtr carried; ///< What arrivals of the open phase had learnt.
  KnowledgePtr known;   ///< Of the last complete phase.
};

static ClusterOrder &orderOf(Cluster &cluster) {
  if (!cluster.order) {
    cluster.order = std::make_shared<ClusterOrder>();
    for (const Block *block : cluster.blocks)
      cluster.order->open.emplace_back(block->warps.size() * warpLanes);
    cluster.order->done = cluster.order->open;
  }
  return *cluster.order;
}

template <typename Body>
static void forLanes(LaneMask lanes, Body body) {
  for (LaneMask rest = lanes; rest; rest &= rest - 1)
    body(unsigned(__builtin_ctz(rest)));
}

void orderClusterArrive(Warp &warp, LaneMask lanes, bool isRelaxed) {
  if (!warp.checksRaces)
    return;
  WarpClock &clock = clockOf(warp);
  BlockClock &block = *clock.block;
  ClusterOrder &order = orderOf(*warp.block->cluster);
  std::vector<uint32_t> &upTo = order.open[warp.block->rank];
  auto raise = [&](unsigned thread, uint32_t tick) {
    upTo[thread] = std::max(upTo[thread], tick);
  };
  if (isRelaxed) {
    // Only what a fence released before.
    if (clock.messages)
      forLanes(lanes, [&](unsigned lane) {
        const LaneMessages &own = (*clock.messages)[lane];
        if (!own.released[1])
          return;
        raise(warp.threadIndex(lane), own.releasedTick[1]);
        order.carried = join(order.carried, own.released[1]);
      });
    return;
  }
  for (unsigned v = 0; v < block.warps.size(); ++v) {
    uint32_t seen =
        v == clock.index ? clock.laneFloor : block.seenOf(clock.index, v);
    if (seen)
      for (unsigned lane = 0; lane < warpLanes; ++lane)
        raise(v * warpLanes + lane, seen);
  }
  forLanes(lanes, [&](unsigned lane) {
    raise(warp.threadIndex(lane), block.tick);
    if (clock.laneSeen)
      for (unsigned other = 0; other < warpLanes; ++other)
        raise(warp.threadIndex(other), (*clock.laneSeen)[lane][other]);
    if (clock.messages)
      order.carried = join(order.carried, (*clock.messages)[lane].known);
  });
  block.advance();
}

/// What is known of a block's threads, whose ticks are `upTo`.
static Knowledge::Entry entryOf(const Block &block,
                                const std::vector<uint32_t> &upTo) {
  Knowledge::Entry entry;
  entry.first = entry.last = block.clock->block;
  entry.floor = ~uint32_t(0);
  uint32_t most = 0;
  llvm::SmallVector<uint32_t, 32> least;
  for (const std::unique_ptr<Warp> &warp : block.warps) {
    uint32_t low = ~uint32_t(0);
    forLanes(warp->existing, [&](unsigned lane) {
      low = std::min(low, upTo[warp->threadIndex(lane)]);
      most = std::max(most, upTo[warp->threadIndex(lane)]);
    });
    least.push_back(low);
    entry.floor = std::min(entry.floor, low);
  }
  auto add = [&](unsigned first, unsigned last, uint32_t tick) {
    if (tick > entry.floor)
      entry.exceptions.push_back({uint16_t(first), uint16_t(last), tick});
  };
  for (const std::unique_ptr<Warp> &warp : block.warps) {
    unsigned base = warp->index * warpLanes;
    add(base, base + warpLanes - 1, least[warp->index]);
    forLanes(warp->existing, [&](unsigned lane) {
      uint32_t tick = upTo[base + lane];
      if (tick == least[warp->index])
        return;
      if (!entry.exceptions.empty() &&
          entry.exceptions.back().last + 1u == base + lane &&
          entry.exceptions.back().first != base &&
          entry.exceptions.back().tick == tick)
        ++entry.exceptions.back().last;
      else
        add(base + lane, base + lane, tick);
    });
  }
  if (entry.exceptions.size() > mostRuns) {
    // Rather know too much than report what is in order.
    entry.exceptions.clear();
    entry.floor = most;
  }
  llvm::sort(entry.exceptions,
             [](const Knowledge::Exception &a, const Knowledge::Exception &b) {
               return std::tuple(a.first, a.last) < std::tuple(b.first, b.last);
             });
  return entry;
}

void orderClusterComplete(Cluster &cluster) {
  if (!cluster.order)
    return;
  ClusterOrder &order = *cluster.order;
  auto made = std::make_shared<Knowledge>();
  for (const Block *block : cluster.blocks) {
    std::vector<uint32_t> &upTo = order.open[block->rank];
    // Threads that are gone count as having come.
    for (const std::unique_ptr<Warp> &warp : block->warps)
      forLanes(warp->existing & warp->exited, [&](unsigned lane) {
        upTo[warp->threadIndex(lane)] = block->clock->tick;
      });
    made->entries.push_back(entryOf(*block, upTo));
  }
  llvm::sort(made->entries,
             [](const Knowledge::Entry &a, const Knowledge::Entry &b) {
               return a.first < b.first;
             });
  order.known = join(order.carried, made);
  order.carried = nullptr;
  order.done.swap(order.open);
  for (std::vector<uint32_t> &upTo : order.open)
    std::fill(upTo.begin(), upTo.end(), 0);
}

void orderClusterWait(Warp &warp, LaneMask lanes) {
  Cluster &cluster = *warp.block->cluster;
  if (!warp.checksRaces || !cluster.order || !cluster.order->known)
    return;
  ClusterOrder &order = *cluster.order;
  WarpClock &clock = clockOf(warp);
  BlockClock &block = *clock.block;
  if (!clock.messages)
    clock.messages = std::make_unique<std::array<LaneMessages, warpLanes>>();
  KnowledgePtr before, after;
  forLanes(lanes, [&](unsigned lane) {
    KnowledgePtr &known = (*clock.messages)[lane].known;
    if (!after || known != before) {
      before = known;
      after = join(known, order.known);
    }
    known = after;
  });
  block.hasNews = true;
  LaneMask here = warp.existing & ~warp.exited;
  if ((lanes & here) != here)
    return;
  // As after a barrier of the block, so that its own accesses are in order at
  // a glance.
  const std::vector<uint32_t> &upTo = order.done[warp.block->rank];
  auto least = [&](const Warp &of) {
    uint32_t low = ~uint32_t(0);
    forLanes(of.existing, [&](unsigned lane) {
      low = std::min(low, upTo[of.threadIndex(lane)]);
    });
    return low;
  };
  clock.laneFloor = std::max(clock.laneFloor, least(warp));
  size_t count = block.warps.size();
  if (count == 1)
    return;
  uint32_t floor = ~uint32_t(0);
  for (unsigned v = 0; v < count; ++v) {
    if (v == clock.index)
      continue;
    uint32_t seen = least(*warp.block->warps[v]);
    if (seen > block.seenOf(clock.index, v)) {
      block.makeMatrix();
      block.seen[clock.index * count + v] = seen;
    }
    floor = std::min(floor, block.seenOf(clock.index, v));
  }
  clock.floor = std::max(clock.floor, floor);
}

} // namespace fsr::ptx
