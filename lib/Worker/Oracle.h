// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the original's results would be without rounding. Its PTX runs in shadow
// mode on a virtual GPU of its own, on the CPU, whatever the worker's device
// is: the same code on the same bits, which are copied from the device. For
// each element it gives the true value and a bound on the original's own error.
//
// A large grid runs in part: whole blocks, or warps or some of their lanes
// where these do not look at one another, drawn at random and as many as the
// budget allows. Only the parts of the inputs are copied that these read.
//
// Nothing here fails an evaluation: where there is no truth, `Truth::why` says
// the reason. Only what the device says when it is read is an error.
//
// Truth must not exist while a candidate runs: `prepare` comes before, `solve`
// after it, and what `solve` gave is dropped before the next launch.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_ORACLE_H
#define FSR_LIB_WORKER_ORACLE_H

#include "CopiedTask.h"
#include "PtxFacts.h"

namespace fsr {

struct TrueElement {
  uint64_t index = 0;  ///< In the order of the buffer's dimensions.
  uint64_t offset = 0; ///< Among its storage, in elements.
  double value = 0;
  double bound = 0; ///< On |the original's - value|; may be infinite.
};

/// Of one written float buffer.
struct TrueBuffer {
  size_t argument = 0;
  std::vector<TrueElement> elements; ///< By offset.
  bool isWhole = false;              ///< All that the original writes.
};

struct Truth {
  std::vector<TrueBuffer> buffers;
  std::string part; ///< "all 30 blocks", "12 of 240 warps".
  std::string why;  ///< There is none, because of that.

  const TrueBuffer *find(size_t argument) const;
};

struct OracleLimits {
  /// Of whole warps in shadow mode, of one filling: a lane is a part of one.
  uint64_t instructions = 0;
  /// Of inputs, copied for one filling.
  uint64_t bytes = uint64_t(256) << 20;
  /// Inputs of no more than that are copied whole, with no look at what is
  /// read.
  uint64_t smallBytes = uint64_t(8) << 20;
  unsigned hostThreads = 0; ///< 0: as many as the host has.
};

class Oracle {
public:
  /// Reads what the original finds when it starts.
  using Fetch = CopiedTask::Fetch;

  /// `ptx` is the original's; `seed` draws what part of the grid runs.
  Oracle(const KernelTask &task, llvm::StringRef ptx, uint64_t seed);
  ~Oracle();

  /// Copies what the original is about to read.
  llvm::Error prepare(const OracleLimits &limits, Fetch fetch);
  /// Runs it on that. `fetch` still reads what is read-only.
  llvm::Expected<Truth> solve(Fetch fetch);
  /// Of all `solve`s together.
  uint64_t executed() const { return spent; }

private:
  using Buffer = CopiedTask::Buffer;
  void open(llvm::StringRef ptx);
  /// Of warps with few lanes there may be more.
  uint64_t budgetOfLaunch() const { return 32 * limits.instructions; }
  /// False: `why` says the reason.
  bool choose();
  bool learnNeeds();
  void spread(uint64_t blocks, unsigned warps, bool byWarp, bool byLane);
  llvm::Expected<ptx::LaunchResult>
  launch(llvm::ArrayRef<ptx::ChosenBlock> what, bool shadow, uint64_t budget);
  void readBuffer(const Buffer &buffer, Truth &to);
  bool giveUp(const llvm::Twine &reason);

  const KernelTask &task;
  std::mt19937_64 random;
  PtxFacts facts;
  CopiedTask copied;
  std::vector<uint8_t> params;
  std::string hopeless; ///< There never will be a truth, because of that.
  std::string noPart;   ///< None within these limits.
  std::string why;      ///< None for this filling.
  OracleLimits limits;
  bool isChosen = false, isWholeGrid = false;
  std::vector<ptx::ChosenBlock> chosen; ///< In pieces; none: all.
  std::string part;
  uint64_t costOfUnit = 0, spent = 0;
};

} // namespace fsr

#endif // FSR_LIB_WORKER_ORACLE_H
