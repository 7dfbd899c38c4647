// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX does
// not tell a const variable from a writable one, and a single include brings a
// thousand constants, so what counts is use: within a function, whatever is
// computed from a variable's address may be loaded from and nothing else. What
// cannot be followed (the address is stored, passed or put into another
// variable) is refused.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

#include <vector>

using llvm::StringRef;

namespace fsr {
namespace {

/// "ld" of "ld.global.nc.f32".
StringRef baseOf(StringRef opcode) { return opcode.split('.').first; }

/// Instructions that compute their first operand from the others and touch no
/// memory, or only read it.
bool onlyComputes(StringRef opcode) {
  return llvm::StringSwitch<bool>(baseOf(opcode))
      .Cases({"ld", "ldu", "mov", "cvta", "cvt", "prefetch", "prefetchu",
              "isspacep"},
             true)
      .Cases({"add", "addc", "sub", "subc", "mul", "mad", "madc", "shl", "shr",
              "shf", "and", "or", "xor", "not", "neg", "abs", "min", "max"},
             true)
      .Cases({"selp", "slct", "setp", "set", "lop3", "prmt", "bfe", "bfi",
              "szext", "bmsk", "mul24", "mad24"},
             true)
      .Default(false);
}

/// A special register whose value a candidate may not see, and why.
StringRef whyNoRegister(StringRef token) {
  if (!token.consume_front("%"))
    return "";
  if (token == "warpid")
    return "reads in which place of the multiprocessor its warp runs; compute "
           "the warp from threadIdx";
  if (token.starts_with("clock") || token.starts_with("globaltimer"))
    return "reads a clock, and the time of a launch is not its business";
  if (token == "smid")
    return "reads on which multiprocessor it runs";
  if (token == "gridid" || token == "current_graph_exec")
    return "reads a number that tells launches apart";
  if (token.starts_with("envreg"))
    return "reads a driver register, as a grid-wide barrier does; split the "
           "work into several launches instead";
  if (token.size() > 2 && token.starts_with("pm") && llvm::isDigit(token[2]))
    return "reads a performance counter";
  return "";
}

/// An instruction that a candidate may not use, and why.
StringRef whyNoInstruction(StringRef opcode) {
  StringRef base = baseOf(opcode);
  if (base == "brkpt")
    return "stops for a debugger";
  if (base == "pmevent")
    return "signals a profiler";
  if (llvm::StringSwitch<bool>(base)
          .Cases({"tex", "tld4", "txq", "suld", "sust", "sured", "suq"}, true)
          .Default(false))
    return "uses a texture or surface, which nobody binds; pass the data as a "
           "buffer";
  if (opcode.starts_with("griddepcontrol.launch_dependents"))
    return "lets the next launch start before this one has ended; launches of "
           "a plan run one after another";
  return "";
}

/// What ptxas understands; another one may be anything.
bool isKnownPragma(StringRef text) {
  text = text.trim('"');
  return text == "nounroll" || text.starts_with("used_bytes_mask") ||
         text == "enable_smem_spilling" || text.starts_with("frequency");
}

class Checker {
public:
  explicit Checker(const PtxModule &module) : module(module) {
    for (StringRef name : module.externs)
      externs.insert(name);
  }

  std::optional<std::string> check(llvm::ArrayRef<std::string> entries);

private:
  bool refuse(const llvm::Twine &reason) {
    if (!refusal)
      refusal = reason.str();
    return false;
  }
  bool checkWords(llvm::ArrayRef<StringRef> statement);
  bool checkBody(llvm::ArrayRef<PtxWords> body);
  bool checkStatement(llvm::ArrayRef<StringRef> statement,
                      llvm::StringMap<StringRef> &addresses, StringRef &pending,
                      bool &changed);
  bool checkCall(llvm::ArrayRef<StringRef> statement, StringRef carried);

