// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Control flow, barriers, fences and what the lanes of a warp tell one another.
// The engine does most of the work: here an instruction is read, and where
// lanes exchange values, exchanged. `active` then holds all lanes that came.
//
//===----------------------------------------------------------------------===//

#include "Block.h"
#include "Decode.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <cstring>

namespace fsr::ptx {

namespace {

unsigned firstLane(LaneMask lanes) { return __builtin_ctz(lanes); }

template <typename Body>
void forLanes(LaneMask active, Body body) {
  for (LaneMask rest = active; rest; rest &= rest - 1)
    body(firstLane(rest));
}

/// The value of a lane that is not there; nothing a kernel would count on.
constexpr uint32_t undefinedValue = 0xdeadbeef;

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

enum class ShuffleMode : uint8_t { Up, Down, Butterfly, Index };

template <ShuffleMode mode>
void shuffle(Warp &warp, const Op &op, LaneMask active) {
  uint32_t values[warpLanes];
  std::memcpy(values, warp.lanes<uint32_t>(op.operand(0)), sizeof(values));
  const auto *offsets = warp.lanes<uint32_t>(op.operand(1));
  const auto *clamps = warp.lanes<uint32_t>(op.operand(2));
  uint32_t results[warpLanes];
  LaneMask inRange = 0, absent = 0;
  forLanes(active, [&](unsigned lane) {
    int b = offsets[lane] & 31, clamp = clamps[lane] & 31,
        segment = clamps[lane] >> 8 & 31;
    int own = int(lane);
    int most = (own & segment) | (clamp & ~segment), least = own & segment;
    int from = own;
    bool isIn = false;
    switch (mode) {
    case ShuffleMode::Up:
      from = own - b;
      isIn = from >= most;
      break;
    case ShuffleMode::Down:
      from = own + b;
      isIn = from <= most;
      break;
    case ShuffleMode::Butterfly:
      from = own ^ b;
      isIn = from <= most;
      break;
    case ShuffleMode::Index:
      from = least | (b & ~segment & 31);
      isIn = from <= most;
      break;
    }
    if (!isIn)
      from = own;
    inRange |= LaneMask(isIn) << lane;
    if (active >> from & 1) {
      results[lane] = values[from];
    } else {
      results[lane] = undefinedValue;
      absent |= LaneMask(1) << lane;
    }
  });
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = results[lane]; });
  if (op.numResults > 1) {
    LaneMask &predicate = warp.predicate(op.result(1));
    predicate = (predicate & ~active) | inRange;
  }
  // Undefined by itself, but reductions over part of a warp do it all the time
  // and drop the value.
  if (absent)
    warp.remark(op, firstLane(absent), FindingKind::ShuffleMask, 0,
                "reads a lane that takes no part: the value is undefined");
}

/// The predicate source, negated as the instruction says.
LaneMask voteOf(Warp &warp, const Op &op, LaneMask active) {
  LaneMask value = warp.predicate(op.operand(0));
  return (op.immediate & 1 ? ~value : value) & active;
}

enum class VoteMode : uint8_t { All, Any, Uniform, Ballot };

template <VoteMode mode>
void vote(Warp &warp, const Op &op, LaneMask active) {
  LaneMask votes = voteOf(warp, op, active);
  if (mode == VoteMode::Ballot) {
    auto *to = warp.lanes<uint32_t>(op.result(0));
    forLanes(active, [&](unsigned lane) { to[lane] = votes; });
    return;
  }
  bool value = mode == VoteMode::All   ? votes == active
               : mode == VoteMode::Any ? votes != 0
                                       : votes == active || votes == 0;
  LaneMask &to = warp.predicate(op.result(0));
  to = value ? to | active : to & ~active;
}

template <typename T, bool isAll>
void match(Warp &warp, const Op &op, LaneMask active) {
  const T *values = warp.lanes<T>(op.operand(0));
  uint32_t results[warpLanes];
  bool areSame = true;
  forLanes(active, [&](unsigned lane) {
    LaneMask same = 0;
    forLanes(active, [&](unsigned other) {
      same |= LaneMask(values[other] == values[lane]) << other;
    });
    results[lane] = same;
    areSame &= same == active;
  });
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) {
    to[lane] = isAll ? (areSame ? active : 0) : results[lane];
  });
  if (op.numResults > 1) {
    LaneMask &predicate = warp.predicate(op.result(1));
    predicate = areSame ? predicate | active : predicate & ~active;
  }
}

