// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What single statements and declarations show. What is done with the addresses
// of variables is looked at in PointerUse.cpp, but for those that stand in
// another variable's values: they would be read from memory, where nobody
// follows them. PTX does not tell a const variable from a writable one.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <vector>

using llvm::StringRef;

namespace fsr {
namespace {

/// "ld" of "ld.global.nc.f32".
StringRef baseOf(StringRef opcode) { return opcode.split('.').first; }

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
  if (token.starts_with("reserved_smem_offset"))
    return "reads where the system keeps its own shared memory";
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
          .Cases(
              {"tex", "tld4", "txq", "suld", "sust", "sured", "suq", "istypep"},
              true)
          .Default(false))
    return "uses a texture or surface, which nobody binds; pass the data as a "
           "buffer";
  // No compiler makes them of CUDA code, and the virtual device does not know
  // them: with one of them nothing would run beside a GPU.
  if (llvm::StringSwitch<bool>(base)
          .Cases({"vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr",
                  "vmad", "vset"},
                 true)
          .Default(false))
    return "uses a scalar video instruction; write it with ordinary ones";
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
  explicit Checker(const PtxModule &module) : module(module) {}

  std::optional<std::string> check(llvm::ArrayRef<std::string> entries);

private:
  bool refuse(const llvm::Twine &reason) {
    if (!refusal)
      refusal = reason.str();
    return false;
  }
  bool checkWords(llvm::ArrayRef<StringRef> statement);

  const PtxModule &module;
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
  if (auto reason = checkCode(*module, entries))
    return reason;
  return checkPointers(*module, {});
}

} // namespace fsr