  const PtxModule &module;
  llvm::StringSet<> externs;
  std::optional<std::string> refusal;
};

/// What one statement shows by itself.
bool Checker::checkWords(llvm::ArrayRef<StringRef> statement) {
  for (StringRef word : statement)
    if (StringRef why = whyNoRegister(word); !why.empty())
      return refuse("the code " + why + " (" + word + ")");
  llvm::ArrayRef<StringRef> words = withoutGuard(statement);
  if (words.empty())
    return true;
  StringRef opcode = words.front();
  if (StringRef why = whyNoInstruction(opcode); !why.empty())
    return refuse("the code " + why + " (" + opcode + ")");
  if (!opcode.starts_with("."))
    return true;
  for (StringRef space : {".global", ".const", ".extern"})
    if (llvm::is_contained(words, space))
      return refuse("inline assembly declares a " + space + " variable");
  if (opcode == ".pragma")
    for (StringRef word : words.drop_front())
      if (word != "," && !isKnownPragma(word))
        return refuse("the pragma " + word.take_front(80) +
                      " in inline assembly is not known");
  return true;
}

bool Checker::checkCall(llvm::ArrayRef<StringRef> statement,
                        StringRef carried) {
  // call.uni (results), name, (arguments), prototype
  size_t i = 1;
  if (i < statement.size() && statement[i] == "(")
    i = llvm::find(statement, StringRef(")")) - statement.begin() + 1;
  while (i < statement.size() && statement[i] == ",")
    ++i;
  StringRef callee = i < statement.size() ? statement[i] : StringRef();
  if (carried.empty() || externs.contains(callee))
    return true;
  return refuse("the address of `" + carried + "` is passed to `" + callee +
                "`; a variable in device memory must only be read where it is "
                "in sight (make the function inline, or the data an argument)");
}

bool Checker::checkStatement(llvm::ArrayRef<StringRef> statement,
                             llvm::StringMap<StringRef> &addresses,
                             StringRef &pending, bool &changed) {
  llvm::ArrayRef<StringRef> words = withoutGuard(statement);
  if (words.empty() || words.front().starts_with("."))
    return true;
  StringRef opcode = words.front();
  // The variable whose address an operand carries, and where the first is.
  StringRef carried;
  size_t first = 0;
  for (size_t i = 1; i < words.size() && carried.empty(); ++i) {
    auto it = addresses.find(words[i]);
    if (it != addresses.end()) {
      carried = it->second;
      first = i;
    }
  }
  StringRef base = baseOf(opcode);
  if (base == "call") {
    StringRef handed = carried.empty() ? pending : carried;
    pending = "";
    return checkCall(words, handed);
  }
  if (carried.empty())
    return true;
  if (opcode.starts_with("st.param")) {
    pending = carried;
    return true;
  }
  if (base == "cp" || opcode.starts_with("cp.async")) {
    // Copies may read from it: not in the first pair of brackets.
    size_t close = llvm::find(words, StringRef("]")) - words.begin();
    if (first > close)
      return true;
  }
  if (!onlyComputes(opcode))
    return refuse("the variable `" + carried +
                  "` in device memory is used by `" + opcode +
                  "`: no state may survive a launch; use a scratch buffer of "
                  "the plan, shared memory, or make it const");
  if (base == "ld" || base == "ldu" || base == "prefetch" ||
      base == "prefetchu")
    return true;
  // Everything in the first operand now carries the address too.
  auto mark = [&](StringRef word) {
    if (isPtxName(word) && addresses.try_emplace(word, carried).second)
      changed = true;
  };
  if (words.size() > 1 && words[1] == "{") {
    for (size_t i = 2; i < words.size() && words[i] != "}"; ++i)
      mark(words[i]);
  } else {
    for (size_t i = 1; i < words.size() && words[i] != ","; ++i)
      mark(words[i]);
  }
  return true;
}

bool Checker::checkBody(llvm::ArrayRef<PtxWords> body) {
  llvm::StringMap<StringRef> addresses;
  for (const auto &variable : module.variables)
    if (!variable.second.isConst)
      addresses[variable.first()] = variable.first();
  // Loops carry addresses backwards; real code settles in two or three rounds.
  for (unsigned round = 0; round < 32; ++round) {
    bool changed = false;
    StringRef pending;
    for (const PtxWords &statement : body)
      if (!checkStatement(statement, addresses, pending, changed))
        return false;
    if (!changed)
      return true;
  }
  return refuse("the uses of variables in device memory are too entangled to "
                "be checked");
}

std::optional<std::string> Checker::check(llvm::ArrayRef<std::string> entries) {
  for (const PtxFunction &function : module.functions)
    for (const PtxWords &statement : function.body)
      if (!checkWords(statement))
        return refusal;
  for (StringRef name : module.initialisers) {
    auto it = module.variables.find(name);
    if (it != module.variables.end() && !it->second.isConst) {
      refuse("the address of `" + name +
             "` is kept in another variable, where its uses cannot be seen");
      return refusal;
    }
  }
  for (const PtxFunction &function : module.functions)
    if (!checkBody(function.body))
      return refusal;
  std::vector<StringRef> kernels;
  for (const PtxFunction &function : module.functions)
    if (function.isEntry)
      kernels.push_back(function.name);
  for (const std::string &entry : entries)
    if (!llvm::is_contained(kernels, StringRef(entry))) {
      std::string have = llvm::join(kernels, "`, `");
      refuse("the source defines no kernel `" + entry + "`" +
             (kernels.empty() ? std::string("; it defines none at all")
                              : "; it defines `" + have + "`") +
             " (a kernel is declared extern \"C\" __global__)");
      return refusal;
    }
  return std::nullopt;
}

} // namespace

std::optional<std::string> checkCode(const PtxModule &module,
                                     llvm::ArrayRef<std::string> entries) {
  return Checker(module).check(entries);
}

std::optional<std::string> checkContract(StringRef ptx,
                                         llvm::ArrayRef<std::string> entries) {
  std::string refusal;
  std::optional<PtxModule> module = readPtx(ptx, refusal);
  if (!module)
    return refusal;
  return checkCode(*module, entries);
}

} // namespace fsr
