// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shadows that go from place to place as they are: moves, packs, selections,
// shuffles, loads and stores; and what atomics make of them in memory.
//
//===----------------------------------------------------------------------===//

#include "AsyncCopy.h"
#include "Decode.h"
#include "Exchange.h"
#include "MemoryOps.h"
#include "Shadow.h"

#include "llvm/ADT/StringSwitch.h"

#include <cmath>

namespace fsr::ptx {

namespace {

constexpr unsigned granules = ShadowRegisters::granules;
/// Of an operand of 128 bits.
constexpr unsigned mostGranules = 8;

const ShadowInfo &infoOf(const Op &op) {
  return *static_cast<const ShadowInfo *>(op.shadowInfo);
}

/// Halves of an f64 that came together are one again, and one that is split is
/// two. `count` granules.
void joinHalves(ShadowEntry *entries, unsigned count) {
  for (unsigned i = 0; i + 2 < count; i += 4)
    if (entries[i].format == Format::F64Low &&
        entries[i + 2].format == Format::F64High &&
        entries[i].truth == entries[i + 2].truth &&
        entries[i].bound == entries[i + 2].bound) {
      entries[i].format = Format::F64;
      entries[i + 2].format = Format::None;
    }
}
void splitHalves(ShadowEntry *entries, unsigned count) {
  for (unsigned i = 0; i + 2 < count; i += 4)
    if (entries[i].format == Format::F64) {
      entries[i + 2] = entries[i];
      entries[i].format = Format::F64Low;
      entries[i + 2].format = Format::F64High;
    }
}

void readAll(Warp &warp, Slot slot, unsigned lane, unsigned count,
             ShadowEntry *to) {
  for (unsigned g = 0; g < count; ++g) {
    const ShadowEntry *entry = warp.shadow->find(warp, slot, g, lane);
    if (entry)
      to[g] = *entry;
    else
      to[g].format = Format::None;
  }
}
void writeAll(Warp &warp, Slot slot, unsigned lane, unsigned count,
              const ShadowEntry *from) {
  warp.shadow->clear(warp, slot, LaneMask(1) << lane);
  for (unsigned g = 0; g < count; ++g)
    if (from[g].format != Format::None)
      warp.shadow->set(warp, slot, g, lane, from[g]);
}

/// mov of any shape: the granules of all sources, in a row, are those of all
/// results. Widths are of one source and one result.
void move(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  unsigned from = info.sourceBits / 16, to = info.resultBits / 16;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    ShadowEntry entries[mostGranules];
    for (unsigned i = 0; i < op.numSources; ++i)
      readAll(warp, op.operand(i), lane, from, entries + i * from);
    if (to > from)
      joinHalves(entries, op.numSources * from);
    else if (to < from)
      splitHalves(entries, op.numSources * from);
    for (unsigned i = 0; i < op.numResults; ++i)
      writeAll(warp, op.result(i), lane, to, entries + i * to);
    // A bfloat over 16 zeros is the same number as a float.
    if (op.numSources == 2 && from == 1 && to == 2 &&
        (op.operand(0) & constantBit) &&
        warp.lanes<uint32_t>(op.operand(0))[0] == 0 &&
        entries[1].format == Format::BF16) {
      entries[0] = entries[1];
      entries[0].format = Format::F32;
      entries[1].format = Format::None;
      writeAll(warp, op.result(0), lane, to, entries);
    }
  }
}

/// An integer that becomes wider keeps what its bits stand for.
void widen(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    ShadowEntry entries[granules];
    unsigned count = std::min(info.sourceBits, info.resultBits) / 16;
    readAll(warp, op.operand(0), lane, count, entries);
    writeAll(warp, op.result(0), lane, count, entries);
  }
}

/// `shl.b32 r, a, 16` and `and.b32 r, a, 0xffff0000`: a bfloat as a float.
void bfloatToFloat(Warp &warp, const Op &op, LaneMask active) {
  unsigned granule = infoOf(op).mode;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    const ShadowEntry *from =
        warp.shadow->find(warp, op.operand(0), granule, lane);
    ShadowEntry entry;
    if (from && from->format == Format::BF16) {
      entry = *from;
      entry.format = Format::F32;
    }
    writeAll(warp, op.result(0), lane, 1, &entry);
  }
}