template <typename T, typename Combine>
void reduce(Warp &warp, const Op &op, LaneMask active, Combine combine) {
  const auto *values = warp.lanes<uint32_t>(op.operand(0));
  T result = T(values[firstLane(active)]);
  forLanes(active & (active - 1),
           [&](unsigned lane) { result = combine(result, T(values[lane])); });
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = uint32_t(result); });
}

enum class Reduction : uint8_t { Add, MinU, MaxU, MinS, MaxS, And, Or, Xor };

template <Reduction how>
void reduceInteger(Warp &warp, const Op &op, LaneMask active) {
  switch (how) {
  case Reduction::Add:
    return reduce<uint32_t>(warp, op, active,
                            [](uint32_t a, uint32_t b) { return a + b; });
  case Reduction::MinU:
    return reduce<uint32_t>(
        warp, op, active, [](uint32_t a, uint32_t b) { return a < b ? a : b; });
  case Reduction::MaxU:
    return reduce<uint32_t>(
        warp, op, active, [](uint32_t a, uint32_t b) { return a < b ? b : a; });
  case Reduction::MinS:
    return reduce<int32_t>(warp, op, active,
                           [](int32_t a, int32_t b) { return a < b ? a : b; });
  case Reduction::MaxS:
    return reduce<int32_t>(warp, op, active,
                           [](int32_t a, int32_t b) { return a < b ? b : a; });
  case Reduction::And:
    return reduce<uint32_t>(warp, op, active,
                            [](uint32_t a, uint32_t b) { return a & b; });
  case Reduction::Or:
    return reduce<uint32_t>(warp, op, active,
                            [](uint32_t a, uint32_t b) { return a | b; });
  case Reduction::Xor:
    return reduce<uint32_t>(warp, op, active,
                            [](uint32_t a, uint32_t b) { return a ^ b; });
  }
}

/// Bits of `Op::immediate` for floats.
constexpr uint64_t reduceAbs = 1, reduceNan = 2, reduceMax = 4;

void reduceFloat(Warp &warp, const Op &op, LaneMask active) {
  constexpr uint32_t nan = 0x7fffffff;
  uint64_t how = op.immediate;
  auto isNan = [](uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; };
  // Ordered as integers, so that -0 is below +0.
  auto key = [](uint32_t bits) {
    return int32_t(bits) < 0 ? int32_t(~bits ^ 0x80000000) : int32_t(bits);
  };
  const auto *values = warp.lanes<uint32_t>(op.operand(0));
  uint32_t result = nan;
  bool any = false, anyNan = false;
  forLanes(active, [&](unsigned lane) {
    uint32_t value = values[lane];
    if (how & reduceAbs)
      value &= 0x7fffffff;
    if (isNan(value)) {
      anyNan = true;
      return;
    }
    if (!any ||
        (how & reduceMax ? key(value) > key(result) : key(value) < key(result)))
      result = value;
    any = true;
  });
  if (!any || (anyNan && (how & reduceNan)))
    result = nan;
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = result; });
}

void elect(Warp &warp, const Op &op, LaneMask active) {
  unsigned leader = firstLane(active);
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = leader; });
  LaneMask &predicate = warp.predicate(op.result(1));
  predicate = (predicate & ~active) | LaneMask(1) << leader;
}

void activeMask(Warp &warp, const Op &op, LaneMask active) {
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = active; });
}

void nothing(Warp &, const Op &, LaneMask) {}

//===----------------------------------------------------------------------===//
// Special registers that change
//===----------------------------------------------------------------------===//

template <typename T, unsigned shift>
void readClock(Warp &warp, const Op &op, LaneMask active) {
  // Each look is later than the one before; the unit is as good as any.
  uint64_t now = (warp.executed += 1) * 4;
  auto *to = warp.lanes<T>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = T(now >> shift); });
}

