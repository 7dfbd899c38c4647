// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the lanes of a warp tell one another. `active` holds all lanes that came
// to the instruction; results may lie over sources, so sources are read first.
//
//===----------------------------------------------------------------------===//

#include "Exchange.h"
#include "Block.h"

#include "llvm/ADT/StringSwitch.h"

#include <cstring>

namespace fsr::ptx {

namespace {

unsigned firstLane(LaneMask lanes) { return __builtin_ctz(lanes); }

template <typename Body>
void forLanes(LaneMask active, Body body) {
  for (LaneMask rest = active; rest; rest &= rest - 1)
    body(firstLane(rest));
}

/// The value of a lane that is not there; nothing a kernel would count on.
constexpr uint32_t undefinedValue = 0xdeadbeef;

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

template <ShuffleMode mode>
void shuffle(Warp &warp, const Op &op, LaneMask active) {
  uint32_t values[warpLanes];
  std::memcpy(values, warp.lanes<uint32_t>(op.operand(0)), sizeof(values));
  const auto *offsets = warp.lanes<uint32_t>(op.operand(1));
  const auto *clamps = warp.lanes<uint32_t>(op.operand(2));
  uint32_t results[warpLanes];
  LaneMask inRange = 0, absent = 0, written = 0;
  unsigned absentSource = 0; ///< What the first lane of `absent` reads.
  LaneMask hasValue =
      op.mayBeUninitialized ? warp.written(op.operand(0)) : allLanes;
  forLanes(active, [&](unsigned lane) {
    auto [from, isIn] = shuffleSource(mode, lane, offsets[lane], clamps[lane]);
    inRange |= LaneMask(isIn) << lane;
    written |= (hasValue >> from & 1) << lane;
    if (active >> from & 1) {
      results[lane] = values[from];
    } else {
      results[lane] = undefinedValue;
      if (!absent)
        absentSource = from;
      absent |= LaneMask(1) << lane;
    }
  });
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = results[lane]; });
  if (op.numResults > 1) {
    LaneMask &predicate = warp.predicate(op.result(1));
    predicate = (predicate & ~active) | inRange;
  }
  if (op.mayBeUninitialized) {
    warp.setWritten(op.result(0), active, written | absent);
    if (op.numResults > 1)
      warp.setWritten(op.result(1), active, active);
  }
  if (!absent)
    return;
  // The value is undefined. That of a lane outside the mask is read all the
  // time by reductions over part of a warp, which drop it; a mask that names a
  // lane which has exited is a mistake.
  unsigned reader = firstLane(absent);
  Slot maskSlot = op.operand(op.maskSource);
  LaneMask mask =
      warp.lanes<uint32_t>(maskSlot)[maskSlot & constantBit ? 0 : reader];
  if (mask & warp.exited & LaneMask(1) << absentSource)
    warp.report(op, reader, FindingKind::ShuffleMask, 0,
                "reads lane " + llvm::Twine(absentSource) +
                    ", which its mask names and which has exited: the value is "
                    "undefined");
  else
    warp.remark(op, reader, FindingKind::ShuffleMask, 0,
                "reads lane " + llvm::Twine(absentSource) +
                    ", which takes no part: the value is undefined");
}

/// The predicate source, negated as the instruction says.
LaneMask voteOf(Warp &warp, const Op &op, LaneMask active) {
  LaneMask value = warp.predicate(op.operand(0));
  return (op.immediate & 1 ? ~value : value) & active;
}

template <VoteMode mode>
void vote(Warp &warp, const Op &op, LaneMask active) {
  LaneMask votes = voteOf(warp, op, active);
  if (mode == VoteMode::Ballot) {
    auto *to = warp.lanes<uint32_t>(op.result(0));
    forLanes(active, [&](unsigned lane) { to[lane] = votes; });
    return;
  }
  bool value = mode == VoteMode::All   ? votes == active
               : mode == VoteMode::Any ? votes != 0
                                       : votes == active || votes == 0;
  LaneMask &to = warp.predicate(op.result(0));
  to = value ? to | active : to & ~active;
}

template <typename T, bool isAll>
void match(Warp &warp, const Op &op, LaneMask active) {
  const T *values = warp.lanes<T>(op.operand(0));
  uint32_t results[warpLanes];
  bool areSame = true;
  forLanes(active, [&](unsigned lane) {
    LaneMask same = 0;
    forLanes(active, [&](unsigned other) {
      same |= LaneMask(values[other] == values[lane]) << other;
    });
    results[lane] = same;
    areSame &= same == active;
  });
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) {
    to[lane] = isAll ? (areSame ? active : 0) : results[lane];
  });
  if (op.numResults > 1) {
    LaneMask &predicate = warp.predicate(op.result(1));
    predicate = areSame ? predicate | active : predicate & ~active;
  }
}

template <typename T, typename Combine>
void reduce(Warp &warp, const Op &op, LaneMask active, Combine combine) {
  const auto *values = warp.lanes<uint32_t>(op.operand(0));
  T result = T(values[firstLane(active)]);
  forLanes(active & (active - 1),
           [&](unsigned lane) { result = combine(result, T(values[lane])); });
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = uint32_t(result); });
}