/// xor with, and without, the sign bit.
void changeSign(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    const ShadowEntry *from = warp.shadow->find(warp, op.operand(0), 0, lane);
    ShadowEntry entry;
    if (from && from->format == info.format) {
      entry = *from;
      entry.truth = info.isSigned ? -entry.truth : std::fabs(entry.truth);
    }
    writeAll(warp, op.result(0), lane, 1, &entry);
  }
}

/// selp of all types. Where rounding may have decided, the result may be off by
/// what lies between the two.
void select(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  LaneMask predicate = warp.predicate(op.operand(2));
  if (info.isNegated)
    predicate = ~predicate;
  LaneMask uncertain = warp.shadow->uncertain(warp, op.operand(2)) & active;
  LaneMask told = 0;
  bool isWide = info.resultBits == 64;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    unsigned chosen = predicate >> lane & 1 ? 0 : 1;
    ShadowEntry entries[granules], others[granules];
    readAll(warp, op.operand(chosen), lane, granules, entries);
    if (uncertain >> lane & 1) {
      readAll(warp, op.operand(1 - chosen), lane, granules, others);
      bool isNumber = false;
      for (unsigned g = 0; g < info.resultBits / 16; ++g) {
        Format format = entries[g].format != Format::None ? entries[g].format
                                                          : others[g].format;
        if (format == Format::None && g == 0)
          format = info.format;
        if (format == Format::None || format >= Format::F64Low)
          continue;
        isNumber = true;
        ShadowNumber one =
            readShadowNumber(warp, op.operand(chosen), lane, g, format, isWide);
        ShadowNumber other = readShadowNumber(warp, op.operand(1 - chosen),
                                              lane, g, format, isWide);
        Truth apart = std::fabs(one.value - other.value);
        if (!(apart <= Truth(one.bound) + other.bound))
          told |= LaneMask(1) << lane;
        if (apart == 0 || !std::isfinite(one.value))
          continue;
        entries[g].truth = one.value;
        entries[g].bound = double(one.bound + apart + other.bound);
        entries[g].format = format;
      }
      if (!isNumber && cellBits(warp, op.operand(0), lane, isWide) !=
                           cellBits(warp, op.operand(1), lane, isWide))
        told |= LaneMask(1) << lane;
    }
    writeAll(warp, op.result(0), lane, granules, entries);
  }
  if (!told)
    return;
  const char *text = "a selection depends on a rounded value";
  warp.doubtShadow(op, text);
  warp.remark(op, __builtin_ctz(told), FindingKind::Other, 0, text);
}

void shuffle(Warp &warp, const Op &op, LaneMask active) {
  const ShadowInfo &info = infoOf(op);
  const auto *offsets = warp.lanes<uint32_t>(op.operand(1));
  const auto *clamps = warp.lanes<uint32_t>(op.operand(2));
  ShadowEntry entries[warpLanes][2];
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    unsigned from =
        shuffleSource(ShuffleMode(info.mode), lane, offsets[lane], clamps[lane])
            .from;
    if (active >> from & 1)
      readAll(warp, op.operand(0), from, 2, entries[lane]);
  }
  for (LaneMask rest = active; rest; rest &= rest - 1)
    writeAll(warp, op.result(0), __builtin_ctz(rest), 2,
             entries[__builtin_ctz(rest)]);
  if (op.numResults > 1)
    warp.shadow->setUncertain(warp, op.result(1), active, 0);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Where the shadow of an access lies; no `memory`: nowhere.
struct Spot {
  ShadowMemory *memory = nullptr;
  uint64_t key = 0;
  uint8_t *data = nullptr;
};

Spot spotOf(Warp &warp, unsigned lane, const Place &place, unsigned bytes) {
  Spot spot;
  if (place.space == Space::Local) {
    if (!warp.local || place.offset >= warp.local->size() ||
        bytes > warp.local->size() - place.offset)
      return spot;
    spot.memory = &warp.shadow->local;
    spot.key = ShadowRegisters::localKey(lane, place.offset);
    spot.data = warp.local->data(lane) + place.offset;
    return spot;
  }
  if (!place.region || place.space == Space::Param ||
      place.offset >= place.region->bytes ||
      bytes > place.region->bytes - place.offset)
    return spot;
  bool isShared = place.space == Space::Shared;
  spot.memory =
      isShared ? place.region->block->shadow.get() : warp.block->launch->shadow;
  spot.key = isShared ? place.offset : place.region->address + place.offset;
  spot.data = place.region->data + place.offset;
  return spot;
}

