// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Allocation, filling, poison, guards and stashes. Sizes come from a peer, so
// all sums are checked before anything is allocated.
//
//===----------------------------------------------------------------------===//

#include "Buffers.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace fsr {

namespace {

constexpr uint64_t guardBytes = 64 * 1024;
/// What the driver gives, and what the data gets where nothing forbids it.
constexpr uint64_t naturalAlignment = 256;
/// Above the memory of any device.
constexpr uint64_t mostBytes = uint64_t(1) << 46;
/// For outputs of the launches of a batch.
constexpr uint64_t spreadBytes = uint64_t(1) << 30;

double parameterOr(const FillRecipe &recipe, size_t i, double standard) {
  return i < recipe.parameters.size() ? recipe.parameters[i] : standard;
}

struct FamilyDefaults {
  double a, b, c = 0;
};

FamilyDefaults defaultsOf(FsrFamily family) {
  switch (family) {
  case FsrNormal:
  case FsrUniform:
    return {0, 1};
  case FsrLogUniform:
    return {0.0009765625, 1024};
  case FsrBernoulli:
  case FsrSigns:
    return {0.5, 0};
  case FsrIntegers:
    return {0, 15};
  case FsrAlternating:
    return {1024, 0.0009765625};
  case FsrEqual:
  case FsrOneHot:
    return {1, 0};
  case FsrZeros:
  case FsrDenormal:
  case FsrIota:
    return {0, 0};
  case FsrTails:
    return {1, 0.01, 100};
  case FsrSpike:
    return {1, 100};
  case FsrShiftedNormal:
  case FsrShiftedUniform:
    return {-1, 1, 1};
  case FsrSines:
  case FsrSorted:
  case FsrReversed:
    return {0, 1};
  case FsrZipf:
    return {0, 15};
  case FsrGram:
    return {1024, 0};
  case FsrSpecials:
    return {0.01, 0.01};
  case FsrPeaks:
    return {16, 1};
  case FsrScaled:
    return {0.0009765625, 1024};
  case FsrMasked:
    return {-std::numeric_limits<double>::infinity(), 0};
  case FsrDominated:
    return {1, 1, 0};
  }
  return {0, 0};
}

llvm::Error checkShape(const Argument &argument) {
  if (argument.sizes.size() > 8 ||
      argument.sizes.size() != argument.strides.size())
    return makeError(ErrorKind::Unsupported,
                     "buffer " + argument.name + " has rank " +
                         llvm::Twine(argument.sizes.size()) + " with " +
                         llvm::Twine(argument.strides.size()) +
                         " strides; the worker takes up to rank 8");
  for (size_t d = 0; d < argument.sizes.size(); ++d)
    if (argument.sizes[d] < 0 || argument.strides[d] < 0)
      return makeError(ErrorKind::Unsupported,
                       "buffer " + argument.name +
                           " has a negative size or stride in dimension " +
                           llvm::Twine(d));
  if (argument.offset < 0)
    return makeError(ErrorKind::Unsupported,
                     "buffer " + argument.name + " has a negative offset");
  return llvm::Error::success();
}

/// A power of two.
uint64_t provedAlignment(const Argument &argument) {
  return llvm::bit_floor(std::max<uint64_t>(
      byteSize(argument.element), std::max<int64_t>(1, argument.alignment)));
}

} // namespace

uint64_t TaskBuffer::row() const {
  return argument->sizes.empty() ? 1
                                 : std::max<int64_t>(1, argument->sizes.back());
}

bool TaskBuffer::written() const {
  return argument->access == Access::Write ||
         argument->access == Access::ReadWrite;
}

bool TaskBuffer::contiguous() const {
  int64_t expected = 1;
  for (size_t d = argument->sizes.size(); d-- > 0;) {
    if (argument->sizes[d] != 1 && argument->strides[d] != expected)
      return false;
    expected *= argument->sizes[d];
  }
  return true;
}

bool TaskBuffer::overlapping() const {
  // Sorted by stride, each dimension must step over all inner ones.
  std::vector<std::pair<int64_t, int64_t>> dims;
  for (size_t d = 0; d < argument->sizes.size(); ++d)
    if (argument->sizes[d] > 1)
      dims.push_back({argument->strides[d], argument->sizes[d]});
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach)
      return true;
    reach += stride * (size - 1);
  }
  return false;
}