template <Reduction how>
void reduceInteger(Warp &warp, const Op &op, LaneMask active) {
  switch (how) {
  case Reduction::Add:
    return reduce<uint32_t>(warp, op, active,
                            [](uint32_t a, uint32_t b) { return a + b; });
  case Reduction::MinU:
    return reduce<uint32_t>(
        warp, op, active, [](uint32_t a, uint32_t b) { return a < b ? a : b; });
  case Reduction::MaxU:
    return reduce<uint32_t>(
        warp, op, active, [](uint32_t a, uint32_t b) { return a < b ? b : a; });
  case Reduction::MinS:
    return reduce<int32_t>(warp, op, active,
                           [](int32_t a, int32_t b) { return a < b ? a : b; });
  case Reduction::MaxS:
    return reduce<int32_t>(warp, op, active,
                           [](int32_t a, int32_t b) { return a < b ? b : a; });
  case Reduction::And:
    return reduce<uint32_t>(warp, op, active,
                            [](uint32_t a, uint32_t b) { return a & b; });
  case Reduction::Or:
    return reduce<uint32_t>(warp, op, active,
                            [](uint32_t a, uint32_t b) { return a | b; });
  case Reduction::Float:
    return;
  case Reduction::Xor:
    return reduce<uint32_t>(warp, op, active,
                            [](uint32_t a, uint32_t b) { return a ^ b; });
  }
}

void reduceFloat(Warp &warp, const Op &op, LaneMask active) {
  constexpr uint32_t nan = 0x7fffffff;
  uint64_t how = op.immediate;
  auto isNan = [](uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; };
  // Ordered as integers, so that -0 is below +0.
  auto key = [](uint32_t bits) {
    return int32_t(bits) < 0 ? int32_t(~bits ^ 0x80000000) : int32_t(bits);
  };
  const auto *values = warp.lanes<uint32_t>(op.operand(0));
  uint32_t result = nan;
  bool any = false, anyNan = false;
  forLanes(active, [&](unsigned lane) {
    uint32_t value = values[lane];
    if (how & reduceAbs)
      value &= 0x7fffffff;
    if (isNan(value)) {
      anyNan = true;
      return;
    }
    if (!any ||
        (how & reduceMax ? key(value) > key(result) : key(value) < key(result)))
      result = value;
    any = true;
  });
  if (!any || (anyNan && (how & reduceNan)))
    result = nan;
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = result; });
}

void elect(Warp &warp, const Op &op, LaneMask active) {
  unsigned leader = firstLane(active);
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = leader; });
  LaneMask &predicate = warp.predicate(op.result(1));
  predicate = (predicate & ~active) | LaneMask(1) << leader;
}

void activeMask(Warp &warp, const Op &op, LaneMask active) {
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = active; });
}

//===----------------------------------------------------------------------===//
// Special registers that change
//===----------------------------------------------------------------------===//

template <typename T, unsigned shift>
void readClock(Warp &warp, const Op &op, LaneMask active) {
  // Each look is later than the one before; the unit is as good as any.
  uint64_t now = (warp.executed += 1) * 4;
  auto *to = warp.lanes<T>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = T(now >> shift); });
}

void readMultiprocessor(Warp &warp, const Op &op, LaneMask active) {
  const Launch &launch = *warp.block->launch;
  auto value =
      uint32_t(warp.block->linear % std::max(1u, launch.numMultiprocessors));
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = value; });
}

} // namespace

Handler shuffleHandler(ShuffleMode mode) {
  switch (mode) {
  case ShuffleMode::Up:
    return shuffle<ShuffleMode::Up>;
  case ShuffleMode::Down:
    return shuffle<ShuffleMode::Down>;
  case ShuffleMode::Butterfly:
    return shuffle<ShuffleMode::Butterfly>;
  case ShuffleMode::Index:
    return shuffle<ShuffleMode::Index>;
  }
  llvm_unreachable("unknown shuffle");
}

Handler voteHandler(VoteMode mode) {
  switch (mode) {
  case VoteMode::All:
    return vote<VoteMode::All>;
  case VoteMode::Any:
    return vote<VoteMode::Any>;
  case VoteMode::Uniform:
    return vote<VoteMode::Uniform>;
  case VoteMode::Ballot:
    return vote<VoteMode::Ballot>;
  }
  llvm_unreachable("unknown vote");
}

Handler matchHandler(bool isAll, bool isWide) {
  if (isWide)
    return isAll ? match<uint64_t, true> : match<uint64_t, false>;
  return isAll ? match<uint32_t, true> : match<uint32_t, false>;
}

Handler reductionHandler(Reduction how) {
  switch (how) {
  case Reduction::Add:
    return reduceInteger<Reduction::Add>;
  case Reduction::MinU:
    return reduceInteger<Reduction::MinU>;
  case Reduction::MaxU:
    return reduceInteger<Reduction::MaxU>;
  case Reduction::MinS:
    return reduceInteger<Reduction::MinS>;
  case Reduction::MaxS:
    return reduceInteger<Reduction::MaxS>;
  case Reduction::And:
    return reduceInteger<Reduction::And>;
  case Reduction::Or:
    return reduceInteger<Reduction::Or>;
  case Reduction::Xor:
    return reduceInteger<Reduction::Xor>;
  case Reduction::Float:
    return reduceFloat;
  }
  llvm_unreachable("unknown reduction");
}

Handler electHandler() { return elect; }
Handler activeMaskHandler() { return activeMask; }

Handler changingRegister(llvm::StringRef name) {
  return llvm::StringSwitch<Handler>(name)
      .Case("%clock64", readClock<uint64_t, 0>)
      .Case("%globaltimer", readClock<uint64_t, 0>)
      .Case("%clock", readClock<uint32_t, 0>)
      .Case("%clock_hi", readClock<uint32_t, 32>)
      .Case("%globaltimer_lo", readClock<uint32_t, 0>)
      .Case("%globaltimer_hi", readClock<uint32_t, 32>)
      .Case("%smid", readMultiprocessor)
      .Default(nullptr);
}

} // namespace fsr::ptx
