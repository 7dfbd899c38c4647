// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A kernel with the functions that it may reach. Each is linked by itself, so
// that the shared memory of other kernels of the module costs it nothing.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_LINK_H
#define FSR_LIB_PTX_LINK_H

#include "Decode.h"
#include "Engine.h"

#include "llvm/ADT/DenseSet.h"

namespace fsr::ptx {

struct LoadedModule {
  std::unique_ptr<Module> module;
  /// Of variables in global memory; those of functions by `localName`.
  llvm::StringMap<uint64_t> addresses;
};

/// `module` outlives it.
class LinkedKernel final : public LinkContext {
public:
  LinkedKernel(LoadedModule &loaded, const Function &kernel);

  std::optional<Place> findVariable(const Function &function,
                                    llvm::StringRef name) override;
  const Program *findProgram(llvm::StringRef function) override;
  std::optional<uint64_t> functionAddress(llvm::StringRef function) override;

  /// Decodes all functions; the message of the first that is not supported.
  std::string decode();

  Program &entry() { return *programs[0]; }
  FunctionTable table() const;
  /// It calls malloc.
  bool usesHeap() const { return callsMalloc; }

  /// A function's own variables, apart from those of others.
  static std::string localName(const Function &function, llvm::StringRef name);
  static uint64_t addressOf(const Module &module, const Function &function);

private:
  void add(const Function &function);
  void collect();
  void use(llvm::StringRef variable);
  /// Gives a shared variable its place; `key` is its name in `shared`.
  void place(std::string key, const Variable &variable);

  LoadedModule &loaded;
  std::vector<std::unique_ptr<Program>> programs;
  llvm::StringMap<size_t> byName;
  llvm::StringMap<uint64_t> shared; ///< Offsets.
  /// Shared variables without a size: all begin behind the others.
  std::vector<std::pair<std::string, const Variable *>> dynamic;
  llvm::DenseSet<const Variable *> used;
  uint64_t staticShared = 0;
  bool callsMalloc = false;
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_LINK_H
