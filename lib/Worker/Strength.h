// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Dummies: what stands in a candidate's place when a task is tested itself. A
// dummy launches nothing of its own; a helper kernel rewrites the outputs, from
// the original's answer where it needs one, and leaves alone what the original
// leaves alone, so that nothing but its values gives it away.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_STRENGTH_H
#define FSR_LIB_WORKER_STRENGTH_H

#include "Evaluation.h"

namespace fsr {

enum class DummyKind {
  Untouched,
  Identity,
  Zeros,
  FirstValue,
  CommonValue,
  Mean,
  Statistics,
  Reversed,
  CopyInput,
  HalfDone,
  EverySecondRow,
  ButTheLastRow,
  ButTheLastElement,
  StaleBuffer,
  OtherSeed,
  DestroysInput,
  Accumulates,
};

struct Dummy {
  DummyKind kind;
  std::string name;
  std::string useless = {}; ///< Why the task has no use for it.
  size_t input = 0;         ///< CopyInput: index of the argument.
};

/// Every dummy, in the order in which they are tried.
std::vector<Dummy> dummiesFor(const TaskBuffers &buffers);

/// What a kernel computes of such inputs is not a coincidence: every buffer
/// that it reads holds numbers that are spread out.
bool spreadsOut(const InputSet &set, const TaskBuffers &buffers);

/// Elements of a buffer on the host, or of a large one pieces from all over it:
/// for what is computed of values and not for the values themselves.
class HostElements {
public:
  /// Reads the place `from`, which is laid out as the buffer is.
  static llvm::Expected<HostElements>
  read(Helpers &helpers, const TaskBuffer &buffer, DevicePointer from);

  uint64_t size() const { return count; }
  uint64_t bits(uint64_t i) const;
  double value(uint64_t i) const;

private:
  uint64_t offset(uint64_t i) const;
  const TaskBuffer *of = nullptr;
  std::vector<char> bytes;
  uint64_t count = 0;
  bool flat = false;
};

/// The dummy whose turn it is, and what it has seen.
struct DummyState {
  const Dummy *now = nullptr;
  bool identical = true; ///< To the original, bit for bit, on every case.
  bool spread = false;   ///< Some case was spread out.
  /// By output: its answer for other inputs, or for those of the launch before.
  std::vector<DevicePointer> other;
};

/// The original's outputs on inputs that come again, for every dummy or in
/// other orders of a candidate's warps, where running it again takes longer
/// than copying them. In host memory, where no kernel reads; of one evaluation,
/// so of one original.
class KnownAnswers {
public:
  /// Bytes in all: of a test of a task, and beside a candidate.
  static constexpr uint64_t mostOfStrength = uint64_t(1) << 30,
                            mostOfCandidate = uint64_t(256) << 20;
  /// Where an answer belongs: all that it depends on.
  static std::string keyOf(const InputSet &set, Poison poison);

  explicit KnownAnswers(uint64_t most) : most(most) {}
  std::vector<std::vector<char>> *find(const std::string &key);
  /// Nothing where there is no room for `bytes` more.
  std::vector<std::vector<char>> *add(const std::string &key, uint64_t bytes);

private:
  std::map<std::string, std::vector<std::vector<char>>> answers;
  uint64_t most, used = 0;
};

} // namespace fsr

#endif // FSR_LIB_WORKER_STRENGTH_H
