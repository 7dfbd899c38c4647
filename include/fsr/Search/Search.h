// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// FSR, the search itself: ask, compile, validate, profile, keep the best. It is
// handed everything that touches the world, has no globals, and never ends a
// compile: whatever goes wrong after the start is in the outcome.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SEARCH_SEARCH_H
#define FSR_SEARCH_SEARCH_H

#include "fsr/Device/Device.h"
#include "fsr/LLM/ChatClient.h"
#include "fsr/Store/Store.h"
#include "fsr/Toolchain/Toolchain.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>

namespace fsr {

struct SearchOptions {
  unsigned width = 4;
  unsigned rounds = 1;
  size_t parameterSets = 16; ///< At most so many a candidate.
  uint64_t seed = 0;
  std::string prompts; ///< Folder of templates; empty: the embedded ones.
};

/// What happened, as it happens; for progress lines and reports.
struct SearchEvent {
  enum class Kind { Asked, Answered, Pending, Finished } kind;
  int64_t round = 0, slot = 0;
  const Trial *trial = nullptr; ///< Finished only.
};

struct SearchServices {
  ChatClient &client;
  Compiler &compiler;
  Device &device;
  SearchStore &store;
  /// Assembles the record's fat binary.
  std::function<llvm::Expected<std::string>(const Build &)> makeFatbin;
  /// Builds the original's image from its PTX.
  std::function<llvm::Expected<Build>(const KernelTask &)> buildReference;
  std::function<void(const SearchEvent &)> observer;
};

struct SearchOutcome {
  std::optional<Record> winner; ///< Already in the store.
  std::vector<Trial> trials;    ///< All, those reused from the store included.
  std::vector<std::string> pending; ///< Requests without an answer yet.
  std::vector<std::string> remarks;
  /// What cut the search short, or empty. The original stays.
  std::string trouble;
  unsigned asked = 0, reused = 0;
};

SearchOutcome runSearch(const KernelTask &task, const SearchOptions &options,
                        const SearchServices &services);

/// The request for one slot. Deterministic: the same task, device and round
/// give the same text.
llvm::Expected<std::string> renderPrompt(const KernelTask &task,
                                         const DeviceDescription &device,
                                         unsigned slot,
                                         llvm::StringRef promptFolder);

/// Reads an answer: one fenced `cuda` block and one fenced `json` block. An
/// error (BadInput) is the sentence the LLM gets back.
llvm::Expected<Candidate> parseAnswer(llvm::StringRef answer);

} // namespace fsr

#endif // FSR_SEARCH_SEARCH_H
