// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A task's buffers on a virtual GPU of one's own, beside the device that the
// worker serves: exactly as large as they are, with as much of their contents
// as launches were seen to touch. What a kernel has not been given reads as
// zeros, so after each launch `findMissing` tells what has to be fetched before
// the launch counts.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_COPIEDTASK_H
#define FSR_LIB_WORKER_COPIEDTASK_H

#include "Launch.h"

#include "fsr/Core/KernelTask.h"
#include "fsr/PTX/VirtualGpu.h"

#include "llvm/ADT/BitVector.h"

#include <random>
#include <set>

namespace fsr {

/// Where each begins, and how many bytes it has.
using ByteRuns = std::vector<std::pair<uint64_t, uint64_t>>;

/// By argument, the words of 4 bytes of its storage that launches read; empty
/// for buffers that are written.
using ReadWords = std::vector<llvm::BitVector>;
/// Of one buffer; of more nothing is known.
constexpr uint64_t mostReadWords = uint64_t(1) << 31;

class CopiedTask {
public:
  /// Reads `bytes` at an offset of an argument's storage.
  using Fetch = llvm::function_ref<llvm::Error(size_t argument, uint64_t offset,
                                               void *to, uint64_t bytes)>;
  struct Buffer {
    size_t argument = 0; ///< Beyond all of the task's: scratch.
    uint64_t address = 0, extent = 0;
    bool isRead = false, isWritten = false;
    /// By sector: launches read it; they may have written it.
    llvm::BitVector needed, dirty;
    /// In-place: what was fetched, to start again from.
    std::vector<std::pair<uint64_t, std::vector<uint8_t>>> kept;
  };

  explicit CopiedTask(const KernelTask &task) : task(task) {}

  /// Loads the PTX and allocates the task's buffers. Unsupported: one is too
  /// large.
  llvm::Error open(llvm::StringRef ptx, const ptx::VirtualGpuOptions &options);
  /// Its own variables as they were at first.
  llvm::Error reload(llvm::StringRef ptx);
  /// Memory that no argument names; its place among the buffers. Errors as
  /// above.
  llvm::Expected<size_t> addScratch(uint64_t bytes);
  ptx::VirtualGpu &gpu() { return *device; }
  unsigned module() const { return loaded; }
  llvm::MutableArrayRef<Buffer> buffers() { return all; }
  llvm::ArrayRef<Buffer> buffers() const { return all; }
  uint64_t addressOf(size_t argument) const;
  /// A kernel's parameter block. An error: it has more than are given.
  llvm::Expected<std::vector<uint8_t>>
  parameterBlock(llvm::StringRef kernel, const PackedParameters &values);

  uint64_t bytesRead() const;   ///< Of all buffers that kernels read.
  uint64_t bytesNeeded() const; ///< Of their parts that are needed.
  void needNothing();
  void needAll();

  /// The needed parts of all buffers anew; another filling begins.
  llvm::Error fetchNeeded(Fetch fetch);
  llvm::Error fetchRuns(Buffer &buffer, const ByteRuns &runs, Fetch fetch);
  /// Takes down what the last launch touched.
  void noteTouched();
  /// What is needed now and was not before; false: nothing.
  bool findMissing(std::vector<ByteRuns> &missing);
  /// Written bytes of the last launch, of buffers that are not read.
  void forgetOutputs();
  void restoreInPlace();
  /// Whether what was fetched is data (`ptx::VirtualGpu::setTainted`).
  void taintInputs(bool isTainted, bool inPlaceToo);
  /// Whether kernels may not write what they only read.
  void protectInputs(bool protect);
  /// What launches read since `ptx::VirtualGpu::forgetReads`, of inputs that
  /// were not protected. Empty: that is not known.
  ReadWords takeReads();

private:
  const KernelTask &task;
  std::unique_ptr<ptx::VirtualGpu> device;
  unsigned loaded = 0;
  std::vector<Buffer> all;
  std::vector<llvm::BitVector> known; ///< Needed when last asked.
};

/// Blocks of a grid, and threads of a block; nothing where a virtual device
/// takes no such launch.
std::optional<std::pair<uint64_t, uint64_t>> sizeOf(const LaunchShape &shape);
ptx::LaunchShapeOf virtualShape(const LaunchShape &shape);
/// So many of `units` at random; the last and the first are among them, since
/// edges are where guards are.
std::set<uint64_t> drawUnits(std::mt19937_64 &random, uint64_t units,
                             uint64_t wanted);
/// The first finding's text, of a launch that did not end.
std::string stopText(const ptx::LaunchResult &result);
bool isTooLong(const ptx::LaunchResult &result);

} // namespace fsr

#endif // FSR_LIB_WORKER_COPIEDTASK_H
