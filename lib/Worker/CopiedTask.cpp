// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Sectors in, sectors out. A copy of what lies between two needed sectors costs
// no more than another call, so small gaps are copied along.
//
//===----------------------------------------------------------------------===//

#include "CopiedTask.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cstring>

namespace fsr {

namespace {

constexpr uint64_t sectorBytes = 32;
constexpr uint64_t mostGap = 32 << 10;
constexpr int64_t mostBlocks = int64_t(1) << 40;
/// There are three bits to every sector, numbered by ints.
constexpr uint64_t mostBufferBytes = uint64_t(16) << 30;

ByteRuns runsOf(const llvm::BitVector &sectors, uint64_t extent, uint64_t gap) {
  ByteRuns runs;
  for (int at = sectors.find_first(); at >= 0;) {
    int end = sectors.find_next_unset(at);
    if (end < 0)
      end = int(sectors.size());
    uint64_t from = uint64_t(at) * sectorBytes;
    uint64_t to = std::min(uint64_t(end) * sectorBytes, extent);
    if (!runs.empty() && from - runs.back().first - runs.back().second <= gap)
      runs.back().second = to - runs.back().first;
    else
      runs.push_back({from, to - from});
    at = end < int(sectors.size()) ? sectors.find_next(end) : -1;
  }
  return runs;
}

unsigned sectorsOf(uint64_t bytes) {
  return unsigned((bytes + sectorBytes - 1) / sectorBytes);
}

} // namespace

llvm::Error CopiedTask::open(llvm::StringRef ptx,
                             const ptx::VirtualGpuOptions &options) {
  device = ptx::makeVirtualGpu(options);
  auto module = device->loadModule(ptx);
  if (!module)
    return module.takeError();
  loaded = *module;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    if (!argument.isBuffer)
      continue;
    auto at =
        addScratch(uint64_t(std::max<int64_t>(0, argument.extentBytes())));
    if (!at)
      return at.takeError();
    Buffer &buffer = all[*at];
    buffer.argument = i;
    buffer.isRead = argument.access != Access::Write;
    buffer.isWritten = argument.access == Access::Write ||
                       argument.access == Access::ReadWrite;
  }
  return llvm::Error::success();
}

llvm::Error CopiedTask::reload(llvm::StringRef ptx) {
  if (llvm::Error error = device->unloadModule(loaded))
    return error;
  auto module = device->loadModule(ptx);
  if (!module)
    return module.takeError();
  loaded = *module;
  return llvm::Error::success();
}

llvm::Expected<size_t> CopiedTask::addScratch(uint64_t bytes) {
  if (bytes > mostBufferBytes)
    return makeError(
        ErrorKind::Unsupported,
        "a buffer of " + llvm::Twine(bytes) + " bytes is larger than the " +
            llvm::Twine(mostBufferBytes) + " that are followed in a copy");
  Buffer buffer;
  buffer.argument = ~size_t(0);
  buffer.extent = bytes;
  buffer.isWritten = true;
  auto address = device->allocate(std::max<uint64_t>(1, bytes));
  if (!address)
    return address.takeError();
  buffer.address = *address;
  buffer.needed.resize(sectorsOf(bytes));
  buffer.dirty.resize(sectorsOf(bytes));
  all.push_back(std::move(buffer));
  known.emplace_back(sectorsOf(bytes));
  return all.size() - 1;
}

uint64_t CopiedTask::addressOf(size_t argument) const {
  for (const Buffer &buffer : all)
    if (buffer.argument == argument)
      return buffer.address;
  return 0;
}

llvm::Expected<std::vector<uint8_t>>
CopiedTask::parameterBlock(llvm::StringRef kernel,
                           const PackedParameters &values) {
  auto layout = device->parameters(loaded, kernel);
  if (!layout)
    return layout.takeError();
  if (layout->size() > values.values.size())
    return makeError(ErrorKind::BadInput,
                     "its PTX has more parameters than the task");
  std::vector<uint8_t> block;
  for (size_t i = 0; i < layout->size(); ++i) {
    const ptx::KernelParameter &one = (*layout)[i];
    block.resize(std::max<size_t>(block.size(), one.offset + one.bytes));
    memcpy(block.data() + one.offset, &values.values[i],
           std::min<uint64_t>(one.bytes, 8));
  }
  return block;
}

uint64_t CopiedTask::bytesRead() const {
  uint64_t total = 0;
  for (const Buffer &buffer : all)
    total += buffer.isRead ? buffer.extent : 0;
  return total;
}

uint64_t CopiedTask::bytesNeeded() const {
  uint64_t total = 0;
  for (const Buffer &buffer : all)
    if (buffer.isRead)
      for (auto run : runsOf(buffer.needed, buffer.extent, mostGap))
        total += run.second;
  return total;
}

void CopiedTask::needNothing() {
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].needed.reset();
    known[i].reset();
  }
}

void CopiedTask::needAll() {
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i].isRead) {
      all[i].needed.set();
      known[i].set();
    }
}

