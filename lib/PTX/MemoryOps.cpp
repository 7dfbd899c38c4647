// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Loads and stores: how their forms are read, and where an address leads. What
// one lane's access is checked for is in MemoryCheck.cpp, the loop over lanes
// that knows every case in MemoryLanes.cpp, those that whole warps take in
// MemoryAccess.inl.
//
//===----------------------------------------------------------------------===//

#include "MemoryOps.h"

#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;
using llvm::Twine;

namespace fsr::ptx {

// Forms. ----------------------------------------------------------------------

bool OrderModifiers::take(StringRef modifier) {
  if (modifier == "weak")
    return isWeak = true;
  if (modifier == "volatile") {
    semantics = Semantics::Volatile;
    return isVolatile = true;
  }
  if (modifier == "mmio") {
    semantics = Semantics::Volatile;
    return isMmio = true;
  }
  auto order = llvm::StringSwitch<std::optional<Semantics>>(modifier)
                   .Case("relaxed", Semantics::Volatile)
                   .Case("acquire", Semantics::Acquire)
                   .Case("release", Semantics::Release)
                   .Case("acq_rel", Semantics::AcquireRelease)
                   .Default(std::nullopt);
  if (order) {
    // `.mmio.relaxed`: both are written.
    semantics = order;
    return true;
  }
  auto width = llvm::StringSwitch<std::optional<Scope>>(modifier)
                   .Case("cta", Scope::Block)
                   .Case("cluster", Scope::Cluster)
                   .Case("gpu", Scope::Gpu)
                   .Case("sys", Scope::System)
                   .Default(std::nullopt);
  if (!width)
    return false;
  scope = width;
  return true;
}

std::optional<Space> parseSpace(StringRef modifier) {
  return llvm::StringSwitch<std::optional<Space>>(modifier)
      .Case("global", Space::Global)
      .Cases({"shared", "shared::cta"}, Space::Shared)
      .Case("shared::cluster", Space::SharedCluster)
      .Case("local", Space::Local)
      .Cases({"param", "param::entry", "param::func"}, Space::Param)
      .Case("const", Space::Const)
      .Default(std::nullopt);
}

bool isCacheHint(StringRef modifier) {
  return llvm::StringSwitch<bool>(modifier)
      .Cases({"ca", "cg", "cs", "lu", "cv", "wb", "wt"}, true)
      .Cases({"L1::evict_normal", "L1::evict_unchanged", "L1::evict_first",
              "L1::evict_last", "L1::no_allocate"},
             true)
      .Cases({"L2::evict_normal", "L2::evict_first", "L2::evict_last"}, true)
      .Cases({"L2::64B", "L2::128B", "L2::256B", "L2::cache_hint"}, true)
      .Default(false);
}

namespace {

unsigned bitsOf(Type type) { return type == Type::Pred ? 0 : bitWidth(type); }

/// The common part of ld and st: modifiers into `info`. False: `fail` was
/// called.
bool readForm(Decoder &decoder, MemoryInfo &info, bool isStore) {
  const Instruction &instruction = decoder.instruction();
  OrderModifiers order;
  bool isUniform = instruction.opcode == "ldu", isNonCoherent = false,
       hasSpace = false;
  for (StringRef modifier : instruction.modifiers) {
    if (order.take(modifier) || isCacheHint(modifier))
      continue;
    if (auto space = parseSpace(modifier)) {
      info.space = *space;
      hasSpace = true;
      continue;
    }
    if (modifier == "nc" && !isStore) {
      isNonCoherent = info.isNonCoherent = true;
      continue;
    }
    if (modifier == "unified" && !isStore)
      continue;
    auto vector = llvm::StringSwitch<unsigned>(modifier)
                      .Case("v2", 2)
                      .Case("v4", 4)
                      .Case("v8", 8)
                      .Default(0);
    if (vector) {
      info.vector = uint8_t(vector);
      continue;
    }
    std::optional<Type> type = parseType(modifier);
    if (!type || info.type != Type::None) {
      decoder.failModifier(modifier);
      return false;
    }
    info.type = *type;
  }
  switch (info.type) {
  case Type::B8:
  case Type::B16:
  case Type::B32:
  case Type::B64:
  case Type::B128:
  case Type::U8:
  case Type::U16:
  case Type::U32:
  case Type::U64:
  case Type::S8:
  case Type::S16:
  case Type::S32:
  case Type::S64:
  case Type::F16:
  case Type::F16x2:
  case Type::BF16:
  case Type::BF16x2:
  case Type::F32:
  case Type::F64:
    break;
  default:
    decoder.fail("a type that memory operations do not have");
    return false;
  }
  info.elementBytes = uint8_t(bitsOf(info.type) / 8);
  info.isSigned = isSigned(info.type);
  if (info.bytes() > 32 || (info.elementBytes == 16 && info.vector > 1) ||
      (info.vector == 8 && info.elementBytes != 4)) {
    decoder.fail("a vector of that size");
    return false;
  }
  if ((isNonCoherent || isUniform) && info.space != Space::Global && hasSpace) {
    decoder.fail("only global memory is read this way");
    return false;
  }
  if (isStore && info.space == Space::Const) {
    decoder.fail("constant memory cannot be written");
    return false;
  }
  Semantics semantics = order.semantics.value_or(Semantics::Weak);
  bool isFit = isStore ? semantics != Semantics::Acquire
                       : semantics != Semantics::Release;
  if (!isFit || semantics == Semantics::AcquireRelease) {
    decoder.fail("an order that this access does not have");
    return false;
  }
  info.semantics = semantics;
  info.isStrong = semantics != Semantics::Weak;
  info.scope = order.scope.value_or(Scope::System);
  info.isStore = isStore;
  return true;
}

/// The register operands of an access: one, or the elements of a vector.
llvm::ArrayRef<Operand> elementsOf(const Operand &operand) {
  if (operand.kind == Operand::Kind::Vector)
    return operand.elements;
  return llvm::ArrayRef<Operand>(operand);
}

bool readAddress(Decoder &decoder, const Operand &operand, MemoryInfo &info,
                 Op &op, Slot &base) {
  Decoder::AddressParts parts = decoder.address(operand);
  if (parts.base == noSlot)
    return false;
  base = parts.base;
  op.offset = parts.offset;
  info.isWide = parts.isWide;
  // Parameters of functions and of calls lie in the frame.
  if (info.space == Space::Param && parts.space == Space::Local)
    info.space = Space::Local;
  return true;
}

} // namespace

Decoded decodeLoad(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<MemoryInfo>();
  if (!readForm(decoder, *info, /*isStore=*/false))
    return Decoded::Failed;
  // A cache policy may follow the address.
  size_t count = instruction.has("L2::cache_hint") ? 3 : 2;
  if (!decoder.expectOperands(count))
    return Decoded::Failed;
  llvm::ArrayRef<Operand> elements = elementsOf(instruction.operands[0]);
  if (elements.size() != info->vector)
    return decoder.fail("a vector of " + Twine(unsigned(info->vector)) +
                        " elements wanted");
  Slot base = noSlot;
  if (!readAddress(decoder, instruction.operands[1], *info, op, base))
    return Decoded::Failed;
  llvm::SmallVector<Slot, 8> results;
  unsigned bits = 0;
  for (const Operand &element : elements) {
    Type type =
        element.isRegister() ? decoder.registerType(element) : info->type;
    unsigned have = bitsOf(type);
    if (have < bitsOf(info->type) || (have > 64 && info->elementBytes < 16))
      return decoder.fail("a result register that does not fit the type");
    if (element.isRegister()) {
      if (bits && bits != have)
        return decoder.fail("result registers of different widths");
      bits = have;
    }
    Slot slot = decoder.resultSlot(element, type);
    if (slot == noSlot)
      return Decoded::Failed;
    if (element.isRegister())
      info->registers[results.size()] = element.index;
    results.push_back(slot);
  }
  info->resultBits = uint8_t(bits ? bits : bitsOf(info->type));
  // A sink got a slot of the type's own width.
  if (bits > 32 && bitsOf(info->type) <= 32)
    for (auto [slot, element] : llvm::zip(results, elements))
      if (!element.isRegister())
        slot = decoder.temporarySlot();
  decoder.setSlots(op, results, {base});
  op.info = info;
  op.opClass = OpClass::Memory;
  op.flow = Flow::Handler;
  op.steers = 1;
  op.run = loadHandler(info->elementBytes, info->vector);
  return Decoded::Done;
}

Decoded decodeStore(Decoder &decoder, Op &op) {
  const Instruction &instruction = decoder.instruction();
  auto *info = decoder.makeInfo<MemoryInfo>();
  if (!readForm(decoder, *info, /*isStore=*/true))
    return Decoded::Failed;
  size_t count = instruction.has("L2::cache_hint") ? 3 : 2;
  if (!decoder.expectOperands(count))
    return Decoded::Failed;
  llvm::ArrayRef<Operand> elements = elementsOf(instruction.operands[1]);
  if (elements.size() != info->vector)
    return decoder.fail("a vector of " + Twine(unsigned(info->vector)) +
                        " elements wanted");
  llvm::SmallVector<Slot, 8> sources(1);
  if (!readAddress(decoder, instruction.operands[0], *info, op, sources[0]))
    return Decoded::Failed;
  unsigned bits = 0;
  for (const Operand &element : elements) {
    Type type =
        element.isRegister() ? decoder.registerType(element) : info->type;
    unsigned have = bitsOf(type);
    if (have < bitsOf(info->type))
      return decoder.fail("a source register that is too narrow");
    if (bits && (bits > 32) != (have > 32))
      return decoder.fail("source registers of different widths");
    bits = have;
    Slot slot = decoder.sourceSlot(element, type);
    if (slot == noSlot)
      return Decoded::Failed;
    if (element.isRegister())
      info->registers[sources.size() - 1] = element.index;
    sources.push_back(slot);
  }
  info->resultBits = uint8_t(bits);
  decoder.setSlots(op, {}, sources);
  op.info = info;
  op.opClass = OpClass::Memory;
  op.flow = Flow::Handler;
  op.steers = 1;
  op.run = storeHandler(info->elementBytes, info->vector);
  return Decoded::Done;
}

Decoded decodeMemory(Decoder &decoder, Op &op) {
  StringRef opcode = decoder.instruction().opcode;
  if (opcode != "cp" && decoder.instruction().has("async"))
    return Decoded::NotMine;
  if (opcode == "ld" || opcode == "ldu")
    return decodeLoad(decoder, op);
  if (opcode == "st")
    return decodeStore(decoder, op);
  if (opcode == "atom" || opcode == "red")
    return decodeAtomic(decoder, op);
  if (opcode == "cp")
    return decodeAsyncCopy(decoder, op);
  return decodeAddress(decoder, op);
}

// Addresses. ------------------------------------------------------------------

void lanesAddresses(Warp &warp, const MemoryInfo &info, Slot base,
                    int64_t offset, uint64_t *at) {
  if (info.isWide) {
    const uint64_t *from = warp.lanes<uint64_t>(base);
    for (unsigned lane = 0; lane < warpLanes; ++lane)
      at[lane] = from[lane] + uint64_t(offset);
    return;
  }
  const uint32_t *from = warp.lanes<uint32_t>(base);
  for (unsigned lane = 0; lane < warpLanes; ++lane)
    at[lane] = uint32_t(from[lane] + uint32_t(offset));
}

/// An address that names a block of the cluster. `.shared` alone reaches no
/// other block: then the place stays out of bounds.
static void locatePeer(Warp &warp, const MemoryInfo &info, Place &place) {
  const Cluster &cluster = *warp.block->cluster;
  uint64_t rank = (place.offset >> rankShift) - 1;
  if (rank >= cluster.blocks.size() || cluster.blocks.size() == 1)
    return;
  if (info.space == Space::Shared && rank != warp.block->rank)
    return;
  place.region = &cluster.blocks[rank]->shared.region();
  place.offset &= rankBytes - 1;
}

Place locate(Warp &warp, const MemoryInfo &info, uint64_t address) {
  Place place;
  place.space = info.space;
  place.offset = address;
  if (info.space == Space::Generic) {
    if (address >= paramWindow) {
      for (auto [space, window] : {std::pair(Space::Shared, sharedWindow),
                                   std::pair(Space::Local, localWindow),
                                   std::pair(Space::Param, paramWindow)})
        if (address - window < windowBytes) {
          place.space = space;
          place.offset = address - window;
        }
    }
  }
  switch (place.space) {
  case Space::SharedCluster:
  case Space::Shared:
    place.region = &warp.block->shared.region();
    if (place.offset >= rankBytes)
      locatePeer(warp, info, place);
    place.space = Space::Shared;
    return place;
  case Space::Local:
    return place;
  case Space::Param:
    place.region = &warp.block->launch->params;
    return place;
  default:
    break;
  }
  place.space = Space::Global;
  Region *&last = clockOf(warp).lastRegion;
  if (!last || address - last->address >= last->bytes) {
    Region *found = warp.block->launch->memory->find(address);
    if (!found)
      return place;
    last = found;
  }
  place.region = last;
  place.offset = address - last->address;
  return place;
}

} // namespace fsr::ptx
