// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Several runs of the candidate on the same inputs. Other bits are honest where
// threads add floats to one place in the order in which they come; without an
// instruction that does so they are a race.
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

#include "llvm/Support/FormatVariadic.h"

namespace fsr {

llvm::Error Evaluation::keepFirstRun() {
  auto hashes = buffers->hashWritten();
  if (!hashes)
    return hashes.takeError();
  firstHashes = std::move(*hashes);
  firstCopies.clear();
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (!buffer.stash)
      continue;
    auto copy = buffers->extra(buffer.extent);
    if (!copy)
      return copy.takeError();
    firstCopies.push_back(*copy);
    if (llvm::Error error = helpers.copy(*copy, buffer.data, buffer.extent))
      return error;
  }
  return maskFirstRun();
}

/// A second run must not find what the first one gave.
llvm::Error Evaluation::maskFirstRun() {
  size_t at = 0;
  for (const TaskBuffer &buffer : buffers->buffers())
    if (buffer.stash)
      if (llvm::Error error = helpers.mask(firstCopies[at++], buffer.extent,
                                           ~maskKey - buffer.index))
        return error;
  return llvm::Error::success();
}

llvm::Expected<bool> Evaluation::compareRuns(const InputSet &set, Poison poison,
                                             llvm::ArrayRef<uint64_t> second,
                                             const RunOrder &how) {
  if (llvm::Error error = maskFirstRun())
    return std::move(error);
  std::vector<DevicePointer> copies;
  copies.swap(firstCopies);
  bool isSame = second == llvm::ArrayRef(firstHashes);
  if (!isSame) {
    candidateDeterministic = false;
    if (addsFloatsAtomically && !*addsFloatsAtomically) {
      std::string what = "results change from run to run";
      if (how.blocks != ptx::BlockOrder::OfSchedule)
        what = llvm::formatv("results change where blocks come in {0} order",
                             ptx::nameOf(how.blocks));
      std::string orders;
      if (how.schedule != ptx::Schedule::Lockstep)
        orders =
            llvm::formatv("; lockstep, then {0}", ptx::nameOf(how.schedule));
      std::string text = what + " and no floating-point atomic explains it (" +
                         set.words + " inputs" + orders + ")";
      addCheck("deterministic", false, set.words, "two runs, the same bits",
               text);
      return finish(Verdict::Mismatch, text);
    }
  }
  // What is left to demand is that every run keeps to the rule.
  size_t at = 0;
  for (const TaskBuffer &buffer : buffers->buffers())
    if (buffer.stash && !isSame)
      if (llvm::Error error =
              helpers.copy(buffer.data, copies[at++], buffer.extent))
        return std::move(error);
  if (llvm::Error error = helpers.synchronize())
    return std::move(error);
  for (DevicePointer copy : copies)
    if (llvm::Error error = buffers->drop(copy))
      return std::move(error);
  return isSame ? llvm::Expected<bool>(true)
                : compareOutputs(set, poison, false);
}

} // namespace fsr
