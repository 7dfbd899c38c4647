// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Places of the device become the host's, and the items of a helper kernel are
// spread over threads in runs, so that no two write to one cache line but at
// the ends. A kernel sees the part that is its thread's through FSR_EACH.
//
//===----------------------------------------------------------------------===//

#include "HostHelpers.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>
#include <vector>

namespace {

/// This thread's part of all items.
thread_local unsigned part = 0, parts = 1;

unsigned long long startOf(unsigned which, unsigned long long items) {
  return items / parts * which +
         std::min<unsigned long long>(which, items % parts);
}

} // namespace

#define FSR_DEVICE [[maybe_unused]] static inline
#define FSR_KERNEL(name) [[maybe_unused]] static void name
#define FSR_EACH(i, n)                                                         \
  for (FsrU64 i = startOf(part, n), i##End = startOf(part + 1, n); i < i##End; \
       ++i)
#define FSR_EACH_WARP(i, n) FSR_EACH(i, n)
#define FSR_LANE 0u
#define FSR_LANES 1u

namespace {

using Word = unsigned long long;

template <typename T, typename Change>
void update(T *at, Change change) {
  T before, after;
  __atomic_load(at, &before, __ATOMIC_RELAXED);
  do
    after = change(before);
  while (!__atomic_compare_exchange(at, &before, &after, true, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED));
}
Word fsrWarpMax(Word value) { return value; }
void fsrAtomicAdd(Word *at, Word value) {
  __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}
void fsrAtomicAdd(double *at, double value) {
  update(at, [&](double before) { return before + value; });
}
void fsrAtomicMin(Word *at, Word value) {
  update(at, [&](Word before) { return std::min(before, value); });
}
void fsrAtomicMax(Word *at, Word value) {
  update(at, [&](Word before) { return std::max(before, value); });
}
// Clocks are a GPU's; the kernels that read them are none of these here.
Word fsrNanos() { return 0; }
Word fsrClock() { return 0; }
Word fsrMultiprocessor() { return 0; }

#include "kernels/hostmath.inl"

#include "kernels/helpers.inl"

/// Below that a thread costs more than it saves.
constexpr uint64_t itemsOfThread = 16384;

void spread(uint64_t items, llvm::function_ref<void()> kernel) {
  uint64_t wanted =
      std::clamp<uint64_t>(items / itemsOfThread, 1,
                           std::max(1u, std::thread::hardware_concurrency()));
  auto run = [&](unsigned which) {
    part = which;
    parts = unsigned(wanted);
    kernel();
    part = 0;
    parts = 1;
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < wanted; ++i)
    others.emplace_back(run, i);
  run(0);
  for (std::thread &other : others)
    other.join();
}

/// All that a layout reaches, in elements; all ones: more than there can be.
uint64_t extentOf(const FsrLayout &layout) {
  uint64_t last = 0;
  for (FsrI64 d = 0; d < layout.rank; ++d) {
    if (layout.size[d] <= 0 || layout.stride[d] < 0)
      return ~uint64_t(0);
    last = llvm::SaturatingMultiplyAdd(uint64_t(layout.size[d] - 1),
                                       uint64_t(layout.stride[d]), last);
  }
  return llvm::SaturatingAdd(last, uint64_t(1));
}

/// Turns places of the device into the host's; the first that is none is told.
class Places {
public:
  explicit Places(fsr::VirtualDevice &device) : device(device) {}