uint64_t TaskBuffers::poisonBits(Poison poison,
                                 const TaskBuffer &buffer) const {
  return poisonBits(poison, buffer.index, buffer.elementBytes());
}

uint64_t TaskBuffers::poisonBits(Poison poison, uint64_t stream,
                                 unsigned elementBytes) const {
  std::string digest = FieldHasher()
                           .add("poison")
                           .add(int64_t(poisonSeed))
                           .add(int64_t(stream))
                           .add(int64_t(poison))
                           .digest();
  uint64_t random = 0;
  llvm::StringRef(digest).take_front(16).getAsInteger(16, random);
  if (elementBytes == 1)
    return random & 0xFF;
  // Half a word for 16 bits. Any sign and payload of a NaN, but the payloads of
  // those that arithmetic makes; an exponent that is ordinary for 16 bits too,
  // from 2 on.
  auto word = [&](uint32_t bits) -> uint32_t {
    if (poison == Poison::Plain)
      return 0x40000000u | (bits & 0x1FFFFFFFu);
    bits = 0x7FC00000u | (bits & 0x803FFFFFu);
    uint32_t payload = bits & 0x003F0000u;
    if (payload == 0 || payload == 0x003F0000u)
      bits ^= 0x00150000u;
    return bits;
  };
  uint32_t high = word(uint32_t(random >> 32)), low = word(uint32_t(random));
  switch (elementBytes) {
  case 2:
    return high >> 16;
  case 4:
    return high;
  default:
    return uint64_t(high) << 32 | low;
  }
}

llvm::Expected<DevicePointer> TaskBuffers::allocate(uint64_t size) {
  auto memory = helpers.backend().allocate(size);
  if (memory) {
    owned.push_back(*memory);
    bytes += size;
    return *memory;
  }
  return llvm::handleErrors(
      memory.takeError(),
      [&](std::unique_ptr<BackendError> error) -> llvm::Error {
        if (error->isSticky())
          return llvm::Error(std::move(error));
        auto free = helpers.backend().freeMemory();
        std::string left = "an unknown number";
        if (free)
          left = llvm::utostr(*free);
        else
          llvm::consumeError(free.takeError());
        return makeError(ErrorKind::Unavailable,
                         "out of device memory: wanted " +
                             llvm::Twine(bytes + size) +
                             " bytes for this task in all, " +
                             llvm::Twine(size) + " of them now, and " + left +
                             " bytes are free (" + error->name + ")");
      });
}

llvm::Expected<std::unique_ptr<TaskBuffers>>
TaskBuffers::create(Helpers &helpers, const KernelTask &task, bool tight) {
  std::unique_ptr<TaskBuffers> made(new TaskBuffers(helpers));
  made->tight = tight;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    if (!argument.isBuffer)
      continue;
    if (llvm::Error error = checkShape(argument))
      return std::move(error);
    TaskBuffer buffer;
    buffer.argument = &argument;
    buffer.index = i;
    int64_t extent = argument.extentBytes();
    if (extent < 0 || uint64_t(extent) > mostBytes)
      return makeError(ErrorKind::BadInput, "buffer " + argument.name +
                                                " is larger than any device");
    buffer.extent = extent;
    // A virtual device guards each allocation itself, and sees reads too: the
    // first byte behind the data must be the first behind the allocation.
    buffer.total = tight || made->virtualDevice
                       ? buffer.extent
                       : buffer.extent + 2 * guardBytes + 2 * naturalAlignment;
    auto memory = made->allocate(buffer.total);
    if (!memory)
      return memory.takeError();
    buffer.allocation = *memory;
    if (buffer.written() && buffer.extent) {
      auto stash = made->allocate(llvm::alignTo(buffer.extent, 16));
      if (!stash)
        return stash.takeError();
      buffer.stash = *stash;
    }
    made->all.push_back(buffer);
  }
  if (llvm::Error error = made->place(false))
    return std::move(error);
  return made;
}

