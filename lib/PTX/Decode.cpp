// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part of decoding that is the same for all families: which slot an operand
// is. Registers keep their number as a slot until the whole function is known;
// `assignSlots` then packs them.
//
// Addresses of local variables and of parameters of calls depend on the frame;
// they are slots that are filled when a frame begins.
//
//===----------------------------------------------------------------------===//

#include "Decode.h"
#include "Shadow.h"

#include "llvm/ADT/bit.h"

#include <cstring>

namespace fsr::ptx {

LinkContext::~LinkContext() = default;

SlotLayout layoutOf(Type type) {
  switch (bitWidth(type)) {
  case 1:
    return SlotLayout::Predicate;
  case 64:
    return SlotLayout::Double;
  case 128:
    return SlotLayout::Pair;
  default:
    return SlotLayout::Word;
  }
}

Decoded Decoder::fail(const llvm::Twine &why) {
  if (!hasFailed) {
    hasFailed = true;
    unsigned line = current ? current->location.line : function.location.line;
    llvm::StringRef text = program.module->lineText(line);
    std::string place; // In the CUDA source.
    if (current && current->siteFile &&
        current->siteFile < program.module->files.size())
      place = program.module->files[current->siteFile] + ":" +
              std::to_string(current->siteLine) + ", ";
    program.unsupported = (place + "PTX line " + llvm::Twine(line) + ": `" +
                           text.take_front(200) + "`: " + why)
                              .str();
  }
  return Decoded::Failed;
}

Decoded Decoder::failModifier(llvm::StringRef modifier) {
  return fail("modifier ." + modifier + " is not supported");
}

bool Decoder::expectOperands(size_t count) {
  if (current->operands.size() == count)
    return true;
  fail("expected " + llvm::Twine(count) + " operands, got " +
       llvm::Twine(current->operands.size()));
  return false;
}

Slot Decoder::temporarySlot() {
  layouts.push_back(SlotLayout::Scratch);
  return layouts.size() - 1;
}

Slot Decoder::carrySlot() {
  if (carry == noSlot) {
    layouts.push_back(SlotLayout::Predicate);
    carry = layouts.size() - 1;
  }
  return carry;
}

std::optional<uint64_t> Decoder::literalOf(const Operand &operand) {
  auto isLiteral = [](const Operand &of) {
    return of.kind == Operand::Kind::Integer ||
           of.kind == Operand::Kind::Single || of.kind == Operand::Kind::Float;
  };
  if (isLiteral(operand))
    return operand.bits;
  if (!operand.isRegister() || operand.isNegated || !operand.selector.empty())
    return std::nullopt;
  if (definitions.empty()) {
    definitions.resize(function.registers.size());
    auto define = [&](const Operand &to, const Instruction &by,
                      auto &again) -> void {
      if (to.isRegister()) {
        ++definitions[to.index].first;
        definitions[to.index].second = &by;
      }
      // Also what only an address reads: it is never called a literal then.
      for (const Operand &element : to.elements)
        again(element, by, again);
    };
    for (const Instruction &one : function.code)
      if (!one.operands.empty())
        define(one.operands.front(), one, define);
  }
  auto [count, by] = definitions[operand.index];
  if (count != 1 || by->opcode != "mov" || by->guard ||
      by->operands.size() != 2 || !isLiteral(by->operands[1]))
    return std::nullopt;
  return by->operands[1].bits;
}

Type Decoder::registerType(const Operand &operand) const {
  if (!operand.isRegister() || operand.index >= function.registers.size())
    return Type::None;
  return function.registers[operand.index].type;
}

Slot Decoder::resultSlot(const Operand &operand, Type type) {
  SlotLayout layout = layoutOf(type);
  if (operand.kind == Operand::Kind::Sink) {
    layouts.push_back(layout);
    if (layout == SlotLayout::Pair)
      layouts.push_back(SlotLayout::Pair);
    return layouts.size() - (layout == SlotLayout::Pair ? 2 : 1);
  }
  if (!operand.isRegister() || operand.index >= function.registers.size()) {
    fail("expected a register as a result");
    return noSlot;
  }
  Slot slot = registerSlots[operand.index];
  if (layouts[slot] != layout) {
    fail("register " + function.registers[operand.index].name +
         " does not have the width of " + nameOf(type));
    return noSlot;
  }
  return slot;
}

Slot Decoder::constantSlot(uint64_t bits, unsigned width) {
  if (width == 1)
    bits = bits ? allLanes : 0;
  else if (width < 64)
    bits &= (uint64_t(1) << width) - 1;
  // Layouts, not widths, tell constants apart.
  unsigned cell = width == 64 ? 64 : width == 1 ? 1 : 32;
  auto [at, isNew] = constantSlots.try_emplace({bits, cell}, noSlot);
  if (!isNew)
    return at->second;
  size_t offset = program.constants.size();
  program.constants.resize(offset + slotBytes);
  uint8_t *to = program.constants.data() + offset;
  for (unsigned lane = 0; lane < warpLanes; ++lane) {
    if (cell == 64) {
      std::memcpy(to + lane * 8, &bits, 8);
    } else {
      uint32_t low = uint32_t(bits);
      std::memcpy(to + lane * 4, &low, 4);
    }
  }
  return at->second = Slot(offset / slotBytes) | constantBit;
}

Slot Decoder::special(llvm::StringRef name, unsigned width, uint64_t offset) {
  auto [at, isNew] =
      specialSlots.try_emplace({name.str(), width, offset}, noSlot);
  if (!isNew)
    return at->second;
  program.usesReservedShared |= name == "%reserved_smem_offset_1";
  layouts.push_back(width == 64  ? SlotLayout::Double
                    : width == 1 ? SlotLayout::Predicate
                                 : SlotLayout::Word);
  Slot slot = layouts.size() - 1;
  program.specials.push_back({name.str(), slot, width, offset});
  return at->second = slot;
}

/// Those that stay the same, and whether they are 64 bits wide by nature.
static bool isFixedSpecial(llvm::StringRef name) {
  for (llvm::StringRef vector :
       {"%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid",
        "%cluster_ctaid", "%cluster_nctaid"}) {
    llvm::StringRef rest = name;
    if (rest.consume_front(vector) &&
        (rest == ".x" || rest == ".y" || rest == ".z" || rest == ".w"))
      return true;
  }
  for (llvm::StringRef plain :
       {"%laneid", "%warpid", "%nwarpid", "%nsmid", "%gridid", "%lanemask_eq",
        "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt",
        "%cluster_ctarank", "%cluster_nctarank", "%dynamic_smem_size",
        "%total_smem_size", "%aggr_smem_size", "%reserved_smem_offset_1"})
    if (name == plain)
      return true;
  unsigned number;
  return name.consume_front("%envreg") && !name.getAsInteger(10, number) &&
         number < 32;
}

Slot Decoder::specialSlot(llvm::StringRef name) {
  if (!isFixedSpecial(name)) {
    fail("special register " + name + " is not supported here");
    return noSlot;
  }
  return special(name, 32, 0);
}

Slot Decoder::addressSlot(llvm::StringRef name, uint64_t offset, unsigned width,
                          std::optional<Space> *space) {
  if (width != 64 && width != 32) {
    fail("the address of " + name + " needs 32 or 64 bits");
    return noSlot;
  }
  if (auto inFrame = program.frame.offsets.find(name);
      inFrame != program.frame.offsets.end()) {
    if (space)
      *space = Space::Local;
    return special("", width, inFrame->second + offset);
  }
  if (function.isEntry) {
    for (size_t i = 0; i < function.parameters.size(); ++i) {
      if (function.parameters[i].name != name)
        continue;
      if (space)
        *space = Space::Param;
      return constantSlot(program.parameters[i].offset + offset, width);
    }
  }
  std::optional<LinkContext::Place> place = link.findVariable(function, name);
  if (!place) {
    fail("variable " + name + " is not defined in this module");
    return noSlot;
  }
  if (space)
    *space = place->space;
  return constantSlot(place->address + offset, width);
}

Slot Decoder::sourceSlot(const Operand &operand, Type type) {
  unsigned width = bitWidth(type);
  switch (operand.kind) {
  case Operand::Kind::Register:
    return resultSlot(operand, type);
  case Operand::Kind::Integer:
    if (width == 128)
      break;
    return constantSlot(operand.bits, width);
  case Operand::Kind::Single:
  case Operand::Kind::Float: {
    double value = 0;
    if (operand.kind == Operand::Kind::Single)
      value = llvm::bit_cast<float>(uint32_t(operand.bits));
    else
      value = llvm::bit_cast<double>(operand.bits);
    if (width == 64)
      return constantSlot(llvm::bit_cast<uint64_t>(value), 64);
    if (width != 32)
      break;
    // A `0f` literal keeps its bits, also those of a NaN.
    if (operand.kind == Operand::Kind::Single)
      return constantSlot(uint32_t(operand.bits), 32);
    return constantSlot(llvm::bit_cast<uint32_t>(float(value)), 32);
  }
  case Operand::Kind::Special:
    if (operand.name == "WARP_SZ")
      return constantSlot(warpLanes, width);
    if (operand.name == "%is_explicit_cluster" && width == 1)
      return special(operand.name, 1, 0);
    if (!isFixedSpecial(operand.name)) {
      fail("special register " + operand.name + " is not supported here");
      return noSlot;
    }
    if (width == 1 || width == 128)
      break;
    return special(operand.name, width == 64 ? 64 : 32, 0);
  case Operand::Kind::Variable:
    // Of kernel parameters and of what a call returns, the address as well.
    return addressSlot(operand.name, operand.bits, width, nullptr);
  case Operand::Kind::Function:
    if (std::optional<uint64_t> address = link.functionAddress(operand.name))
      return constantSlot(*address, width);
    fail("function " + operand.name + " is not defined in this module");
    return noSlot;
  default:
    break;
  }
  fail("an operand does not fit " + nameOf(type));
  return noSlot;
}

Decoder::AddressParts Decoder::address(const Operand &operand) {
  AddressParts parts;
  if (operand.kind != Operand::Kind::Address || operand.elements.empty()) {
    fail("expected an address in brackets");
    return parts;
  }
  const Operand &base = operand.elements.front();
  switch (base.kind) {
  case Operand::Kind::Register:
    parts.offset = int64_t(operand.bits);
    parts.isWide = bitWidth(registerType(base)) == 64;
    parts.base = resultSlot(base, parts.isWide ? Type::B64 : Type::B32);
    return parts;
  case Operand::Kind::Variable:
    parts.base = addressSlot(base.name, base.bits, 64, &parts.space);
    parts.offset = int64_t(operand.bits);
    return parts;
  case Operand::Kind::Integer:
    parts.base = constantSlot(base.bits, 64);
    parts.offset = int64_t(operand.bits);
    return parts;
  default:
    fail("an address starts with a register, a variable or a number");
    return parts;
  }
}

void Decoder::setSlots(Op &op, llvm::ArrayRef<Slot> results,
                       llvm::ArrayRef<Slot> sources) {
  op.slots.clear();
  op.slots.append(results.begin(), results.end());
  op.slots.append(sources.begin(), sources.end());
  op.numResults = uint8_t(results.size());
  op.numSources = uint8_t(sources.size());
}

bool Decoder::setOperands(Op &op, Type resultType,
                          llvm::ArrayRef<Type> sourceTypes) {
  if (!expectOperands(sourceTypes.size() + 1))
    return false;
  llvm::SmallVector<Slot, 6> sources;
  Slot result = resultSlot(current->operands[0], resultType);
  if (result == noSlot)
    return false;
  for (size_t i = 0; i < sourceTypes.size(); ++i) {
    sources.push_back(sourceSlot(current->operands[i + 1], sourceTypes[i]));
    if (sources.back() == noSlot)
      return false;
  }
  setSlots(op, result, sources);
  return true;
}

/// Of local memory a lane and of a parameter block, as on a GPU.
static constexpr uint64_t mostLocalBytes = 512 << 10,
                          mostParameterBytes = 32764;
static constexpr uint64_t mostAlignment = 1 << 16;

void Decoder::layOutFrame() {
  uint64_t at = 0;
  auto check = [&](const Variable &variable, uint64_t end, uint64_t most) {
    if (variable.alignment > mostAlignment || variable.bytes > most ||
        end > most)
      fail("variable " + variable.name + " of " + llvm::Twine(variable.bytes) +
           " bytes is larger than can be had");
  };
  auto place = [&](const Variable &variable) {
    check(variable, at, mostLocalBytes);
    uint64_t alignment = std::max<uint64_t>(variable.alignment, 1);
    at = (at + alignment - 1) / alignment * alignment;
    program.frame.offsets[variable.name] = at;
    at += variable.bytes;
    check(variable, at, mostLocalBytes);
  };
  if (!function.isEntry) {
    for (const Variable &variable : function.results)
      place(variable);
    for (const Variable &variable : function.parameters)
      place(variable);
  }
  for (const Variable &variable : function.variables)
    if (variable.space == Space::Local || variable.space == Space::Param)
      place(variable);
  program.frame.localBytes = (at + 15) / 16 * 16;

  uint64_t offset = 0;
  auto describe = [&](llvm::ArrayRef<Variable> from,
                      std::vector<KernelParameter> &to) {
    for (const Variable &variable : from) {
      check(variable, offset, mostParameterBytes);
      uint64_t alignment = std::max<uint64_t>(variable.alignment, 1);
      offset = (offset + alignment - 1) / alignment * alignment;
      to.push_back({variable.bytes, offset, alignment});
      offset += variable.bytes;
    }
  };
  describe(function.results, program.results);
  describe(function.parameters, program.parameters);
  program.parameterBytes = offset;
}

/// Of a frame; four megabytes a warp.
static constexpr uint32_t mostSlots = 1 << 14;

void Decoder::run() {
  program.function = &function;
  layouts.clear();
  for (const RegisterDecl &decl : function.registers) {
    registerSlots.push_back(layouts.size());
    layouts.push_back(layoutOf(decl.type));
    if (layouts.back() == SlotLayout::Pair)
      layouts.push_back(SlotLayout::Pair);
  }
  layOutFrame();
  if (hasFailed)
    return;
  program.code.clear();
  program.code.reserve(function.code.size() + 1);
  // The commonest families first would be quicker; this order lets those that
  // know few opcodes say so before those that know most.
  using Family = Decoded (*)(Decoder &, Op &);
  static constexpr Family families[] = {decodeWarp,   decodeAsync,
                                        decodeMemory, decodeTensor,
                                        decodeFloat,  decodeInteger};
  for (size_t i = 0; i < function.code.size() && !hasFailed; ++i) {
    current = &function.code[i];
    Op op;
    op.source = uint32_t(i);
    op.guardNegated = current->isGuardNegated;
    if (current->guard) {
      Operand guard;
      guard.kind = Operand::Kind::Register;
      guard.index = *current->guard;
      op.guard = resultSlot(guard, Type::Pred);
    }
    Decoded decoded = Decoded::NotMine;
    for (Family family : families) {
      decoded = family(*this, op);
      if (decoded != Decoded::NotMine || hasFailed)
        break;
    }
    if (decoded == Decoded::NotMine)
      fail("instruction " + current->opcode + " is not supported");
    // Stores to memory that others do not see copy as well.
    op.isCopy |= current->opcode == "mov" || current->opcode == "selp" ||
                 (current->opcode == "st" &&
                  (current->has("shared") || current->has("shared::cta") ||
                   current->has("local") || current->has("param")));
    if (!hasFailed)
      setShadow(*this, op);
    program.code.push_back(std::move(op));
  }
  if (hasFailed) {
    program.code.clear();
    return;
  }
  // A label may stand behind the last instruction, and code may run off its
  // end.
  Op end;
  end.control = function.isEntry ? Control::Exit : Control::Return;
  end.opClass = OpClass::Control;
  end.source = function.code.empty() ? 0 : uint32_t(function.code.size() - 1);
  program.code.push_back(std::move(end));
  current = nullptr;
  // Behind the function's own, as a register that has no name.
  if (carry != noSlot)
    registerSlots.push_back(carry);
  assignSlots(program, layouts, registerSlots);
  if (program.numSlots > mostSlots) {
    fail("more than " + llvm::Twine(mostSlots) + " registers live at once");
    program.code.clear();
  }
}

} // namespace fsr::ptx
