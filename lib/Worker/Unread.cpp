// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Inputs that the original reads and the candidate does not. A maximum that
// never looks at the last column is right on most inputs there are; only where
// something stands there that decides is it wrong. What both read is seen by
// the virtual device, the worker's own or the one beside a GPU; then these
// elements, and no others, get numbers that stand out. It is no fault not to
// read what does not matter.
//
//===----------------------------------------------------------------------===//

#include "Beside.h"
#include "Evaluation.h"

#include "llvm/Support/FormatVariadic.h"

namespace fsr {

namespace {
constexpr llvm::StringLiteral checkName = "unread-inputs";
} // namespace

/// Of what the launch read that was last.
llvm::Expected<ReadWords> Evaluation::takeReads() {
  ReadWords reads(task.arguments.size());
  for (const TaskBuffer &buffer : buffers->buffers()) {
    if (buffer.written() || buffer.data != buffer.allocation)
      continue;
    if (buffer.extent / 4 >= mostReadWords)
      return ReadWords();
    llvm::BitVector &words = reads[buffer.index];
    words.resize((buffer.extent + 3) / 4);
    if (llvm::Error error = virtualDevice->forRead(
            buffer.data, buffer.extent, [&](uint64_t at, uint64_t bytes) {
              uint64_t first = (at - buffer.data) / 4;
              words.set(first, first + (bytes + 3) / 4);
            }))
      return std::move(error);
  }
  return reads;
}

/// Both kernels on the workload's own inputs, each once.
llvm::Error Evaluation::findReads() {
  InputSet set = inputs->workload().front();
  if (llvm::Error error = beginOriginal(1))
    return error;
  if (placedShifted) {
    if (llvm::Error error = buffers->place(false))
      return error;
    placedShifted = false;
  }
  buffers->share(InputSet());
  if (llvm::Error error = buffers->fill(set, false))
    return error;
  for (Who who : {Who::Original, Who::Candidate}) {
    if (who == Who::Candidate) {
      if (llvm::Error error = buffers->fill(set, true))
        return error;
      if (llvm::Error error = buffers->poisonScratch())
        return error;
    }
    if (llvm::Error error = buffers->poisonOutputs(Poison::Plain))
      return error;
    if (who == Who::Candidate)
      if (llvm::Error error = beginCandidate(1))
        return error;
    virtualDevice->forgetReads();
    notesReads = true;
    llvm::Error error = launch(who);
    notesReads = false;
    if (!error)
      error = helpers.synchronize();
    if (error)
      return error;
    auto reads = takeReads();
    if (!reads) {
      // More launches than can be told apart: nothing is known.
      llvm::consumeError(reads.takeError());
      originalReads.clear();
      return llvm::Error::success();
    }
    (who == Who::Original ? originalReads : candidateReads) = std::move(*reads);
  }
  return llvm::Error::success();
}

llvm::Expected<bool> Evaluation::validateUnread() {
  bool anyRead = llvm::any_of(buffers->buffers(), [](const TaskBuffer &buffer) {
    return !buffer.written();
  });
  if (!anyRead)
    return true;
  if (virtualDevice)
    if (llvm::Error error = findReads())
      return std::move(error);
  llvm::StringRef rule =
      "what the original reads and the candidate does not may hold anything";
  if (originalReads.empty() || candidateReads.empty()) {
    addCheck(checkName, true, "-", "not run",
             "it is not known of all blocks what they read");
    return true;
  }
  std::vector<Planted> planted;
  for (const TaskBuffer &buffer : buffers->buffers()) {
    llvm::BitVector words = originalReads[buffer.index];
    words.reset(candidateReads[buffer.index]);
    if (words.none())
      continue;
    auto marked = std::make_shared<llvm::BitVector>(buffer.storageElements());
    for (unsigned i = 0; i < marked->size(); ++i) {
      uint64_t first = uint64_t(i) * buffer.elementBytes() / 4;
      uint64_t last = (uint64_t(i + 1) * buffer.elementBytes() - 1) / 4;
      if (words[first] && words[last])
        marked->set(i);
    }
    planted.push_back({buffer.index, std::move(marked), 0});
  }
  if (planted.empty()) {
    addCheck(checkName, true, "the workload's own", rule,
             "the candidate reads all that the original reads");
    return true;
  }
  std::vector<InputSet> sets = inputs->unread(planted);
  if (sets.empty()) {
    addCheck(checkName, true, "-", "not run",
             "no other integers are known that may stand where the candidate "
             "reads nothing");
    return true;
  }
  uint64_t elements = 0;
  for (const Planted &one : sets.front().planted)
    elements += one.elements->count();
  return validateSets(
      checkName, sets, {},
      llvm::formatv("{0} elements that the original reads and the candidate "
                    "does not",
                    elements)
          .str());
}

} // namespace fsr
