// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a cubin's section and symbol tables. It comes out of the process that
// compiled hostile text, so every offset is checked against the bytes at hand.
// NVIDIA documents neither the sections nor `.nv.info`; what is read here is
// what cuobjdump shows, and what is not known is skipped where it can do no
// harm: only memory that can be written, and kernels, must be accounted for.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFTypes.h"
#include "llvm/Support/Endian.h"

#include <algorithm>

using llvm::StringRef;
namespace elf = llvm::ELF;

namespace fsr {
namespace {

using Types = llvm::object::ELF64LE;
using Reason = std::optional<std::string>;

/// Symbols that a launch can name carry this in `st_other`.
constexpr uint8_t isEntryMark = 0x10;
/// Attributes of `.nv.info` that hold a symbol and a number.
constexpr uint8_t sizedFormat = 4, frameSize = 0x11, leastStack = 0x12,
                  registerCount = 0x2f;
/// Set aside in front of a kernel's own shared memory.
constexpr int64_t reservedShared = 1024;

/// A table is read; what is larger than this is meant as something else, and
/// would be set aside with every load of the module.
/// A copy of all is kept on the host, which the worker looks at after launches.
constexpr uint64_t mostVariableBytes = uint64_t(16) << 20;

class Cubin {
public:
  Cubin(const PtxModule &module, Build &build)
      : module(module), build(build), bytes(build.cubin) {}

  Reason check();

private:
  /// `count` records at `offset`, or nothing where they do not fit.
  template <class T>
  std::optional<llvm::ArrayRef<T>> at(uint64_t offset, uint64_t count) const {
    if (offset > bytes.size() || count > (bytes.size() - offset) / sizeof(T))
      return std::nullopt;
    return llvm::ArrayRef(reinterpret_cast<const T *>(bytes.data() + offset),
                          count);
  }
  static StringRef textAt(StringRef table, uint64_t offset) {
    return table.substr(offset).split('\0').first;
  }
  std::optional<StringRef> contents(const Types::Shdr &section) const {
    if (section.sh_type == elf::SHT_NOBITS)
      return StringRef();
    auto found = at<char>(section.sh_offset, section.sh_size);
    if (!found)
      return std::nullopt;
    return StringRef(found->data(), found->size());
  }
  Reason checkHeader(const Types::Ehdr &header);
  Reason checkSymbols();
  Reason checkMemory();
  void readResources();

