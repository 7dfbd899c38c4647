// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What part of the grid runs, what it needs, and what came out. The part is
// drawn once for each budget: a run of one block or warp without shadow tells
// what one costs, another of all that were drawn tells which sectors of the
// inputs they touch. Addresses may depend on what is read there, so after each
// shadow run what it touched and did not have is fetched, and it runs again.
//
//===----------------------------------------------------------------------===//

#include "Oracle.h"

#include "Launch.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

namespace fsr {

namespace {

constexpr uint64_t sectorBytes = 32;
/// To copy what lies between costs no more than another call.
constexpr uint64_t mostGap = 32 << 10;
constexpr size_t mostUnits = 4096;
/// Of threads that do not look at one another, so many of a warp run.
constexpr uint64_t lanesAWarp = 8;
constexpr int64_t mostBlocks = int64_t(1) << 40;
constexpr unsigned mostAttempts = 4;

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;

std::optional<ptx::Type> ptxType(ElementType type) {
  switch (type) {
  case ElementType::F16:
    return ptx::Type::F16;
  case ElementType::BF16:
    return ptx::Type::BF16;
  case ElementType::F32:
    return ptx::Type::F32;
  case ElementType::F64:
    return ptx::Type::F64;
  default:
    return std::nullopt;
  }
}

/// Bytes from, and how many, of the sectors that are set.
Runs runsOf(const llvm::BitVector &sectors, uint64_t extent, uint64_t gap) {
  Runs runs;
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

/// The element at a place of the storage, in the order of the dimensions.
class Layout {
public:
  explicit Layout(const Argument &argument) : argument(argument) {
    order.resize(argument.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    llvm::sort(order, [&](size_t a, size_t b) {
      return argument.strides[a] != argument.strides[b]
                 ? argument.strides[a] > argument.strides[b]
                 : a < b;
    });
    weight.resize(order.size());
    uint64_t product = 1;
    for (size_t d = order.size(); d-- > 0;) {
      weight[d] = product;
      product *= uint64_t(argument.sizes[d]);
    }
  }
  std::optional<uint64_t> indexOf(uint64_t offset) const {
    uint64_t index = 0;
    for (size_t d : order) {
      if (argument.sizes[d] <= 1)
        continue;
      uint64_t at = offset / uint64_t(argument.strides[d]);
      offset %= uint64_t(argument.strides[d]);
      if (at >= uint64_t(argument.sizes[d]))
        return std::nullopt;
      index += at * weight[d];
    }
    if (offset)
      return std::nullopt;
    return index;
  }

private:
  const Argument &argument;
  std::vector<size_t> order;
  std::vector<uint64_t> weight;
};

/// Some element stands at the place of another.
bool overlaps(const Argument &argument) {
  TaskBuffer buffer;
  buffer.argument = &argument;
  return buffer.overlapping();
}

} // namespace

const TrueBuffer *Truth::find(size_t argument) const {
  for (const TrueBuffer &buffer : buffers)
    if (buffer.argument == argument)
      return &buffer;
  return nullptr;
}

Oracle::Oracle(const KernelTask &task, llvm::StringRef ptx, uint64_t seed)
    : task(task), random(seed) {
  open(ptx);
}

Oracle::~Oracle() = default;

bool Oracle::giveUp(const llvm::Twine &reason) {
  why = reason.str();
  return false;
}

void Oracle::open(llvm::StringRef ptx) {
  auto fail = [&](llvm::Error error) {
    hopeless = llvm::toString(std::move(error));
  };
  auto read = readPtxFacts(ptx);
  if (!read)
    return fail(read.takeError());
  facts = std::move(*read);
  gpu = ptx::makeVirtualGpu({});
  auto loaded = gpu->loadModule(ptx);
  if (!loaded)
    return fail(loaded.takeError());
  module = *loaded;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    if (!argument.isBuffer)
      continue;
    Buffer buffer;
    buffer.argument = i;
    buffer.extent = uint64_t(std::max<int64_t>(0, argument.extentBytes()));
    buffer.isRead = argument.access != Access::Write;
    buffer.isWritten = argument.access == Access::Write ||
                       argument.access == Access::ReadWrite;
    auto address = gpu->allocate(std::max<uint64_t>(1, buffer.extent));
    if (!address)
      return fail(address.takeError());
    buffer.address = *address;
    buffers.push_back(std::move(buffer));
  }
  auto layout = gpu->parameters(module, task.reference.entry);
  if (!layout)
    return fail(layout.takeError());
  PackedParameters packed = packReference(task, [&](size_t argument) {
    for (const Buffer &buffer : buffers)
      if (buffer.argument == argument)
        return buffer.address;
    return uint64_t(0);
  });
  if (layout->size() > packed.values.size()) {
    hopeless = "its PTX has more parameters than the task";
    return;
  }
  for (size_t i = 0; i < layout->size(); ++i) {
    const ptx::KernelParameter &one = (*layout)[i];
    params.resize(std::max<size_t>(params.size(), one.offset + one.bytes));
    memcpy(params.data() + one.offset, &packed.values[i],
           std::min<uint64_t>(one.bytes, 8));
  }
}

llvm::Expected<ptx::LaunchResult>
Oracle::launch(llvm::ArrayRef<ptx::ChosenBlock> what, bool shadow,
               uint64_t budget) {
  ptx::LaunchShapeOf shape;
  for (unsigned d = 0; d < 3; ++d) {
    shape.grid[d] = unsigned(task.launch.grid[d]);
    shape.block[d] = unsigned(task.launch.block[d]);
    shape.cluster[d] = unsigned(task.launch.cluster[d]);
  }
  shape.sharedBytes = unsigned(task.launch.sharedBytes);
  ptx::LaunchOptions options;
  options.blocks.assign(what.begin(), what.end());
  options.instructionBudget = budget;
  options.checkRaces = options.trackTaint = options.checkUninitialized = false;
  options.shadow = shadow;
  options.mostFindings = 4;
  return gpu->launch(module, task.reference.entry, shape, params, options);
}

//===----------------------------------------------------------------------===//
// What part runs
//===----------------------------------------------------------------------===//

/// The finding that stopped a launch.
static std::string stopText(const ptx::LaunchResult &result) {
  return result.findings.empty() ? "it did not end"
                                 : result.findings.front().text();
}

static bool isTooLong(const ptx::LaunchResult &result) {
  return llvm::any_of(result.findings, [](const ptx::Finding &finding) {
    return finding.kind == ptx::FindingKind::Budget;
  });
}

bool Oracle::choose() {
  isWholeGrid = false;
  chosen.clear();
  const auto &grid = task.launch.grid, &block = task.launch.block;
  // Beyond what can be launched; their products may be beyond 64 bits.
  if (grid[0] > mostBlocks || grid[1] > 65535 || grid[2] > 65535 ||
      block[0] > 1024 || block[1] > 1024 || block[2] > 1024 ||
      grid[0] * grid[1] > mostBlocks / grid[2] ||
      block[0] * block[1] * block[2] > 1024)
    return giveUp("its grid is beyond what a virtual device takes");
  uint64_t blocks = uint64_t(grid[0]) * uint64_t(grid[1]) * uint64_t(grid[2]);
  uint64_t threads =
      uint64_t(block[0]) * uint64_t(block[1]) * uint64_t(block[2]);
  bool byWarp = facts.warpsTalk.empty(), byLane = facts.lanesTalk.empty();
  uint64_t warps = byWarp ? (threads + 31) / 32 : 1, units = blocks * warps;
  const char *name = byLane ? "thread" : byWarp ? "warp" : "block";
  auto unitAt = [&](uint64_t i, uint32_t lanes) {
    return ptx::ChosenBlock{
        i / warps, byWarp ? uint32_t(1) << i % warps : ~uint32_t(0), lanes};
  };
  // As lanes of the last warp may not exist, the first stands for all.
  if (!costOfUnit) {
    uint64_t unit = random() % units;
    auto one = launch(unitAt(unit, byLane ? 1 : ~uint32_t(0)), false,
                      budgetOfLaunch());
    if (!one) {
      hopeless = llvm::toString(one.takeError());
      return giveUp(hopeless);
    }
    // What it wrote stands beside what the chosen part will write.
    forgetOutputs();
    if (!one->completed && isTooLong(*one))
      return giveUp(llvm::formatv("one {0} of it runs for more than {1} warp "
                                  "instructions",
                                  name, budgetOfLaunch()));
    if (!one->completed)
      return giveUp(stopText(*one));
    costOfUnit = std::max<uint64_t>(1, one->counters.laneInstructions);
  }
  // What shadow mode takes goes by lanes.
  uint64_t wanted = 32 * limits.instructions / costOfUnit;
  if (wanted >= (byLane ? blocks * threads : units)) {
    isWholeGrid = true;
    part = llvm::formatv("all {0} blocks", blocks);
    return learnNeeds();
  }
  if (!facts.blocksTalk.empty())
    return giveUp("its blocks may look at one another by " + facts.blocksTalk +
                  ", and all of them run for too long");
  if (!wanted)
    return giveUp(llvm::formatv("one {0} of it runs for {1} instructions of a "
                                "lane; the budget is {2}",
                                name, costOfUnit, 32 * limits.instructions));
  uint32_t lanes = ~uint32_t(0);
  std::string ofEach;
  if (byLane) {
    // A few lanes of many warps say more than many of a few.
    uint64_t count =
        std::min(wanted, std::max<uint64_t>(wanted / units, lanesAWarp));
    count = std::min<uint64_t>(count, std::min<uint64_t>(32, threads));
    for (lanes = 0; uint64_t(llvm::popcount(lanes)) < count;)
      lanes |= uint32_t(1) << random() % std::min<uint64_t>(32, threads);
    wanted = std::max<uint64_t>(1, wanted / count);
    ofEach = llvm::formatv(", {0} lanes of each", count);
  }
  wanted = std::min<uint64_t>(wanted, std::min<uint64_t>(units, mostUnits));
  std::set<uint64_t> drawn;
  // Edges are where guards are.
  if (wanted > 1)
    drawn.insert(units - 1);
  if (wanted > 2)
    drawn.insert(0);
  while (drawn.size() < wanted)
    drawn.insert(random() % units);
  std::map<uint64_t, uint32_t> byBlock;
  for (uint64_t unit : drawn)
    byBlock[unitAt(unit, lanes).number] |= unitAt(unit, lanes).warps;
  for (auto [number, ofBlock] : byBlock)
    chosen.push_back({number, ofBlock, lanes});
  part = llvm::formatv("{0} of {1} {2}s{3}, drawn at random", wanted, units,
                       byWarp ? "warp" : "block", ofEach);
  return learnNeeds();
}

bool Oracle::learnNeeds() {
  uint64_t total = 0;
  for (Buffer &buffer : buffers) {
    buffer.needed.clear();
    buffer.needed.resize(
        unsigned((buffer.extent + sectorBytes - 1) / sectorBytes));
    if (buffer.isRead)
      total += buffer.extent;
  }
  if (total <= limits.smallBytes) {
    for (Buffer &buffer : buffers)
      if (buffer.isRead)
        buffer.needed.set();
    return true;
  }
  auto dry = launch(chosen, false, budgetOfLaunch());
  if (!dry)
    return giveUp(llvm::toString(dry.takeError()));
  if (!dry->completed)
    return giveUp(stopText(*dry));
  std::vector<Runs> missing;
  findMissing(missing);
  forgetOutputs();
  total = 0;
  for (const Buffer &buffer : buffers)
    for (auto run : runsOf(buffer.needed, buffer.extent, mostGap))
      total += run.second;
  if (total > limits.bytes)
    return giveUp(llvm::formatv("it reads {0} bytes, too many to copy", total));
  return true;
}

bool Oracle::findMissing(std::vector<Runs> &missing) {
  bool any = false;
  missing.assign(buffers.size(), {});
  for (size_t i = 0; i < buffers.size(); ++i) {
    Buffer &buffer = buffers[i];
    if (!buffer.isRead || !buffer.extent)
      continue;
    llvm::BitVector before = buffer.needed;
    llvm::consumeError(gpu->forTouched(
        buffer.address, buffer.extent, [&](uint64_t at, uint64_t bytes) {
          unsigned from = unsigned((at - buffer.address) / sectorBytes);
          unsigned to = unsigned(
              (at + bytes - buffer.address + sectorBytes - 1) / sectorBytes);
          buffer.needed.set(from, to);
        }));
    before.flip();
    before &= buffer.needed;
    missing[i] = runsOf(before, buffer.extent, mostGap);
    any |= !missing[i].empty();
  }
  return any;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

llvm::Error
Oracle::fetchRuns(Buffer &buffer,
                  llvm::ArrayRef<std::pair<uint64_t, uint64_t>> runs,
                  Fetch fetch) {
  bool isInPlace = buffer.isWritten;
  if (isInPlace)
    buffer.kept.clear();
  std::vector<uint8_t> bytes;
  for (auto [from, count] : runs) {
    bytes.resize(count);
    if (llvm::Error error = fetch(buffer.argument, from, bytes.data(), count))
      return error;
    if (llvm::Error error =
            gpu->write(buffer.address + from, bytes.data(), count))
      return error;
    if (isInPlace)
      buffer.kept.push_back({from, bytes});
  }
  return llvm::Error::success();
}

llvm::Error Oracle::prepare(const OracleLimits &wanted, Fetch fetch) {
  if (!hopeless.empty()) {
    why = hopeless;
    return llvm::Error::success();
  }
  if (!isChosen || wanted.instructions != limits.instructions) {
    limits = wanted;
    isChosen = true;
    why.clear();
    choose();
    noPart = why;
  }
  why = noPart;
  if (!why.empty())
    return llvm::Error::success();
  for (Buffer &buffer : buffers)
    if (buffer.isRead)
      if (llvm::Error error = fetchRuns(
              buffer, runsOf(buffer.needed, buffer.extent, mostGap), fetch))
        return error;
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Truth
//===----------------------------------------------------------------------===//

void Oracle::forgetOutputs() {
  for (const Buffer &buffer : buffers) {
    if (buffer.isRead || !buffer.extent)
      continue;
    Runs runs;
    llvm::consumeError(gpu->forTouched(
        buffer.address, buffer.extent,
        [&](uint64_t at, uint64_t bytes) { runs.push_back({at, bytes}); }));
    for (auto [at, bytes] : runs)
      llvm::consumeError(gpu->setUninitialized(at, bytes));
  }
}

void Oracle::restoreInPlace() {
  for (const Buffer &buffer : buffers)
    for (const auto &[from, bytes] : buffer.kept)
      llvm::consumeError(
          gpu->write(buffer.address + from, bytes.data(), bytes.size()));
}

llvm::Expected<Truth> Oracle::solve(Fetch fetch) {
  Truth truth;
  truth.part = part;
  truth.why = why;
  if (!why.empty())
    return truth;
  for (unsigned attempt = 0;; ++attempt) {
    auto result = launch(chosen, true, budgetOfLaunch());
    if (!result) {
      truth.why = hopeless = llvm::toString(result.takeError());
      return truth;
    }
    spent += result->counters.laneInstructions / 32;
    std::vector<Runs> missing;
    if (!findMissing(missing)) {
      if (!result->completed)
        truth.why = isTooLong(*result)
                        ? std::string("it runs longer on these inputs than the "
                                      "budget allows")
                        : stopText(*result);
      else if (!result->shadowDoubt.empty())
        truth.why = "on these inputs " + result->shadowDoubt;
      else
        for (const Buffer &buffer : buffers)
          readBuffer(buffer, truth);
      break;
    }
    if (attempt + 1 == mostAttempts) {
      truth.why =
          "where it reads depends on what it reads, too many times over";
      break;
    }
    forgetOutputs();
    for (size_t i = 0; i < buffers.size() && truth.why.empty(); ++i) {
      if (missing[i].empty())
        continue;
      if (buffers[i].isWritten)
        truth.why = "where it reads an in-place buffer depends on its inputs";
      else if (llvm::Error error = fetchRuns(buffers[i], missing[i], fetch))
        return std::move(error);
    }
    if (!truth.why.empty())
      return truth;
    restoreInPlace();
  }
  forgetOutputs();
  return truth;
}

void Oracle::readBuffer(const Buffer &buffer, Truth &truth) {
  const Argument &argument = task.arguments[buffer.argument];
  auto type = ptxType(argument.element);
  if (!buffer.isWritten || !buffer.extent || !type || overlaps(argument))
    return;
  TrueBuffer to;
  to.argument = buffer.argument;
  to.isWhole = isWholeGrid;
  Layout layout(argument);
  unsigned size = byteSize(argument.element);
  auto look = [&](uint64_t at, uint64_t end, const uint8_t *before) {
    uint64_t from = at;
    for (; at + size <= end; at += size) {
      auto index = layout.indexOf((at - buffer.address) / size);
      if (!index)
        continue;
      auto value = gpu->readShadow(at, *type);
      if (!value) {
        llvm::consumeError(value.takeError());
        return;
      }
      if (before && !value->isKnown) {
        // In place, and as it was: nobody need have written it.
        uint64_t bits = 0;
        llvm::consumeError(gpu->read(&bits, at, size));
        if (!memcmp(&bits, before + (at - from), size))
          continue;
      }
      to.elements.push_back(
          {*index, (at - buffer.address) / size, value->value, value->bound});
    }
  };
  if (buffer.isRead) {
    for (const auto &[from, bytes] : buffer.kept)
      look(buffer.address + from, buffer.address + from + bytes.size(),
           bytes.data());
  } else {
    Runs runs;
    llvm::consumeError(gpu->forTouched(
        buffer.address, buffer.extent,
        [&](uint64_t at, uint64_t bytes) { runs.push_back({at, bytes}); }));
    for (auto [at, bytes] : runs)
      llvm::consumeError(
          gpu->forWritten(at, bytes, [&](uint64_t from, uint64_t count) {
            look(from, from + count, nullptr);
          }));
  }
  if (!to.elements.empty())
    truth.buffers.push_back(std::move(to));
}

} // namespace fsr