llvm::Error TaskBuffers::addScratch(const ResolvedPlan &plan) {
  uint64_t wanted = 0;
  for (const ResolvedScratch &scratch : plan.scratch)
    wanted += std::clamp<int64_t>(scratch.bytes, 0, mostBytes);
  auto room = helpers.backend().freeMemory();
  if (!room)
    return room.takeError();
  auto tooMuch = [&] {
    return makeError(ErrorKind::BadInput,
                     "the plan wants " + llvm::Twine(wanted) +
                         " bytes of scratch, and the device has " +
                         llvm::Twine(*room) + " free");
  };
  // Comparisons take copies of what is written.
  if (wanted && wanted > *room - std::min(*room, bytes))
    return tooMuch();
  for (const ResolvedScratch &scratch : plan.scratch) {
    if (scratch.bytes < 0 || uint64_t(scratch.bytes) > mostBytes)
      return makeError(ErrorKind::BadInput, "scratch buffer " + scratch.name +
                                                " is larger than any device");
    ScratchMemory memory;
    memory.plan = &scratch;
    memory.total = virtualDevice || tight
                       ? scratch.bytes
                       : scratch.bytes + 2 * guardBytes + naturalAlignment;
    auto found = allocate(memory.total);
    if (!found) {
      bool isFull = false;
      llvm::Error rest = llvm::handleErrors(
          found.takeError(),
          [&](std::unique_ptr<FsrError> error) -> llvm::Error {
            isFull = error->kind == ErrorKind::Unavailable;
            return isFull ? llvm::Error::success()
                          : llvm::Error(std::move(error));
          });
      if (rest)
        return rest;
      return tooMuch();
    }
    scratchBytes += memory.total;
    memory.allocation = *found;
    memory.data = virtualDevice || tight
                      ? *found
                      : llvm::alignTo(*found + guardBytes, naturalAlignment);
    scratches.push_back(memory);
  }
  return place(false);
}

TaskBuffers::~TaskBuffers() {
  for (DevicePointer pointer : owned)
    llvm::consumeError(helpers.backend().release(pointer));
}

const TaskBuffer *TaskBuffers::find(size_t argument) const {
  for (const TaskBuffer &buffer : all)
    if (buffer.index == argument)
      return &buffer;
  return nullptr;
}

llvm::Error TaskBuffers::place(bool shifted) {
  for (TaskBuffer &buffer : all) {
    uint64_t proved = provedAlignment(*buffer.argument);
    buffer.data =
        virtualDevice || tight
            ? buffer.allocation
            : llvm::alignTo(buffer.allocation + guardBytes, naturalAlignment);
    uint64_t shift =
        shifted && !tight && proved < naturalAlignment ? proved : 0;
    if (virtualDevice && buffer.total != buffer.extent + shift) {
      filled.clear();
      // In its place among the pieces: it is older than those that `dropSince`
      // may be asked to free.
      size_t place = llvm::find(owned, buffer.allocation) - owned.begin();
      if (llvm::Error error = drop(buffer.allocation))
        return error;
      bytes -= buffer.total;
      buffer.total = buffer.extent + shift;
      auto memory = allocate(buffer.total);
      if (!memory)
        return memory.takeError();
      std::rotate(owned.begin() + place, owned.end() - 1, owned.end());
      buffer.allocation = buffer.data = *memory;
    }
    buffer.data += shift;
    uint64_t end = buffer.data + buffer.extent;
    if (llvm::Error error = helpers.setGuard(buffer.allocation,
                                             buffer.data - buffer.allocation))
      return error;
    if (llvm::Error error =
            helpers.setGuard(end, buffer.allocation + buffer.total - end))
      return error;
    if (!virtualDevice)
      continue;
    if (llvm::Error error = virtualDevice->setUninitialized(
            buffer.allocation, buffer.data - buffer.allocation))
      return error;
    if (llvm::Error error = virtualDevice->setUninitialized(
            end, buffer.allocation + buffer.total - end))
      return error;
  }
  for (ScratchMemory &scratch : scratches) {
    uint64_t end = scratch.data + scratch.plan->bytes;
    if (llvm::Error error = helpers.setGuard(scratch.allocation,
                                             scratch.data - scratch.allocation))
      return error;
    if (llvm::Error error =
            helpers.setGuard(end, scratch.allocation + scratch.total - end))
      return error;
  }
  return llvm::Error::success();
}

void TaskBuffers::share(const InputSet &set) {
  for (TaskBuffer &buffer : all) {
    size_t standIn =
        set.standIns.empty() ? buffer.index : set.standIns[buffer.index];
    buffer.shared = standIn == buffer.index ? 0 : find(standIn)->data;
  }
}