void load(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info, op.operand(0), at);
  unsigned size = info.elementBytes;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    Spot spot = spotOf(warp, lane, locate(warp, info, at[lane]), info.bytes());
    // A double that is loaded by halves is whole in the first place.
    ShadowEntry entries[mostGranules * 2];
    bool isWhole = size == 4 && info.vector > 1 && spot.memory;
    if (isWhole) {
      for (unsigned i = 0; i < info.vector; i += 2)
        spot.memory->load(spot.key + i * 4, 8, spot.data + i * 4,
                          entries + i * 2);
      splitHalves(entries, info.vector * 2);
    }
    for (unsigned i = 0; i < info.vector; ++i) {
      ShadowEntry *element = entries + i * std::max(1u, size / 2);
      if (!spot.memory || size < 2)
        element->format = Format::None;
      else if (!isWhole)
        spot.memory->load(spot.key + i * size, size, spot.data + i * size,
                          element);
      if (size >= 8)
        joinHalves(element, size / 2);
      // 128 bits are two slots.
      unsigned count = spot.memory ? size / 2 : 0;
      writeAll(warp, op.result(i), lane, std::min(count, granules), element);
      if (size == 16)
        writeAll(warp, op.result(i) + 1, lane, count ? granules : 0,
                 element + granules);
    }
  }
}

void store(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info, op.operand(0), at);
  unsigned size = info.elementBytes;
  bool isWide = info.resultBits > 32;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    Spot spot = spotOf(warp, lane, locate(warp, info, at[lane]), info.bytes());
    if (!spot.memory)
      continue;
    for (unsigned i = 0; i < info.vector; ++i) {
      ShadowEntry entries[mostGranules];
      Slot source = op.operand(1 + i);
      unsigned count = std::min(size / 2, granules);
      readAll(warp, source, lane, count, entries);
      // What is cut off is no number.
      for (unsigned g = 0; g < count; ++g)
        if (g * 16 + bitsOf(entries[g].format) > size * 8)
          entries[g].format = Format::None;
      uint64_t data[2] = {cellBits(warp, source, lane, isWide), 0};
      if (size == 16) {
        readAll(warp, source + 1, lane, granules, entries + granules);
        data[1] = cellBits(warp, source + 1, lane, isWide);
      }
      spot.memory->store(spot.key + i * size, size,
                         reinterpret_cast<const uint8_t *>(data), entries);
    }
  }
}

uint64_t heldBits(const uint8_t *data, unsigned bytes) {
  uint64_t value = 0;
  std::memcpy(&value, data, std::min(bytes, 8u));
  return value;
}

/// add, min and max of floats. The old value and the sum depend on the order,
/// which a GPU chooses anew: the bound holds for each.
void updateFloat(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  const ShadowInfo &how = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info, op.operand(0), at);
  unsigned size = info.elementBytes;
  unsigned step = bitsOf(how.format) / 8;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    Spot spot = spotOf(warp, lane, locate(warp, info, at[lane]), info.bytes());
    for (unsigned i = 0; i < info.vector; ++i) {
      ShadowEntry olds[granules];
      for (unsigned part = 0; spot.memory && part < how.parts; ++part) {
        unsigned offset = i * size + part * step;
        ShadowNumber more = readShadowNumber(warp, op.operand(1 + i), lane,
                                             part, how.format, size == 8);
        uint64_t held = heldBits(spot.data + offset, step);
        spot.memory->update(spot.key + offset, [&](ShadowEntry &entry) {
          bool isKnown = entry.format == how.format &&
                         (entry.isUpdated || entry.bits == held);
          if (!isKnown) {
            entry = ShadowEntry();
            entry.format = how.format;
            entry.truth = decodeFloat(how.format, held);
          }
          if (!entry.isUpdated)
            entry.magnitude = double(std::fabs(entry.truth)) + entry.bound;
          olds[part] = entry;
          olds[part].bound = entry.wholeBound();
          olds[part].terms = 0;
          olds[part].isUpdated = false;
          entry.isUpdated = true;
          switch (how.kind) {
          case ShadowInfo::Kind::Add:
            entry.truth += more.value;
            entry.bound += more.bound;
            entry.magnitude += double(std::fabs(more.value)) + more.bound;
            entry.terms += 1;
            break;
          case ShadowInfo::Kind::Min:
            entry.truth = std::fmin(entry.truth, more.value);
            entry.bound = std::fmax(entry.bound, more.bound);
            break;
          default:
            entry.truth = std::fmax(entry.truth, more.value);
            entry.bound = std::fmax(entry.bound, more.bound);
          }
          if (!std::isfinite(entry.truth))
            entry.format = Format::None;
        });
      }
      if (op.numResults > i)
        writeAll(warp, op.result(i), lane, how.parts, olds);
    }
  }
}

