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

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <thread>

namespace fsr {

namespace {

constexpr size_t mostUnits = 4096;
/// Of threads that do not look at one another, so many of a warp run.
constexpr uint64_t lanesAWarp = 8;
constexpr unsigned mostAttempts = 4;
/// A part is cut into no more pieces for as many host threads.
constexpr unsigned mostPieces = 16;

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

/// The bits of `mask` by turns in so many masks, or as many as it has bits.
std::vector<uint32_t> split(uint32_t mask, unsigned pieces) {
  pieces = std::min<unsigned>(pieces, llvm::popcount(mask));
  std::vector<uint32_t> parts(pieces);
  for (unsigned i = 0; mask; mask &= mask - 1, ++i)
    parts[i % pieces] |= mask & -mask;
  return parts;
}

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
    : task(task), random(seed), copied(task) {
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
  if (llvm::Error error = copied.open(ptx, {}))
    return fail(std::move(error));
  auto block = copied.parameterBlock(task.reference.entry,
                                     packReference(task, [&](size_t argument) {
                                       return copied.addressOf(argument);
                                     }));
  if (!block)
    return fail(block.takeError());
  params = std::move(*block);
}

llvm::Expected<ptx::LaunchResult>
Oracle::launch(llvm::ArrayRef<ptx::ChosenBlock> what, bool shadow,
               uint64_t budget) {
  ptx::LaunchOptions options;
  options.blocks.assign(what.begin(), what.end());
  options.instructionBudget = budget;
  options.hostThreads = limits.hostThreads;
  options.checkRaces = options.trackTaint = options.checkUninitialized = false;
  options.shadow = shadow;
  options.mostFindings = 4;
  return copied.gpu().launch(copied.module(), task.reference.entry,
                             virtualShape(task.launch), params, options);
}

//===----------------------------------------------------------------------===//
// What part runs
//===----------------------------------------------------------------------===//

bool Oracle::choose() {
  isWholeGrid = false;
  chosen.clear();
  auto size = sizeOf(task.launch);
  if (!size)
    return giveUp("its grid is beyond what a virtual device takes");
  auto [blocks, threads] = *size;
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
    copied.noteTouched();
    copied.forgetOutputs();
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
    spread(blocks, unsigned((threads + 31) / 32), byWarp, byLane);
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
  std::map<uint64_t, uint32_t> byBlock;
  for (uint64_t unit : drawUnits(random, units, wanted))
    byBlock[unitAt(unit, lanes).number] |= unitAt(unit, lanes).warps;
  for (auto [number, ofBlock] : byBlock)
    chosen.push_back({number, ofBlock, lanes});
  part = llvm::formatv("{0} of {1} {2}s{3}, drawn at random", wanted, units,
                       byWarp ? "warp" : "block", ofEach);
  spread(blocks, unsigned((threads + 31) / 32), byWarp, byLane);
  return learnNeeds();
}

/// A block runs on one host thread. Where few of them run, and their warps or
/// lanes do not look at one another, each stands there several times, with
/// other warps or lanes each time.
void Oracle::spread(uint64_t blocks, unsigned warps, bool byWarp, bool byLane) {
  unsigned threads = limits.hostThreads ? limits.hostThreads
                                        : std::thread::hardware_concurrency();
  unsigned wanted = std::clamp(threads, 1u, mostPieces);
  uint64_t count = chosen.empty() ? blocks : chosen.size();
  if (!byWarp || count >= wanted)
    return;
  if (chosen.empty())
    for (uint64_t number = 0; number < blocks; ++number)
      chosen.push_back({number});
  unsigned piecesOfEach = unsigned((wanted + count - 1) / count);
  uint32_t existing = warps < 32 ? (uint32_t(1) << warps) - 1 : ~uint32_t(0);
  std::vector<ptx::ChosenBlock> pieces;
  for (const ptx::ChosenBlock &block : chosen) {
    std::vector<uint32_t> ofWarps = split(block.warps & existing, piecesOfEach);
    unsigned left = unsigned((piecesOfEach + ofWarps.size() - 1) /
                             std::max<size_t>(1, ofWarps.size()));
    std::vector<uint32_t> ofLanes = split(block.lanes, byLane ? left : 1);
    for (uint32_t some : ofWarps)
      for (uint32_t lanes : ofLanes)
        pieces.push_back({block.number, some, lanes});
  }
  chosen = std::move(pieces);
}

bool Oracle::learnNeeds() {
  copied.needNothing();
  if (copied.bytesRead() <= limits.smallBytes) {
    copied.needAll();
    return true;
  }
  auto dry = launch(chosen, false, budgetOfLaunch());
  if (!dry)
    return giveUp(llvm::toString(dry.takeError()));
  if (!dry->completed)
    return giveUp(stopText(*dry));
  copied.noteTouched();
  copied.forgetOutputs();
  std::vector<ByteRuns> missing;
  copied.findMissing(missing);
  uint64_t total = copied.bytesNeeded();
  if (total > limits.bytes)
    return giveUp(llvm::formatv("it reads {0} bytes, too many to copy", total));
  return true;
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
  return copied.fetchNeeded(fetch);
}

//===----------------------------------------------------------------------===//
// Truth
//===----------------------------------------------------------------------===//

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
    copied.noteTouched();
    std::vector<ByteRuns> missing;
    if (!copied.findMissing(missing)) {
      if (!result->completed)
        truth.why = isTooLong(*result)
                        ? std::string("it runs longer on these inputs than the "
                                      "budget allows")
                        : stopText(*result);
      else if (!result->shadowDoubt.empty())
        truth.why = "on these inputs " + result->shadowDoubt;
      else
        for (const Buffer &buffer : copied.buffers())
          readBuffer(buffer, truth);
      break;
    }
    if (attempt + 1 == mostAttempts) {
      truth.why =
          "where it reads depends on what it reads, too many times over";
      break;
    }
    copied.forgetOutputs();
    llvm::MutableArrayRef<Buffer> buffers = copied.buffers();
    for (size_t i = 0; i < buffers.size() && truth.why.empty(); ++i) {
      if (missing[i].empty())
        continue;
      if (buffers[i].isWritten)
        truth.why = "where it reads an in-place buffer depends on its inputs";
      else if (llvm::Error error =
                   copied.fetchRuns(buffers[i], missing[i], fetch))
        return std::move(error);
    }
    if (!truth.why.empty())
      return truth;
    copied.restoreInPlace();
  }
  copied.forgetOutputs();
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
  ptx::VirtualGpu &gpu = copied.gpu();
  Layout layout(argument);
  unsigned size = byteSize(argument.element);
  auto look = [&](uint64_t at, uint64_t end, const uint8_t *before) {
    uint64_t from = at;
    for (; at + size <= end; at += size) {
      auto index = layout.indexOf((at - buffer.address) / size);
      if (!index)
        continue;
      auto value = gpu.readShadow(at, *type);
      if (!value) {
        llvm::consumeError(value.takeError());
        return;
      }
      if (before && !value->isKnown) {
        // In place, and as it was: nobody need have written it.
        uint64_t bits = 0;
        llvm::consumeError(gpu.read(&bits, at, size));
        if (!memcmp(&bits, before + (at - from), size))
          continue;
      }
      to.elements.push_back(
          {*index, (at - buffer.address) / size, value->value, value->bound});
    }
  };
  // What no thread touched is as it was: most of a large buffer.
  ByteRuns runs;
  llvm::consumeError(gpu.forTouched(
      buffer.address, buffer.extent,
      [&](uint64_t at, uint64_t bytes) { runs.push_back({at, bytes}); }));
  if (buffer.isRead) {
    for (const auto &[from, bytes] : buffer.kept)
      for (auto [at, count] : runs) {
        uint64_t begin = std::max(at, buffer.address + from);
        uint64_t end =
            std::min(at + count, buffer.address + from + bytes.size());
        if (begin < end)
          look(begin, end, bytes.data() + (begin - buffer.address - from));
      }
  } else {
    for (auto [at, bytes] : runs)
      llvm::consumeError(
          gpu.forWritten(at, bytes, [&](uint64_t from, uint64_t count) {
            look(from, from + count, nullptr);
          }));
  }
  if (!to.elements.empty())
    truth.buffers.push_back(std::move(to));
}

} // namespace fsr
