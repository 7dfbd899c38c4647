// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Beside a GPU: a plan's launches on a virtual GPU of one's own, with all its
// checks on, on the inputs that the worker's device holds. It sees what a GPU
// does not show: races, barriers that some threads miss, reads beyond a buffer
// or of what nothing wrote.
//
// A grid that is too large runs in part, by whole blocks. Blocks that do not
// run are as if they had not come to their turn yet, which is an order that a
// GPU may choose, so what is found then is true as well; only waits that do not
// end say nothing. What later launches find of such a launch is unknown: they
// count where none of it reaches an address, a branch or a guard, which the
// proof tells.
//
// Nothing here fails an evaluation: where nothing could run,
// `BesideReport::why` says the reason. PTX is hostile; the virtual GPU bears
// it.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_BESIDE_H
#define FSR_LIB_WORKER_BESIDE_H

#include "CopiedTask.h"

namespace fsr {

struct BesideLimits {
  /// Of warps, of one run of all launches.
  uint64_t instructions = 0;
  uint64_t bytes = uint64_t(256) << 20; ///< Of inputs, copied for one filling.
  /// Inputs of no more than that are copied whole.
  uint64_t smallBytes = uint64_t(8) << 20;
  /// What later launches may find of blocks that did not run; scratch that is
  /// cleared.
  uint64_t unknownBytes = uint64_t(64) << 20;
};

struct BesideHow {
  ptx::Schedule schedule = ptx::Schedule::Lockstep;
  ptx::BlockOrder order = ptx::BlockOrder::OfSchedule;
  /// What inputs are read, in place of whether they are written.
  bool notesReads = false;
};

struct BesideReport {
  std::vector<ptx::Finding> findings;
  bool isWhole = false; ///< All blocks of all launches.
  ptx::Proof proof;     ///< Only of a whole run.
  ptx::Fidelity fidelity;
  ptx::Counters counters;
  std::string part; ///< "all 30 blocks", "12 of 240 blocks of launch 2, …".
  std::string why;  ///< Nothing is known, because of that.
  uint64_t instructions = 0;
  /// A hash of all that the task's buffers hold after a whole run; none where
  /// they are large.
  std::optional<uint64_t> outputs;
  ReadWords reads; ///< Of a whole run, where it was asked for.
};

class Beside {
public:
  using Fetch = CopiedTask::Fetch;

  /// The candidate's plan; `seed` draws what part runs.
  Beside(const KernelTask &task, const ResolvedPlan &plan, llvm::StringRef ptx,
         const ptx::VirtualGpuOptions &options, uint64_t seed);
  /// The original.
  Beside(const KernelTask &task, llvm::StringRef ptx,
         const ptx::VirtualGpuOptions &options, uint64_t seed);

  /// Fetches the inputs that launches touch and runs them. An error is
  /// `fetch`'s own.
  llvm::Expected<BesideReport> run(const BesideLimits &limits,
                                   const BesideHow &how, Fetch fetch);
  /// Warp instructions of all runs.
  uint64_t executed() const { return spent; }

private:
  struct Step {
    std::string kernel;
    ptx::LaunchShapeOf shape;
    std::vector<uint8_t> params;
    uint64_t blocks = 0, cost = 0; ///< Of one block; 0: not known.
    std::vector<ptx::ChosenBlock> chosen;
    bool isAsked = false, isPart = false, isPrefix = false;
  };
  struct Scratch {
    size_t buffer = 0;
    bool isZero = false;
  };
  enum class Went { Well, Again, Nowhere };

  void open(const ResolvedPlan *plan, llvm::StringRef ptx,
            const ptx::VirtualGpuOptions &options);
  llvm::Error addStep(llvm::StringRef kernel, const LaunchShape &shape,
                      const PackedParameters &values);
  uint64_t budget() const;
  llvm::Expected<ptx::LaunchResult> launch(const Step &step, bool isDry,
                                           const BesideHow &how);
  llvm::Error reset();
  bool coverUnknown();
  void ask(Step &step);
  Went choose(Step &step, BesideReport &report);
  Went runSteps(bool isDry, const BesideHow &how, BesideReport &report);
  std::optional<uint64_t> hashOutputs();
  Went look(Step &step, size_t index, bool isUnknown, bool isDry,
            ptx::LaunchResult &result, BesideReport &report);

  const KernelTask &task;
  CopiedTask copied;
  std::mt19937_64 random;
  std::vector<Step> steps;
  std::vector<Scratch> scratches;
  std::string text; ///< The PTX, where the module has variables to start anew.
  std::string hopeless; ///< No run ever will, because of that.
  BesideLimits limits;
  bool isLearnt = false; ///< What the launches touch is known.
  uint64_t spent = 0;
};

} // namespace fsr

#endif // FSR_LIB_WORKER_BESIDE_H