/// exch, cas, and min and max of integers: one of two values stays as it is.
/// Bits that turn out otherwise end what is put here.
void replace(Warp &warp, const Op &op, LaneMask active) {
  const auto &info = *static_cast<const MemoryInfo *>(op.info);
  const ShadowInfo &how = infoOf(op);
  uint64_t at[warpLanes];
  lanesAddresses(warp, op, info, op.operand(0), at);
  unsigned size = info.elementBytes, count = size / 2;
  for (LaneMask rest = active; rest; rest &= rest - 1) {
    unsigned lane = __builtin_ctz(rest);
    Spot spot = spotOf(warp, lane, locate(warp, info, at[lane]), size);
    ShadowEntry olds[granules], news[granules];
    if (spot.memory) {
      spot.memory->load(spot.key, size, spot.data, olds);
      bool isCompare = op.numSources > 2;
      Slot source = op.operand(isCompare ? 2 : 1);
      uint64_t bits = cellBits(warp, source, lane, size == 8);
      uint64_t held = heldBits(spot.data, size);
      unsigned unused = 64 - size * 8;
      auto wide = [&](uint64_t value) { return value << unused; };
      bool isLess = how.isSigned ? int64_t(wide(bits)) < int64_t(wide(held))
                                 : wide(bits) < wide(held);
      bool stays = false;
      if (isCompare)
        stays =
            wide(cellBits(warp, op.operand(1), lane, size == 8)) != wide(held);
      else if (how.kind == ShadowInfo::Kind::Min)
        stays = !isLess;
      else if (how.kind == ShadowInfo::Kind::Max)
        stays = isLess;
      if (!stays) {
        readAll(warp, source, lane, count, news);
        spot.memory->store(spot.key, size,
                           reinterpret_cast<const uint8_t *>(&bits), news);
      }
    }
    if (op.numResults)
      writeAll(warp, op.result(0), lane, count, olds);
  }
}

} // namespace

Handler moveShadow(Decoder &decoder, Op &op, ShadowInfo &info) {
  const Instruction &instruction = decoder.instruction();
  llvm::StringRef opcode = instruction.opcode;
  std::optional<Type> type, last;
  for (llvm::StringRef modifier : instruction.modifiers)
    if (std::optional<Type> one = parseType(modifier)) {
      if (!type)
        type = one;
      last = one;
    }
  if (!type || instruction.operands.empty())
    return nullptr;
  unsigned width = bitWidth(*type);
  auto constantOf = [&](unsigned i) -> std::optional<uint64_t> {
    if (i >= op.numSources || !(op.operand(i) & constantBit))
      return std::nullopt;
    uint64_t bits = 0;
    std::memcpy(&bits,
                decoder.result().constants.data() +
                    size_t(op.operand(i) & ~constantBit) * slotBytes,
                width == 64 ? 8 : 4);
    return bits;
  };
  if (opcode == "mov" && width >= 16 && op.numSources && op.numResults) {
    // 128 bits are slots of 64.
    unsigned whole = std::min(width, 64u);
    bool packs = instruction.operands.size() > 1 &&
                 instruction.operands[1].kind == Operand::Kind::Vector;
    bool unpacks = instruction.operands[0].kind == Operand::Kind::Vector;
    info.sourceBits =
        uint8_t(packs ? std::min(width / op.numSources, 64u) : whole);
    info.resultBits =
        uint8_t(unpacks ? std::min(width / op.numResults, 64u) : whole);
    if (info.sourceBits < 16 || info.resultBits < 16 ||
        info.sourceBits * op.numSources != info.resultBits * op.numResults ||
        info.sourceBits * op.numSources > mostGranules * 16)
      return nullptr;
    return move;
  }
  if (opcode == "selp" && width >= 16 && width <= 64) {
    info.resultBits = uint8_t(width);
    info.isNegated = instruction.operands.back().isNegated;
    info.format = formatOf(*type);
    return select;
  }
  if (opcode == "shfl") {
    info.mode = uint8_t(instruction.has("up")     ? ShuffleMode::Up
                        : instruction.has("down") ? ShuffleMode::Down
                        : instruction.has("bfly") ? ShuffleMode::Butterfly
                                                  : ShuffleMode::Index);
    return shuffle;
  }
  if (opcode == "cvt" && !isFloat(*type) && !isFloat(*last) &&
      !isSigned(*last) && !instruction.has("sat") && width >= 16 &&
      bitWidth(*last) >= 16 && op.numSources == 1) {
    info.resultBits = uint8_t(width);
    info.sourceBits = uint8_t(bitWidth(*last));
    return widen;
  }
  if (width == 32 && op.numSources == 2) {
    std::optional<uint64_t> by = constantOf(1);
    if ((opcode == "shl" && by == 16) ||
        (opcode == "and" && by == 0xffff0000)) {
      info.mode = opcode == "shl" ? 0 : 1;
      return bfloatToFloat;
    }
  }
  if ((width == 32 || width == 64) && op.numSources == 2 &&
      (opcode == "xor" || opcode == "and")) {
    uint64_t sign = uint64_t(1) << (width - 1);
    info.format = width == 32 ? Format::F32 : Format::F64;
    info.isSigned = opcode == "xor";
    if (constantOf(1) == (info.isSigned ? sign : sign - 1))
      return changeSign;
  }
  return nullptr;
}