void readMultiprocessor(Warp &warp, const Op &op, LaneMask active) {
  const Launch &launch = *warp.block->launch;
  auto value =
      uint32_t(warp.block->linear % std::max(1u, launch.numMultiprocessors));
  auto *to = warp.lanes<uint32_t>(op.result(0));
  forLanes(active, [&](unsigned lane) { to[lane] = value; });
}

Decoded decodeChanging(Decoder &decoder, Op &op) {
  const Instruction &from = decoder.instruction();
  if (from.operands.size() != 2 ||
      from.operands[1].kind != Operand::Kind::Special)
    return Decoded::NotMine;
  llvm::StringRef name = from.operands[1].name;
  bool isWide = name == "%clock64" || name == "%globaltimer";
  Handler run = llvm::StringSwitch<Handler>(name)
                    .Case("%clock64", readClock<uint64_t, 0>)
                    .Case("%globaltimer", readClock<uint64_t, 0>)
                    .Case("%clock", readClock<uint32_t, 0>)
                    .Case("%clock_hi", readClock<uint32_t, 32>)
                    .Case("%globaltimer_lo", readClock<uint32_t, 0>)
                    .Case("%globaltimer_hi", readClock<uint32_t, 32>)
                    .Case("%smid", readMultiprocessor)
                    .Default(nullptr);
  if (!run)
    return Decoded::NotMine;
  if (from.modifiers.size() != 1)
    return decoder.fail("expected one type");
  std::optional<Type> type = parseType(from.modifiers[0]);
  if (!type || isFloat(*type) || bitWidth(*type) != (isWide ? 64 : 32))
    return decoder.fail(name + " does not have the width of ." +
                        from.modifiers[0]);
  Slot to = decoder.resultSlot(from.operands[0], *type);
  if (to == noSlot)
    return Decoded::Failed;
  decoder.setSlots(op, to, {});
  op.run = run;
  op.flow = Flow::Schedule;
  return Decoded::Done;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// Modifiers one by one; what nobody asks for is left over.
class Modifiers {
public:
  explicit Modifiers(const Instruction &from)
      : rest(from.modifiers.begin(), from.modifiers.end()) {}
  bool take(llvm::StringRef name) {
    auto at = llvm::find(rest, name);
    if (at == rest.end())
      return false;
    rest.erase(at);
    return true;
  }
  bool isEmpty() const { return rest.empty(); }
  llvm::StringRef first() const { return rest.front(); }

private:
  llvm::SmallVector<llvm::StringRef, 6> rest;
};

class WarpDecoder {
public:
  WarpDecoder(Decoder &decoder, Op &op)
      : decoder(decoder), op(op), from(decoder.instruction()), modifiers(from) {
  }

  Decoded run() {
    llvm::StringRef opcode = from.opcode;
    op.opClass = OpClass::Control;
    if (opcode == "bra")
      return branch();
    if (opcode == "brx")
      return branchIndexed();
    if (opcode == "ret" || opcode == "exit") {
      if (opcode == "ret")
        modifiers.take("uni");
      op.control = opcode == "ret" ? Control::Return : Control::Exit;
      return finish(0);
    }
    if (opcode == "trap" || opcode == "brkpt") {
      op.control = Control::Trap;
      return finish(0);
    }
    if (opcode == "call")
      return call();
    if (opcode == "nanosleep") {
      op.control = Control::Yield;
      modifiers.take("u32");
      if (!source(0, Type::U32))
        return Decoded::Failed;
      return finish(1);
    }
    if (opcode == "pmevent") {
      modifiers.take("mask");
      return noOperation(1);
    }
    if (opcode == "griddepcontrol") {
      // Launches follow one another here: what came before is done.
      if (!modifiers.take("launch_dependents") && !modifiers.take("wait"))
        return decoder.fail("expected .launch_dependents or .wait");
      return noOperation(0);
    }
    if (opcode == "setmaxnreg") {
      if (!modifiers.take("inc") && !modifiers.take("dec"))
        return decoder.fail("expected .inc or .dec");
      modifiers.take("sync");
      modifiers.take("aligned");
      modifiers.take("u32");
      return noOperation(1);
    }
    if (opcode == "bar" || opcode == "barrier")
      return barrier();
    if (opcode == "fence" || opcode == "membar")
      return fence();
    op.opClass = OpClass::Shuffle;
    if (opcode == "shfl")
      return shuffleOp();
    if (opcode == "vote")
      return voteOp();
    if (opcode == "match")
      return matchOp();
    if (opcode == "redux")
      return reduxOp();
    if (opcode == "elect")
      return electOp();
    if (opcode == "activemask") {
      if (!modifiers.take("b32") || !result(0, Type::B32))
        return decoder.fail("expected .b32 and a register");
      op.run = activeMask;
      op.flow = Flow::Schedule;
      return finish(1);
    }
    op.opClass = OpClass::Integer;
    if (opcode == "mov")
      return decodeChanging(decoder, op);
    return Decoded::NotMine;
  }

private:
  bool hasOperand(size_t index) {
    if (index < from.operands.size())
      return true;
    decoder.fail("operand " + llvm::Twine(index + 1) + " is missing");
    return false;
  }
  bool result(size_t index, Type type) {
    return hasOperand(index) && resultOf(from.operands[index], type);
  }
  bool resultOf(const Operand &operand, Type type) {
    results.push_back(decoder.resultSlot(operand, type));
    return results.back() != noSlot;
  }
  bool source(size_t index, Type type) {
    if (!hasOperand(index))
      return false;
    sources.push_back(decoder.sourceSlot(from.operands[index], type));
    return sources.back() != noSlot;
  }
  /// `d` or `d|p`.
  bool resultPair(Type first) {
    if (!hasOperand(0))
      return false;
    const Operand &operand = from.operands[0];
    if (operand.kind != Operand::Kind::Pair)
      return resultOf(operand, first);
    return operand.elements.size() == 2 &&
           resultOf(operand.elements[0], first) &&
           resultOf(operand.elements[1], Type::Pred);
  }
  Decoded finish(size_t operands) {
    if (!modifiers.isEmpty())
      return decoder.failModifier(modifiers.first());
    if (!decoder.expectOperands(operands))
      return Decoded::Failed;
    decoder.setSlots(op, results, sources);
    return Decoded::Done;
  }
  Decoded noOperation(size_t operands) {
    op.run = nothing;
    return finish(operands);
  }

  Decoded branch() {
    modifiers.take("uni");
    if (!hasOperand(0))
      return Decoded::Failed;
    if (from.operands[0].kind != Operand::Kind::Label)
      return decoder.fail("expected a label");
    op.control = Control::Branch;
    op.target = from.operands[0].index;
    return finish(1);
  }

  Decoded branchIndexed() {
    if (!modifiers.take("idx"))
      return decoder.fail("expected .idx");
    modifiers.take("uni");
    if (!hasOperand(1) || !source(0, Type::U32))
      return Decoded::Failed;
    auto *table = decoder.makeInfo<LabelTable>();
    bool isKnown = false;
    for (const LabelList &list : decoder.owner().labelLists) {
      if (list.name != from.operands[1].name)
        continue;
      table->targets = list.targets;
      isKnown = true;
    }
    if (!isKnown || table->targets.empty())
      return decoder.fail("expected a list of branch targets");
    op.control = Control::BranchIndex;
    op.info = table;
    return finish(2);
  }

  Decoded call() {
    modifiers.take("uni");
    if (!modifiers.isEmpty())
      return decoder.failModifier(modifiers.first());
    auto *info = decoder.makeInfo<CallInfo>();
    op.control = Control::Call;
    op.info = info;
    size_t at = 0;
    auto isList = [&] {
      return at < from.operands.size() &&
             from.operands[at].kind == Operand::Kind::Parenthesised;
    };
    auto offsets = [&](std::vector<uint32_t> &to) {
      if (!isList())
        return true;
      for (const Operand &element : from.operands[at].elements) {
        auto found = decoder.result().frame.offsets.find(element.name);
        if (element.kind != Operand::Kind::Variable || element.bits ||
            found == decoder.result().frame.offsets.end()) {
          decoder.fail("a parameter that is no .param variable of the caller "
                       "is not supported");
          return false;
        }
        to.push_back(uint32_t(found->second));
      }
      ++at;
      return true;
    };
    if (!offsets(info->resultOffsets))
      return Decoded::Failed;
    if (!hasOperand(at))
      return Decoded::Failed;
    const Operand &target = from.operands[at++];
    if (!offsets(info->argumentOffsets))
      return Decoded::Failed;
    if (at < from.operands.size() &&
        from.operands[at].kind == Operand::Kind::Targets)
      ++at;
    if (at != from.operands.size())
      return decoder.fail("an operand behind the parameters");
    if (target.kind == Operand::Kind::Register) {
      sources.push_back(decoder.sourceSlot(target, Type::B64));
      if (sources.back() == noSlot)
        return Decoded::Failed;
      decoder.setSlots(op, {}, sources);
      return Decoded::Done;
    }
    if (target.kind != Operand::Kind::Function)
      return decoder.fail("expected a function");
    decoder.setSlots(op, {}, {});
    return callNamed(target.name, *info);
  }

  Decoded callNamed(llvm::StringRef name, CallInfo &info) {
    const Function *callee = decoder.result().module->findFunction(name);
    if (!callee)
      return decoder.fail("function " + name + " is not declared");
    if (callee->isEntry)
      return decoder.fail("kernel " + name + " cannot be called");
    if (info.argumentOffsets.size() != callee->parameters.size() ||
        info.resultOffsets.size() != callee->results.size())
      return decoder.fail("function " + name + " has other parameters");
    // Copies are of the callee's sizes and must stay in the caller's frame.
    auto fits = [&](const std::vector<uint32_t> &offsets,
                    llvm::ArrayRef<Variable> declared) {
      for (size_t i = 0; i < offsets.size(); ++i)
        if (declared[i].space == Space::Generic ||
            offsets[i] + declared[i].bytes > decoder.result().frame.localBytes)
          return false;
      return true;
    };
    if (!fits(info.argumentOffsets, callee->parameters) ||
        !fits(info.resultOffsets, callee->results))
      return decoder.fail("function " + name +
                          " has parameters that do not fit the call");
    if (callee->isExtern) {
      using Builtin = CallInfo::Builtin;
      info.builtin = llvm::StringSwitch<Builtin>(name)
                         .Case("vprintf", Builtin::Vprintf)
                         .Case("__assertfail", Builtin::AssertFail)
                         .Case("malloc", Builtin::Malloc)
                         .Case("free", Builtin::Free)
                         .Default(Builtin::None);
      struct Shape {
        llvm::SmallVector<uint64_t, 5> parameters;
        uint64_t result;
      } shape;
      switch (info.builtin) {
      case Builtin::None:
        return decoder.fail("function " + name + " is not defined");
      case Builtin::Vprintf:
        shape = {{8, 8}, 4};
        break;
      case Builtin::AssertFail:
        shape = {{8, 8, 4, 8, 8}, 0};
        break;
      case Builtin::Malloc:
        shape = {{8}, 8};
        break;
      case Builtin::Free:
        shape = {{8}, 0};
        break;
      }
      bool isRight =
          callee->parameters.size() == shape.parameters.size() &&
          callee->results.size() == size_t(shape.result != 0) &&
          (!shape.result || callee->results[0].bytes == shape.result);
      for (size_t i = 0; isRight && i < shape.parameters.size(); ++i)
        isRight = callee->parameters[i].bytes == shape.parameters[i];
      if (!isRight)
        return decoder.fail("function " + name + " is not declared as CUDA's");
      return Decoded::Done;
    }
    info.callee = decoder.linker().findProgram(name);
    if (!info.callee)
      return decoder.fail("function " + name + " is not defined");
    return Decoded::Done;
  }

  Decoded barrier() {
    op.opClass = OpClass::Barrier;
    if (modifiers.take("warp")) {
      if (!modifiers.take("sync") || !source(0, Type::B32))
        return decoder.fail("expected .sync and a mask");
      op.control = Control::WarpSync;
      op.maskSource = 0;
      return finish(1);
    }
    if (from.has("cluster"))
      return Decoded::NotMine;
    modifiers.take("cta");
    auto *info = decoder.makeInfo<BarrierInfo>();
    op.control = Control::Barrier;
    op.info = info;
    info->isAligned = from.opcode == "bar" || modifiers.take("aligned");
    using Kind = BarrierInfo::Kind;
    size_t numOperands = from.operands.size();
    if (modifiers.take("sync") || modifiers.take("arrive")) {
      bool isArrive = from.has("arrive");
      info->kind = isArrive ? Kind::Arrive : Kind::Sync;
      info->hasCount = numOperands == 2;
      if (!source(0, Type::U32) ||
          ((info->hasCount || isArrive) && !source(1, Type::U32)))
        return Decoded::Failed;
      return finish(info->hasCount ? 2 : 1);
    }
    if (!modifiers.take("red"))
      return decoder.fail("expected .sync, .arrive or .red");
    Type type = Type::Pred;
    if (modifiers.take("popc")) {
      info->kind = Kind::ReducePopc;
      type = Type::U32;
      if (!modifiers.take("u32"))
        return decoder.fail("expected .u32");
    } else {
      bool isAnd = modifiers.take("and");
      if ((!isAnd && !modifiers.take("or")) || !modifiers.take("pred"))
        return decoder.fail("expected .popc.u32, .and.pred or .or.pred");
      info->kind = isAnd ? Kind::ReduceAnd : Kind::ReduceOr;
    }
    info->hasCount = numOperands == 4;
    size_t last = info->hasCount ? 3 : 2;
    if (!result(0, type) || !source(1, Type::U32) ||
        (info->hasCount && !source(2, Type::U32)) || !source(last, Type::Pred))
      return Decoded::Failed;
    op.immediate = from.operands[last].isNegated;
    return finish(last + 1);
  }

  Decoded fence() {
    if (from.has("proxy") || from.has("mbarrier_init"))
      return Decoded::NotMine;
    op.opClass = OpClass::Barrier;
    auto *info = decoder.makeInfo<FenceInfo>();
    op.control = Control::Fence;
    op.info = info;
    if (from.opcode == "membar") {
      info->isSequential = true;
      if (modifiers.take("cta"))
        info->scope = Scope::Block;
      else if (modifiers.take("gl"))
        info->scope = Scope::Gpu;
      else if (modifiers.take("sys"))
        info->scope = Scope::System;
      else
        return decoder.fail("expected .cta, .gl or .sys");
      return finish(0);
    }
    // One side of a fence orders less; both are taken for the whole.
    info->isSequential = modifiers.take("sc");
    if (!info->isSequential && !modifiers.take("acq_rel") &&
        (from.has("acquire") || from.has("release")))
      return decoder.fail("a fence of one side is not supported");
    if (modifiers.take("cta"))
      info->scope = Scope::Block;
    else if (modifiers.take("cluster"))
      info->scope = Scope::Cluster;
    else if (modifiers.take("gpu"))
      info->scope = Scope::Gpu;
    else if (modifiers.take("sys"))
      info->scope = Scope::System;
    else
      return decoder.fail("expected a scope");
    return finish(0);
  }

  /// All of them; before, lanes were taken to be in step.
  bool takeSync() {
    if (modifiers.take("sync"))
      return true;
    decoder.fail("only the form with .sync is supported");
    return false;
  }
  Decoded finishSync(size_t operands, unsigned maskSource, Handler run) {
    op.control = Control::WarpSync;
    op.flow = Flow::Across;
    op.maskSource = uint8_t(maskSource);
    op.run = run;
    return finish(operands);
  }

  Decoded shuffleOp() {
    if (!takeSync())
      return Decoded::Failed;
    Handler run = modifiers.take("up")     ? shuffle<ShuffleMode::Up>
                  : modifiers.take("down") ? shuffle<ShuffleMode::Down>
                  : modifiers.take("bfly") ? shuffle<ShuffleMode::Butterfly>
                  : modifiers.take("idx")  ? shuffle<ShuffleMode::Index>
                                           : nullptr;
    if (!run || !modifiers.take("b32"))
      return decoder.fail("expected .up, .down, .bfly or .idx, and .b32");
    if (!resultPair(Type::B32) || !source(1, Type::B32) ||
        !source(2, Type::B32) || !source(3, Type::B32) || !source(4, Type::B32))
      return failed("operands of shfl");
    return finishSync(5, 3, run);
  }

  Decoded voteOp() {
    if (!takeSync())
      return Decoded::Failed;
    bool isBallot = modifiers.take("ballot");
    Handler run = isBallot                ? vote<VoteMode::Ballot>
                  : modifiers.take("all") ? vote<VoteMode::All>
                  : modifiers.take("any") ? vote<VoteMode::Any>
                  : modifiers.take("uni") ? vote<VoteMode::Uniform>
                                          : nullptr;
    if (!run || !modifiers.take(isBallot ? "b32" : "pred"))
      return decoder.fail("expected .all, .any or .uni with .pred, or "
                          ".ballot.b32");
    if (!result(0, isBallot ? Type::B32 : Type::Pred) ||
        !source(1, Type::Pred) || !source(2, Type::B32))
      return failed("operands of vote");
    op.immediate = from.operands[1].isNegated;
    return finishSync(3, 1, run);
  }

  Decoded matchOp() {
    bool isAll = modifiers.take("all");
    if (!isAll && !modifiers.take("any"))
      return decoder.fail("expected .any or .all");
    if (!takeSync())
      return Decoded::Failed;
    bool isWide = modifiers.take("b64");
    if (!isWide && !modifiers.take("b32"))
      return decoder.fail("expected .b32 or .b64");
    if (!(isAll ? resultPair(Type::B32) : result(0, Type::B32)) ||
        !source(1, isWide ? Type::B64 : Type::B32) || !source(2, Type::B32))
      return failed("operands of match");
    return finishSync(
        3, 1,
        isWide ? (isAll ? match<uint64_t, true> : match<uint64_t, false>)
               : (isAll ? match<uint32_t, true> : match<uint32_t, false>));
  }

  Decoded reduxOp() {
    if (!takeSync())
      return Decoded::Failed;
    bool isMin = modifiers.take("min"), isMax = modifiers.take("max");
    Handler run = nullptr;
    if (modifiers.take("f32")) {
      if (isMin == isMax)
        return decoder.fail("expected .min or .max");
      op.immediate = (modifiers.take("abs") ? reduceAbs : 0) |
                     (modifiers.take("NaN") ? reduceNan : 0) |
                     (isMax ? reduceMax : 0);
      run = reduceFloat;
    } else if (isMin || isMax) {
      if (modifiers.take("s32"))
        run = isMin ? reduceInteger<Reduction::MinS>
                    : reduceInteger<Reduction::MaxS>;
      else if (modifiers.take("u32"))
        run = isMin ? reduceInteger<Reduction::MinU>
                    : reduceInteger<Reduction::MaxU>;
    } else if (modifiers.take("add")) {
      if (modifiers.take("s32") || modifiers.take("u32"))
        run = reduceInteger<Reduction::Add>;
    } else {
      run = modifiers.take("and")   ? reduceInteger<Reduction::And>
            : modifiers.take("or")  ? reduceInteger<Reduction::Or>
            : modifiers.take("xor") ? reduceInteger<Reduction::Xor>
                                    : nullptr;
      if (!modifiers.take("b32"))
        run = nullptr;
    }
    if (!run)
      return decoder.fail("not a form of redux");
    if (!result(0, Type::B32) || !source(1, Type::B32) || !source(2, Type::B32))
      return failed("operands of redux");
    return finishSync(3, 1, run);
  }

  Decoded electOp() {
    if (!takeSync())
      return Decoded::Failed;
    if (!resultPair(Type::B32) || results.size() != 2 || !source(1, Type::B32))
      return failed("operands of elect");
    return finishSync(2, 0, elect);
  }

  /// The first message stays.
  Decoded failed(const char *what) {
    return decoder.fail(llvm::Twine("expected ") + what);
  }

  Decoder &decoder;
  Op &op;
  const Instruction &from;
  Modifiers modifiers;
  llvm::SmallVector<Slot, 2> results;
  llvm::SmallVector<Slot, 4> sources;
};

} // namespace

Decoded decodeWarp(Decoder &decoder, Op &op) {
  OpClass before = op.opClass;
  Decoded decoded = WarpDecoder(decoder, op).run();
  if (decoded == Decoded::NotMine) {
    op.opClass = before;
    op.control = Control::Plain;
    op.info = nullptr;
  }
  return decoded;
}

} // namespace fsr::ptx