  const PtxModule &module;
  Build &build;
  StringRef bytes;
  llvm::ArrayRef<Types::Shdr> sections;
  std::vector<StringRef> names; ///< Of the sections.
  llvm::ArrayRef<Types::Sym> symbols;
  StringRef symbolNames;
};

const char *const damaged = "the cubin is damaged: ";

Reason Cubin::checkHeader(const Types::Ehdr &header) {
  if (!StringRef(bytes).starts_with(StringRef(elf::ElfMagic, 4)) ||
      header.e_ident[elf::EI_CLASS] != elf::ELFCLASS64 ||
      header.e_ident[elf::EI_DATA] != elf::ELFDATA2LSB ||
      header.e_machine != elf::EM_CUDA ||
      header.e_shentsize != sizeof(Types::Shdr))
    return std::string(damaged) + "it is no ELF file for a GPU";
  llvm::Expected<Target> target = Target::parse(build.chip);
  if (!target)
    return llvm::toString(target.takeError());
  unsigned flags = header.e_flags;
  // CUDA 13 moved the number of the architecture up.
  unsigned capability =
      header.e_ident[elf::EI_ABIVERSION] >= elf::ELFABIVERSION_CUDA_V2
          ? (flags & elf::EF_CUDA_SM_MASK) >> elf::EF_CUDA_SM_OFFSET
          : flags & elf::EF_CUDA_SM;
  if (capability != target->computeCapability())
    return "the cubin is for sm_" + std::to_string(capability) + ", not for " +
           build.chip;
  return std::nullopt;
}

/// A kernel in the cubin for each of the PTX, and no other.
Reason Cubin::checkSymbols() {
  llvm::StringSet<> found;
  for (const Types::Sym &symbol : symbols) {
    if (symbol.getType() != elf::STT_FUNC || !(symbol.st_other & isEntryMark))
      continue;
    StringRef name = textAt(symbolNames, symbol.st_name);
    if (!module.findEntry(name))
      return ("the cubin has a kernel `" + name + "` that the PTX has not")
          .str();
    if (symbol.st_shndx >= names.size() ||
        names[symbol.st_shndx] != (".text." + name).str())
      return std::string(damaged) + "kernel `" + name.str() +
             "` does not lie in its section";
    found.insert(name);
  }
  for (const PtxFunction &function : module.functions)
    if (function.isEntry && !found.contains(function.name))
      return ("the cubin lacks kernel `" + function.name + "` of the PTX")
          .str();
  return std::nullopt;
}

/// What a launch could write is shared memory, and variables of the PTX, whose
/// uses were seen there.
Reason Cubin::checkMemory() {
  // By the PTX: ptxas forgets all but 32 bits of a size.
  uint64_t all = 0;
  for (const auto &variable : module.variables)
    all = std::min(all + variable.second.bytes, uint64_t(1) << 60);
  if (all > mostVariableBytes)
    return "the variables in device memory take " + std::to_string(all) +
           " bytes; at most " + std::to_string(mostVariableBytes) +
           " are accepted: use a scratch buffer of the plan";
  for (size_t i = 0; i < sections.size(); ++i) {
    const Types::Shdr &section = sections[i];
    StringRef name = names[i];
    if (!(section.sh_flags & elf::SHF_WRITE) ||
        !(section.sh_flags & elf::SHF_ALLOC) || !section.sh_size ||
        name.starts_with(".nv.shared"))
      continue;
    // The same once more, in the form that later chips are served with.
    if (StringRef twin = name; twin.consume_front(".nv.merc")) {
      auto it = llvm::find(names, twin);
      if (it != names.end() &&
          sections[it - names.begin()].sh_size >= section.sh_size)
        continue;
    }
    if (name != ".nv.global" && name != ".nv.global.init")
      return ("the cubin has a writable section `" + name +
              "` that the PTX does not account for")
          .str();
    uint64_t end = 0;
    for (const Types::Sym &symbol : symbols) {
      if (symbol.st_shndx != i || symbol.getType() != elf::STT_OBJECT)
        continue;
      StringRef variable = textAt(symbolNames, symbol.st_name);
      if (!module.variables.contains(variable))
        return ("the cubin has a variable `" + variable +
                "` that the PTX has not")
            .str();
      if (symbol.st_value > section.sh_size ||
          symbol.st_size > section.sh_size - symbol.st_value)
        return std::string(damaged) + "`" + variable.str() +
               "` ends outside of its section";
      end = std::max<uint64_t>(end, symbol.st_value + symbol.st_size);
    }
    // A section ends where its last variable does, as far as alignment lets it.
    if (section.sh_size - end >= 256)
      return ("section `" + name +
              "` of the cubin has room for more than the "
              "variables of the PTX")
          .str();
  }
  return std::nullopt;
}

void Cubin::readResources() {
  auto of = [&](StringRef kernel) -> KernelResources * {
    auto it = llvm::find_if(build.resources, [&](const KernelResources &each) {
      return each.kernel == kernel;
    });
    if (it != build.resources.end())
      return &*it;
    if (!module.findEntry(kernel))
      return nullptr;
    build.resources.emplace_back();
    build.resources.back().kernel = kernel.str();
    return &build.resources.back();
  };
  for (size_t i = 0; i < sections.size(); ++i) {
    StringRef name = names[i];
    if (name.consume_front(".nv.shared.")) {
      if (KernelResources *kernel = of(name))
        kernel->sharedBytes = std::max<int64_t>(
            kernel->sharedBytes, int64_t(std::min<uint64_t>(
                                     sections[i].sh_size, uint64_t(1) << 40)) -
                                     reservedShared);
      continue;
    }
    if (name != ".nv.info")
      continue;
    StringRef rest = contents(sections[i]).value_or("");
    while (rest.size() >= 4) {
      uint8_t format = rest[0], attribute = rest[1];
      uint16_t size = llvm::support::endian::read16le(rest.data() + 2);
      rest = rest.drop_front(4);
      if (format != sizedFormat)
        continue;
      StringRef value = rest.take_front(size);
      rest = rest.drop_front(value.size());
      if (value.size() < 8)
        continue;
      uint32_t symbol = llvm::support::endian::read32le(value.data());
      uint32_t number = llvm::support::endian::read32le(value.data() + 4);
      bool isStack = attribute == frameSize || attribute == leastStack;
      if ((!isStack && attribute != registerCount) || symbol >= symbols.size())
        continue;
      KernelResources *kernel =
          of(textAt(symbolNames, symbols[symbol].st_name));
      if (!kernel)
        continue;
      if (isStack)
        kernel->stackBytes = std::max<int64_t>(kernel->stackBytes, number);
      else
        kernel->registers = number;
    }
  }
}

Reason Cubin::check() {
  auto header = at<Types::Ehdr>(0, 1);
  if (!header)
    return std::string(damaged) + "it is too short";
  const Types::Ehdr &first = header->front();
  if (Reason reason = checkHeader(first))
    return reason;
  auto table = at<Types::Shdr>(first.e_shoff, first.e_shnum);
  if (!table || first.e_shstrndx >= table->size())
    return std::string(damaged) + "its section table";
  sections = *table;
  auto texts = contents(sections[first.e_shstrndx]);
  if (!texts)
    return std::string(damaged) + "its section names";
  for (const Types::Shdr &section : sections)
    names.push_back(textAt(*texts, section.sh_name));
  for (const Types::Shdr &section : sections) {
    if (section.sh_type != elf::SHT_SYMTAB)
      continue;
    auto list =
        at<Types::Sym>(section.sh_offset, section.sh_size / sizeof(Types::Sym));
    if (!list || section.sh_link >= sections.size() || !symbols.empty())
      return std::string(damaged) + "its symbol table";
    auto strings = contents(sections[section.sh_link]);
    if (!strings)
      return std::string(damaged) + "its symbol names";
    symbols = *list;
    symbolNames = *strings;
  }
  if (Reason reason = checkSymbols())
    return reason;
  if (Reason reason = checkMemory())
    return reason;
  readResources();
  return std::nullopt;
}

} // namespace

Reason checkCubin(const PtxModule &module, Build &build) {
  return Cubin(module, build).check();
}

} // namespace fsr
