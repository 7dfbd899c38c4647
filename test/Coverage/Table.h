// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// kernels.txt as read: which kernel of which file runs with what, and which
// check looks at its answer. A line is
//
//   FILE KERNEL GRID BLOCK SHARED [coop] [cluster=N] | ARGUMENT |… -> CHECK
//
// An argument is `i 5`, `u 5`, `l 5`, `f 0.5`, `d 0.5`, or a buffer: its type,
// its number of elements and what fills it (Table.cpp). `-> clean` checks
// nothing but that the run has no findings.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_COVERAGE_TABLE_H
#define FSR_TEST_COVERAGE_TABLE_H

#include "fsr/PTX/VirtualGpu.h"

#include <functional>

namespace fsr::ptx {

struct Argument {
  bool isBuffer = false;
  Type type = Type::None;
  size_t count = 1;
  bool isInitialized = true;
  std::vector<uint8_t> before; ///< Of a scalar as well.
  std::vector<uint8_t> after;

  /// Element `i` as it was before the launch, and as it is after.
  double was(size_t i) const { return value(before, i); }
  double is(size_t i) const { return value(after, i); }

private:
  double value(const std::vector<uint8_t> &bytes, size_t i) const;
};

/// What the source says of a kernel's proof (proof.txt).
enum class ProofClass : uint8_t {
  Unlisted,
  Dense, ///< Holds.
  Data,  ///< Is broken.
  Choice ///< Holds where the compiler makes no branch of a choice of values.
};

struct Case {
  unsigned line = 0;
  std::string file, kernel, check;
  LaunchShapeOf shape;
  std::vector<Argument> arguments;
  ProofClass proof = ProofClass::Unlisted;
  std::string proofReason; ///< Of what breaks it.
};

llvm::Expected<std::vector<Case>> readTable(const std::string &path);
/// Each kernel of the table stands in the list once, and no other.
llvm::Error readProofs(const std::string &path, std::vector<Case> &cases);

/// Empty: right. Else one sentence about what is wrong.
using Check = std::function<std::string(const Case &)>;
/// Null where there is no such check.
const Check *findCheck(const std::string &name);

} // namespace fsr::ptx

#endif // FSR_TEST_COVERAGE_TABLE_H