Handler memoryShadow(Decoder &decoder, Op &op, ShadowInfo &info) {
  const Instruction &instruction = decoder.instruction();
  llvm::StringRef opcode = instruction.opcode;
  if (opcode == "ld" || opcode == "ldu")
    return load;
  // `st.async` and `st.bulk` are another family's.
  if (opcode == "st" && op.opClass == OpClass::Memory && op.info &&
      !instruction.has("async") && !instruction.has("bulk"))
    return store;
  if ((opcode != "atom" && opcode != "red") || op.opClass != OpClass::Atomic ||
      instruction.has("async") || instruction.has("bulk"))
    return nullptr;
  const auto &memory = *static_cast<const MemoryInfo *>(op.info);
  if (instruction.has("add"))
    info.kind = ShadowInfo::Kind::Add;
  else if (instruction.has("min"))
    info.kind = ShadowInfo::Kind::Min;
  else if (instruction.has("max"))
    info.kind = ShadowInfo::Kind::Max;
  else if (!instruction.has("exch") && !instruction.has("cas"))
    return nullptr;
  else
    info.kind = ShadowInfo::Kind::Mul; // Not one of them.
  if (isFloat(memory.type)) {
    bool isPair = memory.type == Type::F16x2 || memory.type == Type::BF16x2;
    info.parts = isPair ? 2 : 1;
    info.format = memory.type == Type::F16x2    ? Format::F16
                  : memory.type == Type::BF16x2 ? Format::BF16
                                                : formatOf(memory.type);
    return info.format == Format::None ? nullptr : updateFloat;
  }
  info.isSigned = isSigned(memory.type);
  bool isOneOfTwo = info.kind != ShadowInfo::Kind::Add;
  return isOneOfTwo && memory.vector == 1 && memory.elementBytes <= 8 &&
                 memory.elementBytes >= 2
             ? replace
             : nullptr;
}

void loadShadow(Warp &warp, unsigned lane, const Place &from, unsigned bytes,
                ShadowEntry *entries) {
  Spot spot = spotOf(warp, lane, from, bytes);
  if (spot.memory)
    spot.memory->load(spot.key, bytes, spot.data, entries);
}

void storeShadow(Warp &warp, unsigned lane, const Place &to, unsigned bytes,
                 const uint8_t *data, const ShadowEntry *entries) {
  Spot spot = spotOf(warp, lane, to, bytes);
  if (spot.memory)
    spot.memory->store(spot.key, bytes, data, entries);
}

void copyShadow(Warp &warp, unsigned lane, const Place &to, const Place &from,
                unsigned bytes) {
  Spot target = spotOf(warp, lane, to, bytes),
       source = spotOf(warp, lane, from, bytes);
  if (!target.memory)
    return;
  for (unsigned at = 0; at < bytes;) {
    unsigned size = bytes - at >= 8 ? 8 : bytes - at >= 4 ? 4 : 2;
    if (bytes - at < 2)
      return;
    ShadowEntry entries[granules];
    uint64_t data = 0;
    if (source.memory) {
      source.memory->load(source.key + at, size, source.data + at, entries);
      std::memcpy(&data, source.data + at, size);
    }
    target.memory->store(target.key + at, size,
                         reinterpret_cast<const uint8_t *>(&data), entries);
    at += size;
  }
}

} // namespace fsr::ptx
