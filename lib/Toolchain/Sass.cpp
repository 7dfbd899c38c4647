// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a kernel's machine code consists of, from the text of nvdisasm. The code
// is made of an LLM's text and the format is nobody's promise, so a line that
// is not known is passed over, and the text is capped.
//
// NOPs and the endless jump behind a function fill it up; they do not count.
//
//===----------------------------------------------------------------------===//

#include "Tools.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using llvm::StringRef;

namespace fsr {

namespace {

constexpr std::chrono::seconds timeLimit(20);
constexpr size_t mostTextBytes = size_t(64) << 20;

/// How many bits a thread moves: ".128", ".U8"; 32 where nothing is said.
unsigned widthOf(llvm::ArrayRef<StringRef> modifiers) {
  for (StringRef one : modifiers) {
    unsigned bits = llvm::StringSwitch<unsigned>(one)
                        .Cases({"U8", "S8"}, 8)
                        .Cases({"U16", "S16"}, 16)
                        .Case("64", 64)
                        .Case("128", 128)
                        .Case("256", 256)
                        .Default(0);
    if (bits)
      return bits;
  }
  return 32;
}

CodeClass withWidth(CodeClass narrow, llvm::ArrayRef<StringRef> modifiers) {
  unsigned bits = widthOf(modifiers);
  unsigned step = bits < 32 ? 0 : bits == 32 ? 1 : bits == 64 ? 2 : 3;
  return CodeClass(unsigned(narrow) + step);
}

/// By the first word of an instruction, without its modifiers.
CodeClass classOf(StringRef name) {
  using C = CodeClass;
  if (name.ends_with("MMA") && name != "FMMA")
    return C::Matrix; // HMMA, IMMA, DMMA, HGMMA, UTCHMMA…
  return llvm::StringSwitch<C>(name)
      .Cases({"FFMA", "FFMA2", "FFMA32I"}, C::Fma32)
      .Cases({"FADD", "FADD2", "FADD32I"}, C::Add32)
      .Cases({"FMUL", "FMUL2", "FMUL32I"}, C::Mul32)
      .Cases({"FMNMX", "FMNMX3", "FSEL", "FSETP", "FSET", "FCHK", "FSWZADD"},
             C::Other32)
      .Cases({"HADD2", "HFMA2", "HMUL2", "HMNMX2", "HSET2", "HSETP2"},
             C::Float16)
      .Cases({"DADD", "DFMA", "DMUL", "DMNMX", "DSETP", "DSET"}, C::Float64)
      .Case("MUFU", C::Special)
      .Cases({"F2F", "F2I", "I2F", "F2FP", "I2FP", "F2IP", "FRND", "I2I"},
             C::Convert)
      .Cases({"LDG", "LD"}, C::LoadNarrow)
      .Cases({"STG", "ST"}, C::StoreNarrow)
      .Cases({"LDGSTS", "UBLKCP", "UBLKRED", "UTMALDG", "UTMASTG", "UTMAREDG"},
             C::Asynchronous)
      .Cases({"LDS", "LDSM"}, C::LoadShared)
      .Cases({"STS", "STSM"}, C::StoreShared)
      .Case("LDL", C::LoadLocal)
      .Case("STL", C::StoreLocal)
      .Cases({"BAR", "SYNCS", "UCGABAR_ARV", "UCGABAR_WAIT", "WARPSYNC"},
             C::Barrier)
      .Cases({"ATOM", "ATOMG", "ATOMS", "RED", "REDG"}, C::Atomic)
      .Cases({"SHFL", "VOTE", "VOTEU", "MATCH", "REDUX", "CREDUX"}, C::Shuffle)
      .Cases({"BRA", "BRX", "BRXU", "JMP", "JMX", "CALL", "RET", "BREAK"},
             C::Branch)
      .Cases({"IADD", "IADD3", "IADD32I", "IMAD", "IMUL", "IABS", "IMNMX"},
             C::Integer)
      .Cases({"ISCADD", "ISETP", "ISET", "IDP", "LEA", "LOP", "LOP3", "LOP32I"},
             C::Integer)
      .Cases({"SHF", "SHL", "SHR", "SEL", "PRMT", "POPC", "FLO", "BREV"},
             C::Integer)
      .Cases(
          {"BMSK", "SGXT", "VABSDIFF", "VIADD", "VIMNMX", "VIMNMX3", "PLOP3"},
          C::Integer)
      .Cases({"VIADDMNMX", "UIADD3", "UIMAD", "ULEA", "ULOP3", "USHF", "USEL"},
             C::Integer)
      .Cases({"UISETP", "UPRMT", "UPOPC", "UFLO", "UBREV", "UBMSK", "USGXT"},
             C::Integer)
      .Cases({"UVIADD", "UVIMNMX", "UPLOP3", "UIABS"}, C::Integer)
      .Default(C::Other);
}

/// "@!P0 BRA `(.L_x_1)" is taken apart.
struct Instruction {
  StringRef name, operands;
  llvm::SmallVector<StringRef, 8> modifiers;
};

bool readInstruction(StringRef text, Instruction &one) {
  text = text.trim(" \t{};");
  if (text.starts_with("@"))
    text = text.drop_front(text.find_first_of(" \t")).ltrim();
  size_t end = std::min(text.find_first_of(" \t;"), text.size());
  StringRef word = text.take_front(end);
  one.operands = text.drop_front(end).trim(" \t;");
  word.split(one.modifiers, '.');
  one.name = one.modifiers.empty() ? StringRef() : one.modifiers.front();
  if (one.name.empty() || !llvm::all_of(one.name, [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      }))
    return false;
  one.modifiers.erase(one.modifiers.begin());
  return true;
}

/// Moves dressed as arithmetic: "IMAD.MOV.U32", "HFMA2.MMA R3, -RZ, RZ, 0, 0".
bool isMove(const Instruction &one) {
  if (one.name == "IMAD" && llvm::is_contained(one.modifiers, "MOV"))
    return true;
  return (one.name == "HFMA2" || one.name == "HADD2") &&
         one.operands.contains("-RZ, RZ");
}

CodeClass classOf(const Instruction &one) {
  if (isMove(one))
    return CodeClass::Other;
  CodeClass found = classOf(one.name);
  if (found == CodeClass::LoadNarrow || found == CodeClass::StoreNarrow)
    return withWidth(found, one.modifiers);
  return found;
}

/// "	.section	.text.softmax,"ax",@progbits": the name.
std::optional<StringRef> functionIn(StringRef line) {
  line = line.ltrim();
  if (!line.consume_front(".section"))
    return std::nullopt;
  line = line.ltrim();
  if (!line.consume_front(".text."))
    return StringRef(); // A section of something else.
  return line.take_until([](char c) { return c == ',' || c == '"'; }).rtrim();
}

} // namespace

std::vector<InstructionMix> parseSass(StringRef text) {
  std::vector<InstructionMix> mixes;
  bool isInside = false;
  StringRef label; ///< Of the next instruction.
  while (!text.empty()) {
    StringRef line;
    std::tie(line, text) = text.split('\n');
    line = line.trim();
    if (std::optional<StringRef> name = functionIn(line)) {
      isInside = !name->empty() && mixes.size() < Profile::mostKernels;
      if (isInside)
        mixes.emplace_back().kernel = name->str();
      continue;
    }
    if (!isInside)
      continue;
    if (line.ends_with(":")) {
      label = line.drop_back();
      continue;
    }
    // "/*0010*/                   S2R R5, SR_LANEID ;"
    if (!line.consume_front("/*"))
      continue;
    auto [offset, code] = line.split("*/");
    Instruction one;
    if (offset.empty() || code.empty() || !readInstruction(code, one))
      continue;
    StringRef here = std::exchange(label, StringRef());
    if (one.name == "NOP")
      continue;
    if (one.name == "BRA" && !here.empty() && one.operands.trim("`()") == here)
      continue;
    ++mixes.back()[classOf(one)];
  }
  return mixes;
}

llvm::Expected<std::vector<InstructionMix>>
readInstructions(const Toolkit &toolkit, const Build &build) {
  if (toolkit.disassembler.empty())
    return makeError(ErrorKind::Unavailable, "nvdisasm is not installed");
  llvm::Expected<PrivateFolder> folder = PrivateFolder::make();
  if (!folder)
    return folder.takeError();
  std::string cubin = folder->file("kernel.cubin");
  if (llvm::Error error = writeFileAtomically(cubin, build.cubin))
    return std::move(error);
  ProcessLimits limits;
  limits.wall = timeLimit;
  limits.maxOutputBytes = mostTextBytes;
  llvm::Expected<ProcessResult> run =
      runTool("nvdisasm", toolkit, *folder, {toolkit.disassembler, "-c", cubin},
              Unheld::Refused, limits);
  if (!run)
    return run.takeError();
  if (run->out.size() >= mostTextBytes)
    return makeError(ErrorKind::BadInput, "nvdisasm: more than 64 MiB of text");
  std::vector<InstructionMix> mixes = parseSass(run->out);
  // Functions that are called are none of the kernels.
  llvm::erase_if(mixes, [&](const InstructionMix &mix) {
    return mix.all() == 0 || !build.find(mix.kernel);
  });
  if (mixes.empty())
    return makeError(ErrorKind::BadInput,
                     "nvdisasm: none of the kernels is in its text");
  return mixes;
}

} // namespace fsr
