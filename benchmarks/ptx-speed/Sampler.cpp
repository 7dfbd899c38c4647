// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The timer, and the names of functions. The signal handler only stores an
// address; all the rest is done when the samples are taken out.
//
//===----------------------------------------------------------------------===//

#include "Sampler.h"

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#ifdef __linux__
#include "llvm/Support/MemoryBuffer.h"

#include <csignal>
#include <elf.h>
#include <link.h>
#include <sys/time.h>
#include <ucontext.h>
#endif

namespace fsr::bench {

const char *nameOf(Part part) {
  static constexpr const char *names[] = {
      "dispatch", "arithmetic", "memory", "atomics",
      "order",    "scheduling", "host"};
  return names[unsigned(part)];
}

#ifdef __linux__

namespace {

constexpr size_t mostSamples = 1 << 16;
std::array<uintptr_t, mostSamples> places;
std::atomic<size_t> numPlaces{0};

void onTimer(int, siginfo_t *, void *context) {
  size_t at = numPlaces.fetch_add(1, std::memory_order_relaxed);
  if (at >= mostSamples)
    return;
  auto *of = static_cast<ucontext_t *>(context);
#if defined(__x86_64__)
  places[at] = uintptr_t(of->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  places[at] = uintptr_t(of->uc_mcontext.pc);
#else
  (void)of;
#endif
}

void setTimer(long microseconds) {
  itimerval interval{};
  interval.it_interval.tv_usec = interval.it_value.tv_usec = microseconds;
  setitimer(ITIMER_PROF, &interval, nullptr);
}

struct Range {
  uint64_t begin, end;
  std::string name;
};

Part partOf(llvm::StringRef name) {
  auto has = [&](llvm::StringRef piece) { return name.contains(piece); };
  if (has("runGroup") || has("runGeneral") || has("passTaint"))
    return Part::Dispatch;
  // `atomic`, `updateLanes` and what they call.
  if (has("tomic") || has("4Turn") || has("updateLanes"))
    return Part::Atomics;
  for (llvm::StringRef piece :
       {"orderBarrier", "orderFence", "orderWarp", "touchRead", "touchWrite",
        "touchBytes", "learnAt", "publishAt", "noteFlagRead", "Knowledge",
        "BlockClock", "isOrdered", "areInOrder", "noteReads", "noteWrites"})
    if (has(piece))
      return Part::Order;
  // The handlers of loads and stores, in the namespaces of CPU features.
  for (llvm::StringRef piece :
       {"4loadILj",       "5storeILj",    "loadStretch",  "storeStretch",
        "gatherLanes",    "scatterLanes", "loadRepeated", "loadRun",
        "storeRun",       "loadSame",     "loadLocal",    "storeLocal",
        "tryLoad",        "tryStore",     "loadLanes",    "storeLanes",
        "countLanes",     "countAccess",  "distinctOf",   "countDistinct",
        "markTouched",    "bankCycles",   "isStretch",    "addressesOf",
        "lanesAddresses", "followersOf",  "locate",       "checkLane",
        "taintLoaded",    "setStates",    "6Memory4find"})
    if (has(piece))
      return Part::Memory;
  for (llvm::StringRef piece : {"WarpRun", "BlockRun", "Scheduler", "Launch",
                                "splitOff", "Groups", "BlockPool"})
    if (has(piece))
      return Part::Scheduling;
  return has("3fsr3ptx") ? Part::Arithmetic : Part::Host;
}

/// Functions of this executable, by their address in memory.
std::vector<Range> readSymbols() {
  std::vector<Range> ranges;
  uint64_t base = 0;
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *to) {
        *static_cast<uint64_t *>(to) = info->dlpi_addr;
        return 1; // The first is the executable.
      },
      &base);
  auto file = llvm::MemoryBuffer::getFile("/proc/self/exe");
  if (!file)
    return ranges;
  const char *image = (*file)->getBufferStart();
  auto *head = reinterpret_cast<const ElfW(Ehdr) *>(image);
  auto *sections = reinterpret_cast<const ElfW(Shdr) *>(image + head->e_shoff);
  for (unsigned i = 0; i < head->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB)
      continue;
    const char *names = image + sections[sections[i].sh_link].sh_offset;
    auto *symbols =
        reinterpret_cast<const ElfW(Sym) *>(image + sections[i].sh_offset);
    for (size_t n = sections[i].sh_size / sizeof(*symbols); n--; ++symbols)
      if ((symbols->st_info & 15) == STT_FUNC && symbols->st_size)
        ranges.push_back({base + symbols->st_value,
                          base + symbols->st_value + symbols->st_size,
                          names + symbols->st_name});
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Range &a, const Range &b) { return a.begin < b.begin; });
  return ranges;
}

} // namespace

void startSampling() {
  numPlaces = 0;
  struct sigaction action = {};
  action.sa_sigaction = onTimer;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(SIGPROF, &action, nullptr);
  setTimer(1000);
}

Shares stopSampling() {
  setTimer(0);
  static const std::vector<Range> ranges = readSymbols();
  Shares shares;
  shares.total = std::min<size_t>(numPlaces, mostSamples);
  for (size_t i = 0; i < shares.total; ++i) {
    auto after = std::upper_bound(
        ranges.begin(), ranges.end(), uint64_t(places[i]),
        [](uint64_t at, const Range &range) { return at < range.begin; });
    Part part = Part::Host;
    if (after != ranges.begin() && places[i] < std::prev(after)->end)
      part = partOf(std::prev(after)->name);
    ++shares.samples[unsigned(part)];
  }
  return shares;
}

#else

void startSampling() {}
Shares stopSampling() { return {}; }

#endif

} // namespace fsr::bench
