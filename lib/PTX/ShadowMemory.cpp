// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where entries are kept: pages of memory that something was stored to, and
// arrays for registers that ever held a float. An entry of memory knows the
// bits it stands for: what writes others, in whatever way, has ended it.
//
//===----------------------------------------------------------------------===//

#include "Shadow.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/ErrorHandling.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <unordered_map>

namespace fsr::ptx {

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

unsigned bitsOf(Format format) {
  switch (format) {
  case Format::None:
    return 0;
  case Format::F16:
  case Format::BF16:
    return 16;
  case Format::F32:
  case Format::F64Low:
  case Format::F64High:
    return 32;
  case Format::F64:
    return 64;
  }
  llvm_unreachable("unknown format");
}

Format formatOf(Type type) {
  switch (type) {
  case Type::F16:
    return Format::F16;
  case Type::BF16:
    return Format::BF16;
  case Type::F32:
    return Format::F32;
  case Type::F64:
    return Format::F64;
  default:
    return Format::None;
  }
}

const FormatTraits &traitsOf(Format format) {
  static const FormatTraits half(11, -14, 65504), brain(8, -126, 0x1.fep127L),
      single(24, -126, 0x1.fffffep127L),
      wide(53, -1022, 0x1.fffffffffffffp1023L);
  switch (format) {
  case Format::F16:
    return half;
  case Format::BF16:
    return brain;
  case Format::F32:
    return single;
  default:
    return wide;
  }
}

FormatTraits::FormatTraits(int precision, int minimumExponent, Truth largest)
    : precision(precision), minimumExponent(minimumExponent), largest(largest),
      smallestNormal(std::ldexp(Truth(1), minimumExponent)),
      smallest(std::ldexp(Truth(1), minimumExponent - precision + 1)),
      unit(std::ldexp(Truth(1), -precision)) {}

Truth decodeFloat(Format format, uint64_t bits) {
  switch (format) {
  case Format::F16: {
    int exponent = bits >> 10 & 31;
    Truth fraction = Truth(bits & 0x3ff), value;
    if (exponent == 31)
      value = fraction ? NAN : INFINITY;
    else if (exponent)
      value = std::ldexp(fraction + 1024, exponent - 25);
    else
      value = std::ldexp(fraction, -24);
    return bits & 0x8000 ? -value : value;
  }
  case Format::BF16:
    return llvm::bit_cast<float>(uint32_t(bits) << 16);
  case Format::F32:
    return llvm::bit_cast<float>(uint32_t(bits));
  case Format::F64:
    return llvm::bit_cast<double>(bits);
  default:
    return 0;
  }
}

double ShadowEntry::wholeBound() const {
  if (!terms)
    return bound;
  return bound + double(terms * 2 * traitsOf(format).unit * magnitude) +
         double(terms * (format == Format::F32 ? traitsOf(format).smallestNormal
                                               : traitsOf(format).smallest));
}

ShadowNumber numberOf(const ShadowEntry &entry, Format format, uint64_t bits) {
  if (entry.format == format)
    return {entry.truth, entry.wholeBound(), bits};
  return {decodeFloat(format, bits), 0, bits};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {
constexpr unsigned pageBytes = 512;
/// Entries of even granules, and of odd ones, which only 16-bit values use.
struct Page {
  std::array<ShadowEntry, pageBytes / 4> even;
  std::unique_ptr<std::array<ShadowEntry, pageBytes / 4>> odd;

  ShadowEntry *find(uint64_t at) {
    unsigned granule = at % pageBytes / 2;
    if (granule & 1)
      return odd ? &(*odd)[granule / 2] : nullptr;
    return &even[granule / 2];
  }
  ShadowEntry &get(uint64_t at) {
    if (at % 4 >= 2 && !odd)
      odd = std::make_unique<std::array<ShadowEntry, pageBytes / 4>>();
    return *find(at);
  }
};

struct Shard {
  std::mutex lock;
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;

  Page *find(uint64_t at) {
    auto found = pages.find(at / pageBytes);
    return found == pages.end() ? nullptr : found->second.get();
  }
  Page &get(uint64_t at) {
    std::unique_ptr<Page> &page = pages[at / pageBytes];
    if (!page)
      page = std::make_unique<Page>();
    return *page;
  }
};

uint64_t bitsAt(const uint8_t *data, unsigned bits) {
  uint64_t value = 0;
  std::memcpy(&value, data, bits / 8);
  return value;
}
} // namespace

struct ShadowMemory::Impl {
  std::array<Shard, 64> shards;
  /// All entries lie between: most loads are of what nothing was stored to.
  std::atomic<uint64_t> low{~uint64_t(0)}, high{0};
  void widen(uint64_t at, uint64_t end) {
    for (uint64_t seen = low;
         at < seen && !low.compare_exchange_weak(seen, at);)
      ;
    for (uint64_t seen = high;
         end > seen && !high.compare_exchange_weak(seen, end);)
      ;
  }
  Shard &shardOf(uint64_t at) {
    return shards[(at / pageBytes) % shards.size()];
  }
  /// `visit(page, from, to)` under its lock, for each page that there is and
  /// the part of it in the range.
  template <typename Visit>
  void forPages(uint64_t at, uint64_t bytes, Visit visit) {
    uint64_t end = at + bytes;
    auto inside = [&](uint64_t number, Page &page) {
      uint64_t first = number * pageBytes, past = first + pageBytes;
      if (first < end && past > at)
        visit(page, std::max(first, at), std::min(past, end));
    };
    constexpr uint64_t mostByNumber = uint64_t(1) << 20;
    if (bytes <= mostByNumber) {
      for (uint64_t number = at / pageBytes; number * pageBytes < end;
           ++number) {
        Shard &shard = shardOf(number * pageBytes);
        std::lock_guard<std::mutex> held(shard.lock);
        if (Page *page = shard.find(number * pageBytes))
          inside(number, *page);
      }
      return;
    }
    for (Shard &shard : shards) {
      std::lock_guard<std::mutex> held(shard.lock);
      for (auto &[number, page] : shard.pages)
        inside(number, *page);
    }
  }
};

ShadowMemory::ShadowMemory() : impl(std::make_unique<Impl>()) {}
ShadowMemory::~ShadowMemory() = default;

void ShadowMemory::load(uint64_t at, unsigned bytes, const uint8_t *data,
                        ShadowEntry *entries) {
  if (at >= impl->high || at + bytes <= impl->low) {
    for (unsigned i = 0; i < bytes / 2; ++i)
      entries[i].format = Format::None;
    return;
  }
  Shard &shard = impl->shardOf(at);
  std::lock_guard<std::mutex> held(shard.lock);
  Page *page = shard.find(at);
  for (unsigned offset = 0; offset < bytes; offset += 2) {
    ShadowEntry &to = entries[offset / 2];
    to.format = Format::None;
    const ShadowEntry *from = page ? page->find(at + offset) : nullptr;
    if (!from || from->format == Format::None)
      continue;
    unsigned bits = bitsOf(from->format);
    if (offset * 8 + bits > bytes * 8)
      continue;
    uint64_t held = bitsAt(data + offset, bits);
    if (from->isUpdated) {
      // The order of the sum was the host's; what it gave must be possible.
      Truth apart = decodeFloat(from->format, held) - from->truth;
      if (!(std::fabs(apart) <= from->wholeBound()))
        continue;
    } else if (held != from->bits) {
      continue;
    }
    to = *from;
    to.bound = from->wholeBound();
    to.terms = 0;
    to.isUpdated = false;
    to.bits = held;
  }
}

void ShadowMemory::store(uint64_t at, unsigned bytes, const uint8_t *data,
                         const ShadowEntry *entries) {
  bool isEmpty = true;
  for (unsigned i = 0; i < std::max(1u, bytes / 2); ++i)
    isEmpty &= bytes < 2 || entries[i].format == Format::None;
  Shard &shard = impl->shardOf(at);
  std::lock_guard<std::mutex> held(shard.lock);
  if (isEmpty && !shard.find(at))
    return;
  impl->widen(at, at + bytes);
  Page &page = shard.get(at);
  for (unsigned offset = 0; offset < bytes; offset += 2) {
    if (bytes < 2 || entries[offset / 2].format == Format::None) {
      if (ShadowEntry *known = page.find(at + offset))
        known->format = Format::None;
      continue;
    }
    ShadowEntry &to = page.get(at + offset);
    to = entries[offset / 2];
    to.bits = bitsAt(data + offset, bitsOf(to.format));
  }
}

void ShadowMemory::update(uint64_t at,
                          llvm::function_ref<void(ShadowEntry &)> change) {
  Shard &shard = impl->shardOf(at);
  std::lock_guard<std::mutex> held(shard.lock);
  impl->widen(at, at + 8);
  change(shard.get(at).get(at));
}

void ShadowMemory::forget(uint64_t at, uint64_t bytes) {
  impl->forPages(at, bytes, [&](Page &page, uint64_t from, uint64_t to) {
    for (uint64_t one = from & ~uint64_t(1); one < to; one += 2)
      if (ShadowEntry *known = page.find(one))
        known->format = Format::None;
  });
}

void ShadowMemory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  std::vector<std::pair<uint64_t, ShadowEntry>> moved;
  impl->forPages(from, bytes, [&](Page &page, uint64_t begin, uint64_t end) {
    for (uint64_t at = (begin + 1) & ~uint64_t(1); at < end; at += 2) {
      const ShadowEntry *entry = page.find(at);
      if (entry && entry->format != Format::None &&
          at + bitsOf(entry->format) / 8 <= from + bytes)
        moved.push_back({at - from + to, *entry});
    }
  });
  forget(to, bytes);
  for (const auto &[at, entry] : moved)
    if (at % 2 == 0)
      update(at, [&entry = entry](ShadowEntry &there) { there = entry; });
}

void ShadowMemory::clear() {
  for (Shard &shard : impl->shards)
    shard.pages.clear();
  impl->low = ~uint64_t(0);
  impl->high = 0;
}

//===----------------------------------------------------------------------===//
// Registers
//===----------------------------------------------------------------------===//

ShadowRegisters::Slots &ShadowRegisters::slots(Warp &warp) {
  if (warp.frame == lastFrame &&
      last->uncertain.size() >= warp.frame->program->numSlots)
    return *last;
  std::unique_ptr<Slots> &of = frames[warp.frame];
  if (!of)
    of = std::make_unique<Slots>();
  if (of->uncertain.size() < warp.frame->program->numSlots) {
    of->entries.resize(warp.frame->program->numSlots);
    of->uncertain.resize(warp.frame->program->numSlots);
  }
  lastFrame = warp.frame;
  last = of.get();
  return *last;
}

void ShadowRegisters::set(Warp &warp, Slot slot, unsigned granule,
                          unsigned lane, const ShadowEntry &entry) {
  std::unique_ptr<ShadowEntry[]> &of = slots(warp).entries[slot][granule];
  if (!of)
    of = std::make_unique<ShadowEntry[]>(warpLanes);
  of[lane] = entry;
}

void ShadowRegisters::clear(Warp &warp, Slot slot, LaneMask lanes) {
  for (const auto &of : slots(warp).entries[slot])
    if (of)
      for (LaneMask rest = lanes; rest; rest &= rest - 1)
        of[__builtin_ctz(rest)].format = Format::None;
}

ShadowNumber readShadowNumber(Warp &warp, Slot slot, unsigned lane,
                              unsigned granule, Format format, bool isWide) {
  uint64_t bits = cellBits(warp, slot, lane, isWide) >> (granule * 16);
  unsigned width = bitsOf(format);
  if (width < 64)
    bits &= (uint64_t(1) << width) - 1;
  if (const ShadowEntry *entry = warp.shadow->find(warp, slot, granule, lane))
    if (entry->format == format)
      return {entry->truth, entry->bound, bits};
  return {decodeFloat(format, bits), 0, bits};
}

} // namespace fsr::ptx
