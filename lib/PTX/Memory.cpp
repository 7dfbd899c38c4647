// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Allocations and their shadow. One anonymous mapping an allocation holds its
// data, the states of its bytes, the cells of its words and its sector bits:
// pages that nothing touches cost nothing. Addresses go up and only start over
// when the space is used up, so a stale pointer hits nothing for long.
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include "fsr/Support/Counted.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

using llvm::Error;
using llvm::Expected;
using llvm::Twine;

namespace fsr::ptx {

namespace {

/// The least distance between two allocations; large ones have larger zones,
/// so that a slip by a row still hits nothing.
constexpr uint64_t leastGuard = 64 << 10;
constexpr uint64_t mostGuard = 64 << 20;
constexpr uint64_t pageBytes = 4096;
/// Of launches that the cells can tell apart.
constexpr unsigned lastStamp = 15;

struct Allocation {
  Region region;
  uint8_t *mapping = nullptr;
  uint64_t mappingBytes = 0;
  /// What the cells and the sector bits take of it.
  uint64_t cellOffset = 0, cellBytes = 0, sectorOffset = 0, sectorBytes = 0;
};

/// Maps what `region` lacks: data unless it is the host's own, and the shadow.
bool mapShadow(Allocation &allocation) {
  Region &region = allocation.region;
  uint64_t words = llvm::divideCeil(region.bytes, 4) + 8;
  uint64_t dataBytes =
      region.isMapped ? 0 : llvm::alignTo(region.bytes + 64, pageBytes);
  uint64_t stateBytes = llvm::alignTo(region.bytes + 64, pageBytes);
  uint64_t cellBytes = llvm::alignTo(words * 8, pageBytes);
  uint64_t sectorBytes =
      llvm::alignTo(llvm::divideCeil(region.bytes, 32 * 64) * 8 + 8, pageBytes);
  allocation.mappingBytes =
      dataBytes + stateBytes + 10 * cellBytes + sectorBytes;
  void *mapped = mmap(nullptr, allocation.mappingBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return false;
  uint8_t *at = allocation.mapping = static_cast<uint8_t *>(mapped);
  if (!region.isMapped)
    region.data = at;
  region.state = at + dataBytes;
  allocation.cellOffset = dataBytes + stateBytes;
  allocation.cellBytes = 2 * cellBytes;
  region.writers = reinterpret_cast<uint64_t *>(at + allocation.cellOffset);
  region.readers = region.writers + cellBytes / 8;
  allocation.sectorOffset = allocation.cellOffset + 2 * cellBytes;
  allocation.sectorBytes = sectorBytes;
  region.sectors = reinterpret_cast<uint64_t *>(at + allocation.sectorOffset);
  region.writerBytes =
      reinterpret_cast<ByteCells *>(at + allocation.sectorOffset + sectorBytes);
  region.readerBytes = region.writerBytes + cellBytes / 8;
  return true;
}

std::string hex(uint64_t value) {
  return "0x" + llvm::utohexstr(value, /*LowerCase=*/true);
}

} // namespace

struct Memory::Impl {
  uint64_t limit = 0, used = 0;
  uint64_t next = firstGlobal;
  unsigned stamp = 0, launchesSince = 0;
  std::map<uint64_t, Allocation> allocations; ///< By address.
  MessageTable messages;