llvm::Error TaskBuffers::fill(const InputSet &set, bool onlyWritten) {
  for (const TaskBuffer &buffer : all) {
    if (buffer.poisoned() || (onlyWritten && !buffer.written()))
      continue;
    if (holdsAnswer(buffer)) {
      if (llvm::Error error = helpers.copy(
              buffer.data, answers.at(buffer.index), buffer.extent))
        return error;
      if (virtualDevice)
        if (llvm::Error error =
                virtualDevice->setTainted(buffer.data, buffer.extent))
          return error;
      continue;
    }
    FillRecipe recipe = set.fills[buffer.index];
    if (recipe.family == "drifting")
      recipe = drifted(recipe, set.seed + buffer.index);
    auto family = familyCode(recipe.family);
    if (!family)
      return makeError(ErrorKind::BadInput, "buffer " + buffer.argument->name +
                                                ": unknown fill family '" +
                                                recipe.family + "'");
    FamilyDefaults defaults = defaultsOf(*family);
    FsrFill fill{};
    fill.to = buffer.data;
    fill.count = buffer.storageElements();
    // One stream of random numbers a buffer.
    fill.seed = set.seed + 0x9E3779B97F4A7C15ull * (buffer.index + 1);
    fill.other = set.otherSeed + 0x9E3779B97F4A7C15ull * (buffer.index + 1);
    if (isFloat(buffer.argument->element) && set.kept > 0) {
      fill.kept = set.kept;
      fill.other = set.otherSeed;
    }
    fill.changed = set.answered ? 0 : set.changed;
    fill.row = buffer.row();
    fill.a = parameterOr(recipe, 0, defaults.a);
    fill.b = parameterOr(recipe, 1, defaults.b);
    fill.c = parameterOr(recipe, 2, defaults.c);
    if (isFloat(buffer.argument->element))
      fill.perturb = set.perturb * unitRoundoff(buffer.argument->element);
    fill.turn = set.perturbTurn;
    fill.element = static_cast<uint32_t>(buffer.argument->element);
    fill.family = *family;
    // On a virtual device nothing writes what kernels only read.
    auto planted = llvm::find_if(set.planted, [&](const Planted &one) {
      return one.argument == buffer.index;
    });
    bool stays =
        virtualDevice && !buffer.written() && planted == set.planted.end();
    if (stays && llvm::any_of(filled, [&](const FsrFill &known) {
          return !std::memcmp(&known, &fill, sizeof(fill));
        }))
      continue;
    if (llvm::Error error = helpers.fill(fill))
      return error;
    llvm::erase_if(filled,
                   [&](const FsrFill &known) { return known.to == fill.to; });
    if (stays)
      filled.push_back(fill);
    if (planted != set.planted.end())
      if (llvm::Error error = plant(buffer, *planted))
        return error;
    if (virtualDevice)
      if (llvm::Error error =
              virtualDevice->setTainted(buffer.data, buffer.extent))
        return error;
  }
  return llvm::Error::success();
}

llvm::Error TaskBuffers::poisonOutputs(Poison poison) {
  for (size_t i = 0; i < all.size(); ++i) {
    const TaskBuffer &buffer = all[i];
    if (!buffer.poisoned())
      continue;
    auto fill = [&](DevicePointer data) {
      llvm::Error error =
          holdsAnswer(buffer)
              ? helpers.copy(data, answers.at(buffer.index), buffer.extent)
              : helpers.poison(data, buffer.storageElements(),
                               buffer.elementBytes(),
                               poisonBits(poison, buffer));
      if (error || !virtualDevice)
        return error;
      return virtualDevice->setUninitialized(data, buffer.extent);
    };
    if (llvm::Error error = fill(buffer.data))
      return error;
    for (const std::vector<DevicePointer> &set : outputSets)
      if (llvm::Error error = fill(set[i]))
        return error;
  }
  return llvm::Error::success();
}

llvm::Expected<bool> TaskBuffers::keepAnswer() {
  auto isKept = [](const TaskBuffer &buffer) {
    return buffer.written() && buffer.extent &&
           (buffer.poisoned() || isFloat(buffer.argument->element));
  };
  uint64_t wanted = 0;
  for (const TaskBuffer &buffer : all)
    wanted += isKept(buffer) ? llvm::alignTo(buffer.extent, 16) : 0;
  auto free = helpers.backend().freeMemory();
  if (!free)
    return free.takeError();
  // Copies of a comparison come besides.
  if (wanted > *free / 2)
    return false;
  std::map<size_t, DevicePointer> kept;
  for (const TaskBuffer &buffer : all) {
    if (!isKept(buffer))
      continue;
    auto copy = extra(buffer.extent);
    if (!copy)
      return copy.takeError();
    kept[buffer.index] = *copy;
    if (llvm::Error error = helpers.copy(*copy, buffer.data, buffer.extent))
      return std::move(error);
  }
  answers = std::move(kept);
  return true;
}

