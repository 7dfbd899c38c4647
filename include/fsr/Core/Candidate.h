// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What an LLM answers: device code and how to launch it. Sizes in the plan are
// texts of the size-expression language; `resolvePlan` turns them into numbers
// for one set of parameters and sizes, and is the one place that decides
// whether a plan fits its task and the device.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_CANDIDATE_H
#define FSR_CORE_CANDIDATE_H

#include "fsr/Core/KernelTask.h"

#include <map>

namespace fsr {

struct PlannedLaunch {
  std::string kernel;
  std::array<std::string, 3> grid{"1", "1", "1"};
  std::array<std::string, 3> block{"1", "1", "1"};
  std::array<std::string, 3> cluster{"1", "1", "1"};
  std::string shared = "0"; ///< Bytes of dynamic shared memory.
  /// Names of buffers, sizes and strides (`x.size0`, `x.stride0`; int64_t),
  /// scalars and scratch, in the order of the kernel's parameters; the one name
  /// "same", alone, stands for the candidate ABI.
  std::vector<std::string> args{"same"};
};

struct ScratchBuffer {
  std::string name;
  std::string bytes;
  bool zero = false;
};

struct LaunchPlan {
  std::vector<PlannedLaunch> launches;
  std::vector<ScratchBuffer> scratch;
};

/// Values of tunable parameters, by name; they become -DNAME=value.
using Parameters = std::map<std::string, int64_t>;

struct Candidate {
  std::string source; ///< CUDA C++, device code only.
  LaunchPlan plan;
  std::vector<std::string> guards; ///< `requires`, in the Guard grammar.
  std::map<std::string, std::vector<int64_t>> parameters;
  std::string strategy, notes;

  /// SHA-256 over source, plan and guards: the candidate's name.
  std::string hash() const;
  /// Every combination of parameter values, in the order of the names, at most
  /// `limit`; one empty set where there are no parameters.
  std::vector<Parameters> combinations(size_t limit) const;
};

struct ResolvedLaunch {
  std::string kernel;
  LaunchShape shape;
  std::vector<std::string> args; ///< "same" expanded.
};

struct ResolvedScratch {
  std::string name;
  int64_t bytes = 0;
  bool zero = false;
};

/// A plan with every expression evaluated.
struct ResolvedPlan {
  std::vector<ResolvedLaunch> launches;
  std::vector<ResolvedScratch> scratch;
};

/// Launch limits of a device or, where none is at hand, of a target.
struct LaunchLimits {
  int64_t threadsPerBlock = 1024;
  std::array<int64_t, 3> block{1024, 1024, 64};
  std::array<int64_t, 3> grid{2147483647, 65535, 65535};
  int64_t sharedBytesPerBlock = 48 * 1024; ///< Dynamic and static, opted in.
  int64_t registersPerBlock = 65536;
  int64_t clusterBlocks = 8;

  /// The published limits of a target's compute capability.
  static LaunchLimits of(const Target &target);
};

/// The value of a name that plans and guards may use, as far as the task fixes
/// it: `x.size0`, `x.stride0`, constant integer scalars (sign-extended),
/// `grid.x`… and `block.x`… of the original.
std::optional<int64_t> valueOf(const KernelTask &task, llvm::StringRef name);

/// Evaluates `plan`. An error (kind BadInput) is the sentence that the LLM gets
/// back: an expression that does not parse, an unknown name, a limit passed, a
/// scratch name that hides an argument, no launch at all. At most 64 launches
/// and 16 scratch buffers of 64 GiB together.
llvm::Expected<ResolvedPlan> resolvePlan(const LaunchPlan &plan,
                                         const KernelTask &task,
                                         const Parameters &parameters,
                                         const LaunchLimits &limits);

/// Evaluates the guards for a static task: true where every one holds for what
/// the IR proves. `aligned` holds where the proved alignment suffices; an
/// unproved `disjoint` does not hold, nor does a guard that overflows or
/// divides by zero. An error is a guard that cannot be read: syntax, an unknown
/// name, more than 64 guards.
llvm::Expected<bool> guardsHold(llvm::ArrayRef<std::string> guards,
                                const KernelTask &task,
                                const Parameters &parameters);

/// The parameter names of the candidate ABI in order: for each argument its
/// name, then for buffers each dynamic size and stride.
std::vector<std::string> candidateAbiNames(const KernelTask &task);

/// The C++ parameter list of the candidate ABI, one parameter a line:
/// "const float *x,\n    float *y". Read-only buffers are const.
std::string candidateSignature(const KernelTask &task);

/// The JSON of a plan and of a candidate is what an LLM answers (`launch`,
/// `scratch`, `requires`, `params`…); a candidate may carry `source` besides.
/// Reading is lenient where the meaning is plain: an integer for an expression,
/// one to three grid dimensions, one value for a parameter's list.
llvm::json::Value toJSON(const LaunchPlan &value);
bool fromJSON(const llvm::json::Value &json, LaunchPlan &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const Candidate &value);
bool fromJSON(const llvm::json::Value &json, Candidate &value,
              llvm::json::Path path);
llvm::json::Value toJSON(const ResolvedPlan &value);
bool fromJSON(const llvm::json::Value &json, ResolvedPlan &value,
              llvm::json::Path path);

} // namespace fsr

#endif // FSR_CORE_CANDIDATE_H
