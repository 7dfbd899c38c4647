// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the parts of one running search share. Everything here belongs to the
// thread that runs the search; threads that work ahead read what is set before
// they start.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_SEARCH_SEARCHSTATE_H
#define FSR_LIB_SEARCH_SEARCHSTATE_H

#include "fsr/Search/Feedback.h"

#include <map>

namespace fsr {

struct SearchState {
  SearchState(const KernelTask &task, const SearchOptions &options,
              const SearchServices &services)
      : task(task), options(options), services(services) {}

  const KernelTask &task;
  const SearchOptions &options;
  const SearchServices &services;
  SearchOutcome outcome;
  DeviceDescription device;
  std::optional<Build> reference;
  std::optional<Build> clone; ///< In f64.
  std::string whyNoClone;
  /// The task with the workload that its dummies were held against.
  std::optional<KernelTask> tested;
  std::map<std::string, unsigned> reusedFrom; ///< Trials of other devices.
  /// Of this search's own candidates: what another search left in the store
  /// must not change what this one asks and tries.
  std::optional<Trial> best;
  bool hasRun = false;

  void consider(const Trial &trial) {
    if (isValid(trial) && (!best || isBetter(trial, *best)))
      best = trial;
  }
  void notify(SearchEvent::Kind kind, int64_t round, int64_t slot,
              const Trial *trial = nullptr,
              const RoundSummary *summary = nullptr) {
    if (services.observer)
      services.observer(
          {kind, round, slot, trial, best ? &*best : nullptr, summary});
  }
  /// Before whatever runs the original first.
  void sayChecking() {
    if (device.isVirtual && !std::exchange(hasRun, true))
      notify(SearchEvent::Kind::Checking, 1, 0);
  }
};

} // namespace fsr

#endif // FSR_LIB_SEARCH_SEARCHSTATE_H