llvm::Error TaskBuffers::forgetAnswer() {
  for (auto [argument, memory] : std::exchange(answers, {}))
    if (llvm::Error error = drop(memory))
      return error;
  return llvm::Error::success();
}

llvm::Expected<int64_t> TaskBuffers::spreadOutputs(int64_t wanted) {
  uint64_t bytesOfSet = 0;
  for (const TaskBuffer &buffer : all)
    if (buffer.poisoned())
      bytesOfSet += llvm::alignTo(buffer.extent, naturalAlignment);
  if (bytesOfSet) {
    auto free = helpers.backend().freeMemory();
    if (!free)
      return free.takeError();
    // The plan's scratch is allocated once more while a launch is timed.
    uint64_t room = std::min<uint64_t>(spreadBytes, *free / 2);
    wanted = std::min<int64_t>(wanted, 1 + room / bytesOfSet);
  }
  while (int64_t(outputSets.size()) + 1 < wanted) {
    std::vector<DevicePointer> set(all.size());
    for (size_t i = 0; i < all.size(); ++i) {
      if (!all[i].poisoned())
        continue;
      auto data = extra(all[i].extent);
      if (!data)
        return data.takeError();
      set[i] = *data;
    }
    outputSets.push_back(std::move(set));
  }
  return std::max<int64_t>(1, wanted);
}

void TaskBuffers::useOutputs(int64_t i) {
  if (ownData.empty())
    for (const TaskBuffer &buffer : all)
      ownData.push_back(buffer.data);
  for (size_t b = 0; b < all.size(); ++b)
    all[b].data =
        i > 0 && all[b].poisoned() ? outputSets[i - 1][b] : ownData[b];
  if (i == 0)
    ownData.clear();
}