  Expected<Region *> range(uint64_t address, uint64_t bytes, const char *what) {
    Region *region = find(address);
    if (!region)
      return makeError(ErrorKind::BadInput,
                       Twine(what) + " of " + Twine(bytes) + " bytes at " +
                           hex(address) + ": the address is in no allocation");
    uint64_t room = region->bytes - (address - region->address);
    if (bytes > room)
      return makeError(ErrorKind::BadInput,
                       Twine(what) + " of " + Twine(bytes) + " bytes at " +
                           hex(address) + ": the allocation of " +
                           Twine(region->bytes) + " bytes has " + Twine(room) +
                           " left there");
    return region;
  }
  Region *find(uint64_t address) {
    auto after = allocations.upper_bound(address);
    if (after == allocations.begin())
      return nullptr;
    Region &region = std::prev(after)->second.region;
    return address - region.address < region.bytes ? &region : nullptr;
  }
  /// Whether nothing lies in [from, to).
  bool isFree(uint64_t from, uint64_t to) const {
    auto after = allocations.lower_bound(to);
    if (after == allocations.begin())
      return true;
    const Region &region = std::prev(after)->second.region;
    return region.address + region.bytes <= from;
  }
  void unmap(Allocation &allocation) {
    if (allocation.mapping)
      munmap(allocation.mapping, allocation.mappingBytes);
  }
};

Memory::Memory(uint64_t limit) : impl(std::make_unique<Impl>()) {
  impl->limit = limit;
}

Memory::~Memory() {
  for (auto &one : impl->allocations)
    impl->unmap(one.second);
}

Expected<uint64_t> Memory::allocate(uint64_t bytes, uint64_t alignment,
                                    llvm::StringRef name) {
  if (!llvm::isPowerOf2_64(alignment) || alignment > (uint64_t(1) << 30))
    return makeError(ErrorKind::BadInput, "an alignment of " +
                                              Twine(alignment) +
                                              " bytes cannot be had");
  if (!bytes)
    return makeError(ErrorKind::BadInput, "an allocation of no bytes");
  if (bytes > impl->limit - impl->used)
    return makeError(ErrorKind::Unavailable,
                     "out of device memory: " + Twine(bytes) +
                         " bytes wanted, " + Twine(freeBytes()) + " of " +
                         Twine(impl->limit) + " free");
  uint64_t guard = std::clamp(bytes, leastGuard, mostGuard);
  alignment = std::max<uint64_t>(alignment, 256);
  uint64_t address = llvm::alignTo(impl->next, alignment);
  for (bool startedOver = false;;) {
    if (address + bytes + guard > endOfGlobal) {
      if (startedOver)
        return makeError(ErrorKind::Unavailable,
                         "out of device addresses for " + Twine(bytes) +
                             " bytes");
      startedOver = true;
      address = llvm::alignTo(firstGlobal, alignment);
      continue;
    }
    if (impl->isFree(address - std::min(address, guard),
                     address + bytes + guard))
      break;
    auto after = impl->allocations.lower_bound(address + bytes + guard);
    const Region &region = std::prev(after)->second.region;
    address = llvm::alignTo(region.address + region.bytes + guard, alignment);
  }
  Allocation made;
  made.region.address = address;
  made.region.bytes = bytes;
  made.region.name = name.str();
  if (!mapShadow(made))
    return makeError(ErrorKind::Unavailable,
                     "the host has no memory for an allocation of " +
                         Twine(bytes) + " bytes and its shadow");
  impl->used += bytes;
  impl->next = address + bytes + guard;
  impl->allocations.emplace(address, std::move(made));
  return address;
}

Error Memory::release(uint64_t address) {
  auto found = impl->allocations.find(address);
  if (found == impl->allocations.end() || found->second.region.isMapped)
    return makeError(ErrorKind::BadInput,
                     "release of " + hex(address) + ": " + describe(address) +
                         ", not the start of an allocation");
  impl->used -= found->second.region.bytes;
  impl->unmap(found->second);
  impl->allocations.erase(found);
  return Error::success();
}

Error Memory::mapHost(void *pointer, uint64_t bytes) {
  uint64_t address = reinterpret_cast<uintptr_t>(pointer);
  if (!address || !bytes || address + bytes < address ||
      address + bytes > firstGlobal)
    return makeError(ErrorKind::BadInput, "host memory of " + Twine(bytes) +
                                              " bytes at " + hex(address) +
                                              " cannot be mapped");
  if (!impl->isFree(address, address + bytes))
    return makeError(ErrorKind::BadInput, "host memory of " + Twine(bytes) +
                                              " bytes at " + hex(address) +
                                              " is mapped already");
  Allocation made;
  made.region.address = address;
  made.region.bytes = bytes;
  made.region.data = static_cast<uint8_t *>(pointer);
  made.region.isMapped = true;
  if (!mapShadow(made))
    return makeError(ErrorKind::Unavailable,
                     "the host has no memory for the shadow of " +
                         Twine(bytes) + " mapped bytes");
  // What the host holds counts as written: nobody can say more.
  std::memset(made.region.state, Written, bytes);
  impl->allocations.emplace(address, std::move(made));
  return Error::success();
}

Error Memory::unmapHost(void *pointer) {
  auto found = impl->allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == impl->allocations.end() || !found->second.region.isMapped)
    return makeError(ErrorKind::BadInput,
                     "no host memory is mapped at " +
                         hex(reinterpret_cast<uintptr_t>(pointer)));
  impl->unmap(found->second);
  impl->allocations.erase(found);
  return Error::success();
}

Region *Memory::find(uint64_t address) { return impl->find(address); }

const Region *Memory::nearest(uint64_t address) const {
  if (address < pageBytes)
    return nullptr;
  const Region *before = nullptr, *behind = nullptr;
  auto after = impl->allocations.upper_bound(address);
  if (after != impl->allocations.end())
    behind = &after->second.region;
  if (after != impl->allocations.begin())
    before = &std::prev(after)->second.region;
  if (before && address - before->address < before->bytes)
    return before;
  // The zones' sizes say what is near: beyond them an address is just wrong.
  uint64_t past = before ? address - (before->address + before->bytes) : ~0ull;
  uint64_t ahead = behind ? behind->address - address : ~0ull;
  if (std::min(past, ahead) > mostGuard)
    return nullptr;
  return past <= ahead ? before : behind;
}

std::string Memory::describe(uint64_t address) const {
  if (address < pageBytes)
    return address ? (Twine(address) + " bytes from null").str()
                   : std::string("null");
  auto text = [&](const Region &region) {
    std::string what = region.isMapped ? "mapped host memory" : "an allocation";
    if (!region.name.empty())
      what = "`" + region.name + "`";
    return what + " of " + std::to_string(region.bytes) + " bytes";
  };
  auto bytes = [](uint64_t count) { return counted(count, "byte"); };
  const Region *near = nearest(address);
  if (!near) {
    for (auto [name, window] :
         {std::pair("shared", sharedWindow), std::pair("local", localWindow),
          std::pair("parameter", paramWindow)})
      if (address - window < windowBytes)
        return bytes(address - window) + " into the window of " + name +
               " memory";
    return "no allocation is near";
  }
  if (address < near->address)
    return bytes(near->address - address) + " before " + text(*near);
  uint64_t offset = address - near->address;
  if (offset < near->bytes)
    return bytes(offset) + " into " + text(*near);
  return offset == near->bytes
             ? "the end of " + text(*near)
             : bytes(offset - near->bytes) + " past the end of " + text(*near);
}

uint64_t Memory::freeBytes() const { return impl->limit - impl->used; }

Error Memory::write(uint64_t address, const void *from, uint64_t bytes) {
  if (!bytes)
    return Error::success();
  Expected<Region *> region = impl->range(address, bytes, "a write");
  if (!region)
    return region.takeError();
  uint64_t offset = address - (*region)->address;
  std::memcpy((*region)->data + offset, from, bytes);
  std::memset((*region)->state + offset, Written, bytes);
  return Error::success();
}

Error Memory::read(void *to, uint64_t address, uint64_t bytes) const {
  if (!bytes)
    return Error::success();
  Expected<Region *> region = impl->range(address, bytes, "a read");
  if (!region)
    return region.takeError();
  std::memcpy(to, (*region)->data + (address - (*region)->address), bytes);
  return Error::success();
}

Error Memory::fill(uint64_t address, uint32_t pattern, unsigned width,
                   uint64_t count) {
  if (width != 1 && width != 2 && width != 4)
    return makeError(ErrorKind::BadInput,
                     "a fill with elements of " + Twine(width) + " bytes");
  if (address % width)
    return makeError(ErrorKind::BadInput, "a fill with elements of " +
                                              Twine(width) + " bytes at " +
                                              hex(address) + ": not aligned");
  if (!count)
    return Error::success();
  if (count > ~uint64_t(0) / width)
    return makeError(ErrorKind::BadInput,
                     "a fill of " + Twine(count) + " elements");
  Expected<Region *> region = impl->range(address, count * width, "a fill");
  if (!region)
    return region.takeError();
  uint64_t offset = address - (*region)->address;
  uint8_t *data = (*region)->data + offset;
  if (width == 1) {
    std::memset(data, int(pattern & 0xff), count);
  } else {
    for (uint64_t i = 0; i < count; ++i)
      std::memcpy(data + i * width, &pattern, width);
  }
  std::memset((*region)->state + offset, Written, count * width);
  return Error::success();
}

Error Memory::copy(uint64_t to, uint64_t from, uint64_t bytes) {
  if (!bytes)
    return Error::success();
  Expected<Region *> target = impl->range(to, bytes, "a copy to");
  if (!target)
    return target.takeError();
  Expected<Region *> source = impl->range(from, bytes, "a copy from");
  if (!source)
    return source.takeError();
  uint64_t toOffset = to - (*target)->address;
  uint64_t fromOffset = from - (*source)->address;
  std::memmove((*target)->data + toOffset, (*source)->data + fromOffset, bytes);
  std::memmove((*target)->state + toOffset, (*source)->state + fromOffset,
               bytes);
  return Error::success();
}

Expected<uint8_t *> Memory::view(uint64_t address, uint64_t bytes,
                                 bool writes) {
  Expected<Region *> region = impl->range(address, bytes, "a view");
  if (!region)
    return region.takeError();
  uint64_t offset = address - (*region)->address;
  if (writes)
    std::memset((*region)->state + offset, Written, bytes);
  return (*region)->data + offset;
}

Error Memory::setConst(uint64_t address, bool isConst) {
  Expected<Region *> region = impl->range(address, 0, "setConst");
  if (!region)
    return region.takeError();
  (*region)->isConst = isConst;
  return Error::success();
}

Error Memory::setTainted(uint64_t address, uint64_t bytes, bool isTainted) {
  Expected<Region *> region = impl->range(address, bytes, "setTainted");
  if (!region)
    return region.takeError();
  uint8_t *state = (*region)->state + (address - (*region)->address);
  for (uint64_t i = 0; i < bytes; ++i)
    state[i] = isTainted ? state[i] | Tainted : state[i] & ~Tainted;
  return Error::success();
}

Error Memory::setUninitialized(uint64_t address, uint64_t bytes) {
  Expected<Region *> region = impl->range(address, bytes, "setUninitialized");
  if (!region)
    return region.takeError();
  std::memset((*region)->state + (address - (*region)->address), 0, bytes);
  return Error::success();
}

void Memory::beginLaunch() {
  impl->messages.clear();
  ++impl->launchesSince;
  bool isWrapped = ++impl->stamp > lastStamp;
  if (isWrapped)
    impl->stamp = 1;
  for (auto &one : impl->allocations) {
    Allocation &allocation = one.second;
    if (isWrapped)
      madvise(allocation.mapping + allocation.cellOffset, allocation.cellBytes,
              MADV_DONTNEED);
    // A page at most is cheaper to clear than to map anew.
    if (allocation.sectorBytes <= pageBytes)
      std::memset(allocation.mapping + allocation.sectorOffset, 0,
                  llvm::divideCeil(allocation.region.bytes, 32 * 64) * 8);
    else
      madvise(allocation.mapping + allocation.sectorOffset,
              allocation.sectorBytes, MADV_DONTNEED);
  }
}

unsigned Memory::launchStamp() const { return impl->stamp; }

void Memory::forgetReads() {
  impl->stamp = lastStamp; // The next launch clears all cells.
  impl->launchesSince = 0;
}

bool Memory::knowsReads() const { return impl->launchesSince <= lastStamp; }

MessageTable &Memory::messages() { return impl->messages; }

void SharedMemory::reset(uint64_t bytes, Block *owner,
                         std::optional<unsigned> rank) {
  // Cells of earlier blocks are told by their generation; only a vector that
  // grows or a counter that starts over needs new ones.
  constexpr uint32_t lastGeneration = (uint32_t(1) << 22) - 1;
  uint64_t words = llvm::divideCeil(bytes, 4) + 8;
  if (++generation > lastGeneration) {
    generation = 1;
    writers.assign(writers.size(), 0);
    readers.assign(readers.size(), 0);
  }
  if (writers.size() < words) {
    writers.resize(words);
    readers.resize(words);
    writerBytes.reset(new ByteCells[words]);
    readerBytes.reset(new ByteCells[words]);
  }
  data.resize(std::max<size_t>(data.size(), bytes + 64));
  state.assign(bytes + 64, 0);
  all = Region();
  all.address = sharedWindow + (rank ? (*rank + 1) * rankBytes : 0);
  all.block = owner;
  all.bytes = bytes;
  all.data = data.data();
  all.state = state.data();
  all.writers = writers.data();
  all.readers = readers.data();
  all.writerBytes = writerBytes.get();
  all.readerBytes = readerBytes.get();
  all.generation = generation << cell::rankBits;
  all.name = "shared memory";
}

void LocalMemory::grow(uint64_t newBytes) {
  if (newBytes <= bytesPerLane)
    return;
  bytesPerLane = newBytes;
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    bytes[lane].resize(newBytes);
    states[lane].resize(newBytes);
  }
}

} // namespace fsr::ptx
