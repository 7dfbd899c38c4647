// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One kernel, cut out of its module: everything needed to rebuild, launch,
// check and time it with no module at hand.
//
// Two ABIs meet here. The *reference* (the original, lowered by the stock
// pipeline) has the ABI of that lowering. A *candidate* gets, in the original's
// argument order: one pointer a buffer with the offset applied, then that
// buffer's dynamic sizes and strides as int64_t, then scalars. `Argument` holds
// what both need.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_KERNELTASK_H
#define FSR_CORE_KERNELTASK_H

#include "fsr/Core/Types.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsr {

enum class Access { None, Read, Write, ReadWrite };
llvm::StringRef nameOf(Access access);

/// One argument of the kernel, in the original's order.
struct Argument {
  std::string name; ///< Shared by prompt, plan and code: `x`, else `a0`….
  ElementType element = ElementType::F32;
  bool isBuffer = false;

  // Buffers. Sizes, strides and offset in elements; all static in this version
  // of the format.
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  int64_t offset = 0;
  /// Bytes, a power of two, that the IR proves for the first element's address:
  /// the pointer with the offset applied, as a candidate gets it.
  int64_t alignment = 1;
  Access access = Access::ReadWrite;

  // Scalars. The bits of the value at the launch, zero-extended, in hex, where
  // it is a constant there.
  std::optional<std::string> constantBits;

  /// A written buffer of floats narrower than f64: f64 memory in the clone that
  /// computes without rounding.
  bool isPromoted() const;
  int64_t numElements() const;
  /// Bytes from the first to behind the last element reached; 0 for a scalar.
  int64_t extentBytes() const;
};

struct LaunchShape {
  std::array<int64_t, 3> grid{1, 1, 1};
  std::array<int64_t, 3> block{1, 1, 1};
  std::array<int64_t, 3> cluster{1, 1, 1};
  int64_t sharedBytes = 0; ///< Dynamic.
};

enum class ReferenceAbi {
  Descriptor, ///< A rank-r memref is base, aligned, offset, r sizes, r strides.
  BarePointer,
};

/// The original kernel as the stock pipeline makes it.
struct Reference {
  std::string mlir; ///< A module with the one gpu.module, ready to be lowered.
  std::string ptx;  ///< Empty until it was lowered.
  /// Of a clone of it in which every float is an f64, of the same entry and
  /// ABI: docs/formats/task.md. Empty where there is none; then `noTruePtx`
  /// says why.
  std::string truePtx, noTruePtx;
  std::string entry;
  ReferenceAbi abi = ReferenceAbi::Descriptor;
};

/// What one launch needs at the least; zero where it is not known.
struct WorkEstimate {
  double flops = 0;
  double bytesRead = 0;    ///< Every element read, once.
  double bytesWritten = 0; ///< Every element written, once.
  /// Longest chain of dependent floating-point accumulations to one output;
  /// the `n` of the error bound. At least 1.
  int64_t accumulation = 1;
  /// Every float operation is exact on small integers (moves, sums, products,
  /// comparisons), so exact inputs demand bit equality.
  bool exactOnIntegers = false;
  /// No float operation rounds, whatever its inputs: moves, comparisons, the
  /// smaller or larger one. Then equal values are demanded on all inputs.
  bool movesOnly = false;
  /// Adds floats atomically. In f32 a GPU takes denormals as zero there, and
  /// the order differs from run to run.
  bool addsAtomically = false;
  /// Why NaN and infinities are not among the inputs that are tried, in words;
  /// empty: they are.
  std::string finiteOnly;
};

/// A reason for `WorkEstimate::finiteOnly` that speaks of NaN alone where
/// nothing is computed: infinities compare as any number does.
inline constexpr llvm::StringLiteral comparisonsDecide =
    "comparisons of floats decide which way the original goes";

/// How the elements of one buffer are made, by element index and seed.
/// Text form, as in the attribute `fsr.workload`: "normal(3, 5)". Families:
/// normal(mean, deviation), uniform(low, high), loguniform(low, high),
/// bernoulli(p), signs(p) (-1 or 1 with probability p, else 0), integers(low,
/// high) (both included), equal(value), onehot(value), alternating(large,
/// small), zeros, denormal, iota, tails(deviation, p, size), spike(deviation,
/// value), shiftednormal(low, high, deviation), shifteduniform(low, high,
/// half), sines(low, high), zipf(low, high), sorted(low, high), reversed(low,
/// high), gram(rows), drifting(mean, deviation), specials(nans, infinities),
/// peaks(value, apart), masked(value), scaled(low, high), dominated(low,
/// high, spread).
/// docs/formats/task.md says what each is.
struct FillRecipe {
  std::string family = "normal";
  std::vector<double> parameters;

  /// What buffers of a type get where no workload is given.
  static FillRecipe standard(ElementType element);
  static llvm::Expected<FillRecipe> parse(llvm::StringRef text);
  std::string print() const;
};

/// Concrete inputs of a task.
struct WorkloadCase {
  std::string name;
  double weight = 1;
  std::vector<FillRecipe> fills; ///< One an argument; ignored for scalars.
};

struct KernelTask {
  static constexpr int64_t formatVersion = 2;

  std::string name;   ///< The kernel's symbol in the user's module.
  std::string key;    ///< 64 hex digits; see docs/formats/store.md.
  std::string target; ///< "sm_90".
  std::vector<Argument> arguments;
  LaunchShape launch; ///< Of the original.
  Reference reference;
  std::string kernelMlir; ///< The gpu.func, pretty form, for the prompt.
  std::string launchMlir; ///< The launch site and the operands' definitions.
  std::vector<std::string> facts; ///< Sentences; true of every launch.
  bool fastMath = false;          ///< The original's own flags allow it.
  WorkEstimate work;
  std::vector<WorkloadCase> workload; ///< At least one.

  const Argument *find(llvm::StringRef name) const;
};

llvm::json::Value toJSON(const Argument &value);
bool fromJSON(const llvm::json::Value &json, Argument &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const LaunchShape &value);
bool fromJSON(const llvm::json::Value &json, LaunchShape &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const WorkloadCase &value);
bool fromJSON(const llvm::json::Value &json, WorkloadCase &value,
              llvm::json::Path path);
/// Refuses another format version, names that are no C identifiers, duplicate
/// names, sizes below 0 and whatever does not fit together.
llvm::json::Value toJSON(const KernelTask &value);
bool fromJSON(const llvm::json::Value &json, KernelTask &value,
              llvm::json::Path path);

/// A task as the text of a file, with a hash over the rest of it.
std::string printTask(const KernelTask &task);
/// Reads such a text. Errors: Unsupported, of another version; Corrupt, it was
/// changed since it was written, or is no task.
llvm::Expected<KernelTask> parseTask(llvm::StringRef text);

} // namespace fsr

#endif // FSR_CORE_KERNELTASK_H