  void find(FsrU64 &place, uint64_t elements, uint64_t size, bool writes) {
    if (error)
      return;
    auto view =
        device.view(place, llvm::SaturatingMultiply(elements, size), writes);
    if (view)
      place = reinterpret_cast<uintptr_t>(*view);
    else
      error = view.takeError();
  }
  /// Zero is how a kernel is told that there is none.
  void findAny(FsrU64 &place, uint64_t elements, uint64_t size, bool writes) {
    if (place)
      find(place, elements, size, writes);
  }
  llvm::Error run(uint64_t items, llvm::function_ref<void()> kernel) {
    if (error)
      return std::move(*error);
    spread(items, kernel);
    return llvm::Error::success();
  }

private:
  fsr::VirtualDevice &device;
  std::optional<llvm::Error> error;
};

template <typename T>
T get(llvm::ArrayRef<void *> parameters, size_t i) {
  return *static_cast<T *>(parameters[i]);
}

llvm::Error fill(Places at, FsrFill f) {
  at.find(f.to, f.count, fsrSize(f.element), true);
  return at.run(f.count, [&] { fsr_fill(f); });
}

llvm::Error poison(Places at, FsrU64 to, FsrU64 count, FsrU32 size,
                   FsrU64 bits) {
  at.find(to, count, size, true);
  return at.run(count, [&] { fsr_poison(to, count, size, bits); });
}

llvm::Error setGuard(Places at, FsrU64 from, FsrU64 bytes, FsrU32 word) {
  at.find(from, bytes, 1, true);
  // The pattern goes by the address, here by the host's: both kernels see that.
  return at.run(bytes, [&] { fsr_guard_set(from, bytes, word); });
}

llvm::Error checkGuard(Places at, FsrU64 from, FsrU64 bytes, FsrU32 word,
                       FsrU64 result) {
  at.find(from, bytes, 1, false);
  at.find(result, 3, 8, true);
  return at.run(bytes, [&] { fsr_guard_check(from, bytes, word, result); });
}

llvm::Error hash(Places at, FsrU64 from, FsrU64 count, FsrU32 size,
                 FsrU64 result) {
  at.find(from, count, size, false);
  at.find(result, 1, 8, true);
  return at.run(count, [&] { fsr_hash(from, count, size, result); });
}

llvm::Error mask(Places at, FsrU64 to, FsrU64 blocks, FsrU64 key) {
  at.find(to, blocks, 16, true);
  return at.run(blocks, [&] { fsr_mask(to, blocks, key); });
}

llvm::Error rowMaximum(Places at, FsrCompare c) {
  uint64_t extent = extentOf(c.layout), size = fsrSize(c.element);
  at.find(c.reference, extent, size, false);
  at.findAny(c.out, extent, size, false);
  at.find(c.rowMaximum, c.count / c.row, 8, true);
  return at.run(c.count, [&] { fsr_row_maximum(c); });
}

llvm::Error compare(Places at, FsrCompare c) {
  uint64_t extent = extentOf(c.layout), size = fsrSize(c.element);
  at.find(c.out, extent, size, false);
  at.find(c.reference, extent, size, false);
  at.find(c.result, 1, sizeof(FsrDifference), true);
  // Without a bound a kernel looks at neither.
  if (c.mode == FsrBound) {
    uint64_t rows = llvm::divideCeil(c.count, c.row);
    at.find(c.rowMaximum, rows, 8, false);
    at.findAny(c.noise, rows, 8, false);
  }
  return at.run(c.count, [&] { fsr_compare(c); });
}

llvm::Error play(Places at, FsrPlay p) {
  uint64_t size = fsrSize(p.element);
  at.find(p.out, extentOf(p.layout), size, true);
  at.find(p.right, extentOf(p.layout), size, false);
  if (p.rule == FsrPlayOther)
    at.find(p.other, extentOf(p.otherLayout), size, false);
  return at.run(p.count, [&] { fsr_play(p); });
}

llvm::Error widen(Places at, FsrU64 to, FsrU64 from, FsrU64 count,
                  FsrU32 element) {
  at.find(to, count, 8, true);
  at.find(from, count, fsrSize(element), false);
  return at.run(count, [&] { fsr_widen(to, from, count, element); });
}

llvm::Error rowError(Places at, FsrJudge j) {
  uint64_t extent = extentOf(j.layout);
  at.find(j.reference, extent, fsrSize(j.element), false);
  at.find(j.truth, extent, 8, false);
  at.find(j.rowError, j.count / j.row, 8, true);
  return at.run(j.count, [&] { fsr_row_error(j); });
}

llvm::Error judge(Places at, FsrJudge j) {
  uint64_t extent = extentOf(j.layout), size = fsrSize(j.element);
  uint64_t rows = llvm::divideCeil(j.count, j.row);
  at.find(j.out, extent, size, false);
  at.find(j.reference, extent, size, false);
  at.find(j.truth, extent, 8, false);
  at.find(j.rowTruth, rows, 8, false);
  at.find(j.rowError, rows, 8, false);
  at.find(j.result, 1, sizeof(FsrJudgement), true);
  return at.run(j.count, [&] { fsr_judge(j); });
}

} // namespace

std::optional<llvm::Error> fsr::runHelperOnHost(VirtualDevice &device,
                                                llvm::StringRef name,
                                                llvm::ArrayRef<void *> p) {
  Places at(device);
  if (name == "fsr_fill")
    return fill(std::move(at), get<FsrFill>(p, 0));
  if (name == "fsr_poison")
    return poison(std::move(at), get<FsrU64>(p, 0), get<FsrU64>(p, 1),
                  get<FsrU32>(p, 2), get<FsrU64>(p, 3));
  if (name == "fsr_guard_set")
    return setGuard(std::move(at), get<FsrU64>(p, 0), get<FsrU64>(p, 1),
                    get<FsrU32>(p, 2));
  if (name == "fsr_guard_check")
    return checkGuard(std::move(at), get<FsrU64>(p, 0), get<FsrU64>(p, 1),
                      get<FsrU32>(p, 2), get<FsrU64>(p, 3));
  if (name == "fsr_hash")
    return hash(std::move(at), get<FsrU64>(p, 0), get<FsrU64>(p, 1),
                get<FsrU32>(p, 2), get<FsrU64>(p, 3));
  if (name == "fsr_mask")
    return mask(std::move(at), get<FsrU64>(p, 0), get<FsrU64>(p, 1),
                get<FsrU64>(p, 2));
  if (name == "fsr_row_maximum")
    return rowMaximum(std::move(at), get<FsrCompare>(p, 0));
  if (name == "fsr_compare")
    return compare(std::move(at), get<FsrCompare>(p, 0));
  if (name == "fsr_play")
    return play(std::move(at), get<FsrPlay>(p, 0));
  if (name == "fsr_widen")
    return widen(std::move(at), get<FsrU64>(p, 0), get<FsrU64>(p, 1),
                 get<FsrU64>(p, 2), get<FsrU32>(p, 3));
  if (name == "fsr_row_error")
    return rowError(std::move(at), get<FsrJudge>(p, 0));
  if (name == "fsr_judge")
    return judge(std::move(at), get<FsrJudge>(p, 0));
  return std::nullopt;
}