llvm::Error TaskBuffers::poisonScratch() {
  for (auto [i, scratch] : llvm::enumerate(scratches)) {
    // Behind the streams of all arguments.
    uint64_t bits = poisonBits(Poison::NaN, (uint64_t(1) << 32) + i, 1);
    if (llvm::Error error =
            helpers.poison(scratch.data, scratch.plan->bytes, 1, bits))
      return error;
    if (virtualDevice)
      if (llvm::Error error = virtualDevice->setUninitialized(
              scratch.data, scratch.plan->bytes))
        return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<uint64_t>> TaskBuffers::hashReadOnly() {
  std::vector<uint64_t> hashes;
  for (const TaskBuffer &buffer : all) {
    if (buffer.written())
      continue;
    auto hash = helpers.hash(buffer.data, buffer.storageElements(),
                             buffer.elementBytes());
    if (!hash)
      return hash.takeError();
    hashes.push_back(*hash);
  }
  return hashes;
}

llvm::Expected<std::vector<uint64_t>> TaskBuffers::hashWritten() {
  std::vector<uint64_t> hashes;
  for (const TaskBuffer &buffer : all) {
    if (!buffer.written())
      continue;
    auto hash = helpers.hash(buffer.data, buffer.storageElements(),
                             buffer.elementBytes());
    if (!hash)
      return hash.takeError();
    hashes.push_back(*hash);
  }
  return hashes;
}

llvm::Expected<std::string> TaskBuffers::findGuardDamage() {
  auto look = [&](llvm::StringRef what, DevicePointer allocation,
                  uint64_t total, DevicePointer data,
                  uint64_t extent) -> llvm::Expected<std::string> {
    auto before = helpers.checkGuard(allocation, data - allocation);
    if (!before)
      return before.takeError();
    if (before->changed)
      return llvm::formatv("wrote {0} bytes in front of {1}, up to {2} bytes "
                           "before its first element",
                           before->changed, what,
                           data - allocation - before->first)
          .str();
    auto behind =
        helpers.checkGuard(data + extent, allocation + total - data - extent);
    if (!behind)
      return behind.takeError();
    if (behind->changed)
      return llvm::formatv("wrote {0} bytes behind {1}, from {2} bytes after "
                           "its end",
                           behind->changed, what, behind->first)
          .str();
    return std::string();
  };
  for (const TaskBuffer &buffer : all) {
    auto damage = look("buffer " + buffer.argument->name, buffer.allocation,
                       buffer.total, buffer.data, buffer.extent);
    if (!damage || !damage->empty())
      return damage;
  }
  for (const ScratchMemory &scratch : scratches) {
    auto damage =
        look("scratch buffer " + scratch.plan->name, scratch.allocation,
             scratch.total, scratch.data, scratch.plan->bytes);
    if (!damage || !damage->empty())
      return damage;
  }
  return std::string();
}

llvm::Error TaskBuffers::plant(const TaskBuffer &buffer,
                               const Planted &planted) {
  // The device knows how its types hold a number. Some that differ: equal ones
  // may cancel.
  constexpr uint64_t several = 61;
  unsigned size = buffer.elementBytes();
  auto values = extra(several * size);
  if (!values)
    return values.takeError();
  FsrFill fill{};
  fill.to = *values;
  fill.count = fill.row = several;
  fill.a = fill.b = planted.value;
  fill.seed = planted.elements->count();
  fill.element = static_cast<uint32_t>(buffer.argument->element);
  fill.family = FsrEqual;
  if (isFloat(buffer.argument->element)) {
    fill.family = FsrUniform;
    fill.b *= 1.5;
  }
  if (llvm::Error error = helpers.fill(fill))
    return error;
  std::vector<uint8_t> bits(several * size), all(buffer.extent);
  Backend &backend = helpers.backend();
  if (llvm::Error error = backend.copyToHost(bits.data(), *values, bits.size(),
                                             helpers.stream()))
    return error;
  if (llvm::Error error = backend.copyToHost(all.data(), buffer.data,
                                             buffer.extent, helpers.stream()))
    return error;
  if (llvm::Error error = helpers.synchronize())
    return error;
  for (unsigned i : planted.elements->set_bits())
    std::memcpy(all.data() + uint64_t(i) * size,
                bits.data() + i % several * size, size);
  if (llvm::Error error = backend.copyToDevice(buffer.data, all.data(),
                                               buffer.extent, helpers.stream()))
    return error;
  if (llvm::Error error = helpers.synchronize())
    return error;
  return drop(*values);
}

llvm::Error TaskBuffers::protectInputs(bool protect) {
  for (const TaskBuffer &buffer : all)
    if (virtualDevice && !buffer.written())
      if (llvm::Error error =
              virtualDevice->setConst(buffer.allocation, protect))
        return error;
  return llvm::Error::success();
}

llvm::Error TaskBuffers::stashOutputs() {
  for (const TaskBuffer &buffer : all)
    if (buffer.stash)
      if (llvm::Error error =
              helpers.copy(buffer.stash, buffer.data, buffer.extent))
        return error;
  return llvm::Error::success();
}

llvm::Error TaskBuffers::maskStashes(uint64_t key) {
  for (const TaskBuffer &buffer : all)
    if (buffer.stash)
      if (llvm::Error error =
              helpers.mask(buffer.stash, buffer.extent, key + buffer.index))
        return error;
  return llvm::Error::success();
}

llvm::Expected<DevicePointer> TaskBuffers::extra(uint64_t wanted) {
  return allocate(std::max<uint64_t>(16, llvm::alignTo(wanted, 16)));
}

llvm::Error TaskBuffers::drop(DevicePointer pointer) {
  auto found = std::find(owned.begin(), owned.end(), pointer);
  assert(found != owned.end() && "not allocated here");
  owned.erase(found);
  return helpers.backend().release(pointer);
}

llvm::Error TaskBuffers::dropSince(size_t pieces) {
  while (owned.size() > pieces)
    if (llvm::Error error = drop(owned.back()))
      return error;
  return llvm::Error::success();
}

FsrCompare TaskBuffers::comparison(const TaskBuffer &buffer, DevicePointer out,
                                   DevicePointer reference) const {
  FsrCompare compare{};
  compare.out = out;
  compare.reference = reference;
  compare.count = std::max<int64_t>(0, buffer.argument->numElements());
  compare.row = buffer.row();
  compare.element = static_cast<uint32_t>(buffer.argument->element);
  compare.layout.rank = buffer.argument->sizes.size();
  for (size_t d = 0; d < buffer.argument->sizes.size(); ++d) {
    compare.layout.size[d] = buffer.argument->sizes[d];
    compare.layout.stride[d] = buffer.argument->strides[d];
  }
  return compare;
}

} // namespace fsr
