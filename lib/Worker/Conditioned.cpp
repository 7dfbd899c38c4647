// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Some inputs make every algorithm inexact: the variance of equal numbers is
// all rounding. An error beyond the bound is allowed where a few units of
// rounding in the *inputs* move the original's own result as far. One such move
// says little: it may leave two scores that are nearly equal as they are, and a
// right candidate does not. So there are several, each with signs of its own,
// and the largest change counts.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#define FSR_DEVICE static inline
#include "kernels/elements.inl"

namespace fsr {

llvm::Expected<bool>
Evaluation::compareConditioned(llvm::ArrayRef<const TaskBuffer *> beyond,
                               const InputSet &set, Poison poison,
                               bool candidateInStash) {
  constexpr unsigned mostTurns = 8;
  struct Failing {
    const TaskBuffer *buffer;
    DevicePointer out, original, noise;
    std::optional<FsrDifference> difference; ///< Of what still fails.
    double worst;
  };
  if (llvm::Error error = beginOriginal(1 + mostTurns))
    return std::move(error);
  // The candidate's results, and the original's.
  std::vector<Failing> failing;
  std::vector<DevicePointer> copies;
  for (const TaskBuffer *buffer : beyond) {
    auto copy = buffers->extra(buffer->extent);
    if (!copy)
      return copy.takeError();
    if (llvm::Error error = helpers.copy(*copy, buffer->data, buffer->extent))
      return std::move(error);
    auto noise =
        buffers->extra(buffer->argument->numElements() / buffer->row() * 8);
    if (!noise)
      return noise.takeError();
    copies.insert(copies.end(), {*copy, *noise});
    failing.push_back({buffer, *copy, buffer->stash, *noise, std::nullopt, 0});
    if (candidateInStash)
      std::swap(failing.back().out, failing.back().original);
  }
  InputSet moved = set;
  moved.comesAgain = false; // Not these inputs.
  bool goesOn = true;
  for (unsigned turn = 0; goesOn && turn < mostTurns; ++turn) {
    moved.perturbTurn = turn;
    // A sum that is some times its terms rounds the smaller moves away.
    moved.perturb = turn < mostTurns / 2 ? set.conditioning
                                         : std::max(set.conditioning, 8.0);
    if (llvm::Error error = buffers->fill(moved, false))
      return std::move(error);
    if (llvm::Error error = buffers->poisonOutputs(poison))
      return std::move(error);
    if (llvm::Error error = launchOriginal(moved, poison))
      return std::move(error);
    goesOn = false;
    for (Failing &one : failing) {
      if (turn && !one.difference)
        continue;
      const TaskBuffer &buffer = *one.buffer;
      FsrCompare compare =
          comparisonOn(buffer, set, poison, one.out, one.original);
      compare.mode = FsrBound;
      compare.factor = factorOf(buffer, set);
      compare.tiny = tinyOf(buffer, set);
      FsrCompare rowsOf = compare;
      rowsOf.out = 0;
      if (llvm::Error error = helpers.rowMaximum(rowsOf, rowMaxima))
        return std::move(error);
      rowsOf.out = buffer.data;
      if (llvm::Error error =
              helpers.rowMaximum(rowsOf, one.noise, /*isMore=*/turn > 0))
        return std::move(error);
      compare.rowMaximum = rowMaxima;
      compare.noise = one.noise;
      auto difference = helpers.compare(compare);
      if (!difference)
        return difference.takeError();
      auto byTruth = excused(buffer, compare);
      if (!byTruth)
        return byTruth.takeError();
      one.worst = fsrDouble(difference->worst);
      one.difference = std::nullopt;
      if (difference->failing <= *byTruth)
        continue;
      // What rounding cannot explain at all, as a NaN, has no size.
      if (!(one.worst > 1 && std::isfinite(one.worst)))
        return mismatch(buffer, one.out, one.original, *difference, set);
      one.difference = *difference;
      goesOn = true;
    }
  }
  for (const Failing &one : failing) {
    if (one.difference)
      return mismatch(*one.buffer, one.out, one.original, *one.difference, set);
    worstRatio = std::max(worstRatio, one.worst);
  }
  conditioned = true;
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  for (DevicePointer memory : copies)
    if (llvm::Error error = buffers->drop(memory))
      return std::move(error);
  // The inputs as they were: callers go on with them.
  if (llvm::Error error = buffers->fill(set, false))
    return std::move(error);
  return true;
}

} // namespace fsr
