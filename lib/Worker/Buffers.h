// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The memory of one evaluation: each buffer of the task and each scratch buffer
// between two guard zones, and a stash of the size of each output. Contents are
// recipes, so a buffer that a kernel changed is filled again, never kept twice.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_BUFFERS_H
#define FSR_LIB_WORKER_BUFFERS_H

#include "Helpers.h"
#include "Inputs.h"

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Core/Candidate.h"

#include <map>

namespace fsr {

/// "[3, 5]" of the element of that index, and its offset in elements.
std::pair<std::string, uint64_t> placeOf(const Argument &argument,
                                         uint64_t index);

/// What an output holds before a launch. The bits are drawn for each set of
/// inputs and differ from buffer to buffer: a candidate that works only where
/// it finds them would not know them, nor learn them from another buffer.
enum class Poison {
  NaN,   ///< A NaN in every float type.
  Plain, ///< An ordinary number, from 2 on, in every float type.
};

struct TaskBuffer {
  const Argument *argument = nullptr;
  size_t index = 0; ///< Among the task's arguments.
  DevicePointer allocation = 0, data = 0;
  uint64_t total = 0, extent = 0; ///< Bytes.
  DevicePointer stash = 0;        ///< For written buffers.
  /// Another buffer's data, which kernels get in place of this one's; or 0.
  DevicePointer shared = 0;

  /// What kernels get.
  DevicePointer pointer() const { return shared ? shared : data; }

  unsigned elementBytes() const { return byteSize(argument->element); }
  uint64_t storageElements() const { return extent / elementBytes(); }
  uint64_t row() const;
  bool written() const;
  bool poisoned() const { return argument->access == Access::Write; }
  /// No storage between the elements, and none used twice.
  bool contiguous() const;
  /// Some element stands at the place of another.
  bool overlapping() const;
};

struct ScratchMemory {
  const ResolvedScratch *plan = nullptr;
  DevicePointer allocation = 0, data = 0;
  uint64_t total = 0;
};

class TaskBuffers {
public:
  /// `tight`: with no guard zones and no shift, for who watches each allocation
  /// from outside.
  static llvm::Expected<std::unique_ptr<TaskBuffers>>
  create(Helpers &helpers, const KernelTask &task, bool tight = false);
  /// The plan's scratch: what does not fit is the candidate's fault.
  llvm::Error addScratch(const ResolvedPlan &plan);
  ~TaskBuffers();
  TaskBuffers(const TaskBuffers &) = delete;
  TaskBuffers &operator=(const TaskBuffers &) = delete;

  llvm::ArrayRef<TaskBuffer> buffers() const { return all; }
  llvm::ArrayRef<ScratchMemory> scratch() const { return scratches; }
  uint64_t totalBytes() const { return bytes; }
  /// Of these, the plan's.
  uint64_t ofScratch() const { return scratchBytes; }
  const TaskBuffer *find(size_t argument) const;

  /// Where the data stands inside the guards, and the guards anew.
  llvm::Error place(bool shifted);
  /// Lets kernels have one buffer's data in place of another's.
  void share(const InputSet &set);
  /// Fills what the kernel reads. `onlyWritten` restores in-place buffers.
  llvm::Error fill(const InputSet &set, bool onlyWritten);
  llvm::Error plant(const TaskBuffer &buffer, const Planted &planted);
  /// Something else than `fill` wrote a buffer that kernels only read.
  void forgetFills() { filled.clear(); }
  llvm::Error poisonOutputs(Poison poison);
  /// What stands in written buffers now is what `fill` and `poisonOutputs` give
  /// back from here on, but for integers that a kernel reads: they may be
  /// indices. False: there is no memory for it.
  llvm::Expected<bool> keepAnswer();
  llvm::Error forgetAnswer();
  /// Before a launch the buffer holds an answer.
  bool holdsAnswer(const TaskBuffer &buffer) const {
    return answers.count(buffer.index);
  }
  llvm::Error poisonScratch();
  /// Gives each of `wanted` launches in a row its own outputs, as far as memory
  /// allows: what an earlier one wrote must not save a later one its work.
  /// Returns how many have their own; 1 where there is memory for no more.
  llvm::Expected<int64_t> spreadOutputs(int64_t wanted);
  /// Lets the next launch write to set `i`; 0 is the one that is checked.
  void useOutputs(int64_t i);
  /// One hash a buffer that no kernel may change, in order.
  llvm::Expected<std::vector<uint64_t>> hashReadOnly();
  llvm::Expected<std::vector<uint64_t>> hashWritten();
  /// Says what was overwritten where; empty where nothing was.
  llvm::Expected<std::string> findGuardDamage();
  /// On a virtual device: kernels may not write what they only read.
  llvm::Error protectInputs(bool protect);
  /// Outputs to their stashes.
  llvm::Error stashOutputs();
  /// Makes stashes unreadable, and readable again.
  llvm::Error maskStashes(uint64_t key);

  /// Memory for row maxima, the flush and copies; freed with this object, or
  /// by `drop`.
  llvm::Expected<DevicePointer> extra(uint64_t wanted);
  llvm::Error drop(DevicePointer pointer);
  /// Frees what was allocated since there were so many pieces.
  size_t numPieces() const { return owned.size(); }
  llvm::Error dropSince(size_t pieces);

  /// A comparison of two places with the layout of `buffer`.
  FsrCompare comparison(const TaskBuffer &buffer, DevicePointer out,
                        DevicePointer reference) const;

  /// Another poison for every buffer, until it is drawn anew. What is compared
  /// must have had the same.
  void drawPoison(uint64_t random) { poisonSeed = random; }
  uint64_t poisonBits(Poison poison, const TaskBuffer &buffer) const;

private:
  uint64_t poisonBits(Poison poison, uint64_t stream,
                      unsigned elementBytes) const;
  explicit TaskBuffers(Helpers &helpers)
      : helpers(helpers), virtualDevice(helpers.backend().virtualDevice()) {}
  llvm::Expected<DevicePointer> allocate(uint64_t size);

  Helpers &helpers;
  VirtualDevice *virtualDevice; ///< Null on a GPU.
  bool tight = false;
  std::vector<TaskBuffer> all;
  std::vector<ScratchMemory> scratches;
  std::vector<DevicePointer> owned;
  std::vector<FsrFill> filled; ///< What stands there still.
  /// Per set of outputs from the second on, the data of each buffer of `all`; 0
  /// for those that are no outputs.
  std::vector<std::vector<DevicePointer>> outputSets;
  std::vector<DevicePointer> ownData; ///< Of set 0, while another is in use.
  std::map<size_t, DevicePointer> answers; ///< By argument.
  uint64_t bytes = 0, scratchBytes = 0;
  uint64_t poisonSeed = 0;
};

} // namespace fsr

#endif // FSR_LIB_WORKER_BUFFERS_H