llvm::Error CopiedTask::fetchNeeded(Fetch fetch) {
  for (Buffer &buffer : all) {
    buffer.kept.clear();
    if (!buffer.isRead)
      continue;
    if (llvm::Error error = fetchRuns(
            buffer, runsOf(buffer.needed, buffer.extent, mostGap), fetch))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error CopiedTask::fetchRuns(Buffer &buffer, const ByteRuns &runs,
                                  Fetch fetch) {
  std::vector<uint8_t> bytes;
  for (auto [from, count] : runs) {
    bytes.resize(count);
    if (llvm::Error error = fetch(buffer.argument, from, bytes.data(), count))
      return error;
    if (llvm::Error error =
            device->write(buffer.address + from, bytes.data(), count))
      return error;
    if (buffer.isWritten)
      buffer.kept.push_back({from, bytes});
  }
  return llvm::Error::success();
}

void CopiedTask::noteTouched() {
  for (Buffer &buffer : all) {
    if (!buffer.extent)
      continue;
    llvm::consumeError(device->forTouched(
        buffer.address, buffer.extent, [&](uint64_t at, uint64_t bytes) {
          unsigned from = unsigned((at - buffer.address) / sectorBytes);
          unsigned to = sectorsOf(at + bytes - buffer.address);
          if (buffer.isRead)
            buffer.needed.set(from, to);
          if (buffer.isWritten)
            buffer.dirty.set(from, to);
        }));
  }
}

bool CopiedTask::findMissing(std::vector<ByteRuns> &missing) {
  bool any = false;
  missing.assign(all.size(), {});
  for (size_t i = 0; i < all.size(); ++i) {
    llvm::BitVector added = known[i];
    added.flip();
    added &= all[i].needed;
    known[i] = all[i].needed;
    missing[i] = runsOf(added, all[i].extent, mostGap);
    any |= !missing[i].empty();
  }
  return any;
}

void CopiedTask::forgetOutputs() {
  for (Buffer &buffer : all) {
    if (!buffer.isRead)
      for (auto [from, bytes] : runsOf(buffer.dirty, buffer.extent, 0))
        llvm::consumeError(
            device->setUninitialized(buffer.address + from, bytes));
    buffer.dirty.reset();
  }
}

void CopiedTask::restoreInPlace() {
  for (const Buffer &buffer : all)
    for (const auto &[from, bytes] : buffer.kept)
      llvm::consumeError(
          device->write(buffer.address + from, bytes.data(), bytes.size()));
}

void CopiedTask::protectInputs(bool protect) {
  for (const Buffer &buffer : all)
    if (!buffer.isWritten && buffer.extent)
      llvm::cantFail(device->setConst(buffer.address, protect));
}

ReadWords CopiedTask::takeReads() {
  ReadWords reads(task.arguments.size());
  for (const Buffer &buffer : all) {
    if (buffer.isWritten || !buffer.extent || buffer.argument >= reads.size())
      continue;
    if (buffer.extent / 4 >= mostReadWords)
      return {};
    llvm::BitVector &words = reads[buffer.argument];
    words.resize((buffer.extent + 3) / 4);
    if (llvm::Error error = device->forRead(
            buffer.address, buffer.extent, [&](uint64_t at, uint64_t bytes) {
              uint64_t first = (at - buffer.address) / 4;
              words.set(first, first + (bytes + 3) / 4);
            })) {
      llvm::consumeError(std::move(error));
      return {};
    }
  }
  return reads;
}

void CopiedTask::taintInputs(bool isTainted, bool inPlaceToo) {
  for (const Buffer &buffer : all)
    if (buffer.isRead && (inPlaceToo || !buffer.isWritten))
      for (auto [from, bytes] : runsOf(buffer.needed, buffer.extent, mostGap))
        llvm::consumeError(
            device->setTainted(buffer.address + from, bytes, isTainted));
}

std::optional<std::pair<uint64_t, uint64_t>> sizeOf(const LaunchShape &shape) {
  const auto &grid = shape.grid, &block = shape.block;
  // Beyond what can be launched; their products may be beyond 64 bits.
  for (unsigned d = 0; d < 3; ++d)
    if (grid[d] < 1 || block[d] < 1)
      return std::nullopt;
  if (grid[0] > mostBlocks || grid[1] > 65535 || grid[2] > 65535 ||
      block[0] > 1024 || block[1] > 1024 || block[2] > 1024 ||
      grid[0] * grid[1] > mostBlocks / grid[2] ||
      block[0] * block[1] * block[2] > 1024)
    return std::nullopt;
  return std::pair(uint64_t(grid[0]) * uint64_t(grid[1]) * uint64_t(grid[2]),
                   uint64_t(block[0]) * uint64_t(block[1]) *
                       uint64_t(block[2]));
}

ptx::LaunchShapeOf virtualShape(const LaunchShape &from) {
  ptx::LaunchShapeOf shape;
  for (unsigned d = 0; d < 3; ++d) {
    shape.grid[d] = unsigned(from.grid[d]);
    shape.block[d] = unsigned(from.block[d]);
    shape.cluster[d] = unsigned(from.cluster[d]);
  }
  shape.sharedBytes = unsigned(from.sharedBytes);
  return shape;
}

std::set<uint64_t> drawUnits(std::mt19937_64 &random, uint64_t units,
                             uint64_t wanted) {
  std::set<uint64_t> drawn;
  wanted = std::min(wanted, units);
  if (wanted > 1)
    drawn.insert(units - 1);
  if (wanted > 2)
    drawn.insert(0);
  while (drawn.size() < wanted)
    drawn.insert(random() % units);
  return drawn;
}

std::string stopText(const ptx::LaunchResult &result) {
  return result.findings.empty() ? "it did not end"
                                 : result.findings.front().text();
}

bool isTooLong(const ptx::LaunchResult &result) {
  return llvm::any_of(result.findings, [](const ptx::Finding &finding) {
    return finding.kind == ptx::FindingKind::Budget;
  });
}

} // namespace fsr
