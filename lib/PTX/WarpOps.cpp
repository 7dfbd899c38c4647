// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Control flow, barriers, fences and what the lanes of a warp tell one another.
// Here an instruction is read; the engine does what it says, and where lanes
// exchange values the handlers of Exchange.h.
//
//===----------------------------------------------------------------------===//

#include "Decode.h"
#include "Exchange.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace fsr::ptx {

namespace {

void nothing(Warp &, const Op &, LaneMask) {}

Decoded decodeChanging(Decoder &decoder, Op &op) {
  const Instruction &from = decoder.instruction();
  if (from.operands.size() != 2 ||
      from.operands[1].kind != Operand::Kind::Special)
    return Decoded::NotMine;
  llvm::StringRef name = from.operands[1].name;
  bool isWide = name == "%clock64" || name == "%globaltimer";
  Handler run = changingRegister(name);
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
      op.run = activeMaskHandler();
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
    auto offsets = [&](std::vector<uint32_t> &to, bool areResults) {
      if (!isList())
        return true;
      for (const Operand &element : from.operands[at].elements) {
        if (areResults && element.kind == Operand::Kind::Sink) {
          to.push_back(CallInfo::ignored);
          continue;
        }
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
    if (!offsets(info->resultOffsets, true))
      return Decoded::Failed;
    if (!hasOperand(at))
      return Decoded::Failed;
    const Operand &target = from.operands[at++];
    if (!offsets(info->argumentOffsets, false))
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
            (offsets[i] != CallInfo::ignored &&
             offsets[i] + declared[i].bytes >
                 decoder.result().frame.localBytes))
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
    // One side of a fence orders less, and so does one that is for shared
    // memory alone; all are taken for the whole.
    info->isSequential = modifiers.take("sc");
    bool isOneSided = !info->isSequential && !modifiers.take("acq_rel") &&
                      (modifiers.take("acquire") || modifiers.take("release"));
    llvm::StringRef restriction = from.has("acquire")
                                      ? "sync_restrict::shared::cluster"
                                      : "sync_restrict::shared::cta";
    if (modifiers.take(restriction) && (!isOneSided || !from.has("cluster")))
      return decoder.fail("only a fence of one side and for the cluster is "
                          "restricted");
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
    Handler run = modifiers.take("up")     ? shuffleHandler(ShuffleMode::Up)
                  : modifiers.take("down") ? shuffleHandler(ShuffleMode::Down)
                  : modifiers.take("bfly")
                      ? shuffleHandler(ShuffleMode::Butterfly)
                  : modifiers.take("idx") ? shuffleHandler(ShuffleMode::Index)
                                          : nullptr;
    if (!run || !modifiers.take("b32"))
      return decoder.fail("expected .up, .down, .bfly or .idx, and .b32");
    if (!resultPair(Type::B32) || !source(1, Type::B32) ||
        !source(2, Type::B32) || !source(3, Type::B32) || !source(4, Type::B32))
      return failed("operands of shfl");
    op.isCopy = true;
    return finishSync(5, 3, run);
  }

  Decoded voteOp() {
    if (!takeSync())
      return Decoded::Failed;
    bool isBallot = modifiers.take("ballot");
    Handler run = isBallot                ? voteHandler(VoteMode::Ballot)
                  : modifiers.take("all") ? voteHandler(VoteMode::All)
                  : modifiers.take("any") ? voteHandler(VoteMode::Any)
                  : modifiers.take("uni") ? voteHandler(VoteMode::Uniform)
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
    return finishSync(3, 1, matchHandler(isAll, isWide));
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
      run = reductionHandler(Reduction::Float);
    } else if (isMin || isMax) {
      if (modifiers.take("s32"))
        run = isMin ? reductionHandler(Reduction::MinS)
                    : reductionHandler(Reduction::MaxS);
      else if (modifiers.take("u32"))
        run = isMin ? reductionHandler(Reduction::MinU)
                    : reductionHandler(Reduction::MaxU);
    } else if (modifiers.take("add")) {
      if (modifiers.take("s32") || modifiers.take("u32"))
        run = reductionHandler(Reduction::Add);
    } else {
      run = modifiers.take("and")   ? reductionHandler(Reduction::And)
            : modifiers.take("or")  ? reductionHandler(Reduction::Or)
            : modifiers.take("xor") ? reductionHandler(Reduction::Xor)
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
    return finishSync(2, 0, electHandler());
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
