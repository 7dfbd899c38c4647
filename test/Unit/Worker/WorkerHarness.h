// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs `serveDevice` on a thread over a socket pair and talks the protocol to
// it, as the parent does. Also the tasks of the tests: a 16 by 64 kernel
// y = 2 * x, and its relatives.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_WORKER_WORKERHARNESS_H
#define FSR_TEST_WORKER_WORKERHARNESS_H

#include "HostBackend.h"

#include "fsr/Device/Protocol.h"
#include "fsr/Support/Frame.h"
#include "fsr/Worker/Worker.h"

#include <thread>

namespace fsr {

constexpr int64_t testRows = 16, testColumns = 64,
                  testElements = testRows * testColumns;

template <typename T = float>
T *pointerOf(llvm::ArrayRef<void *> params, size_t i) {
  return *static_cast<T **>(params[i]);
}

/// A worker on a thread.
class RunningWorker {
public:
  explicit RunningWorker(Backend &backend,
                         const SanitizerSetup *sanitizer = nullptr,
                         bool asGpu = false);
  ~RunningWorker();
  void send(llvm::json::Object header, std::string blob = "");
  /// The next event; none where the worker closed.
  std::optional<llvm::json::Object> receive();
  /// Closes the peer's end and returns the exit status.
  int finish();
  int socket() const { return fd; }

private:
  int fd = -1;
  int status = -1;
  std::thread thread;
};

/// What one evaluation gave.
struct Ran {
  std::vector<std::pair<std::string, int64_t>> phases; ///< With deadlines.
  std::optional<EvaluateResult> result;
  std::string error; ///< Of an error event.
  int status = -1;   ///< Of the worker.
};

/// One task, one original, one candidate.
struct Trying {
  HostBackend backend;
  KernelTask task;
  ResolvedPlan plan;
  EvaluateOptions options;
  HostKernel original, candidate;
  std::string cloneImage; ///< Of the original; empty: none.

  /// y = 2 * x on f32, exact, candidate equal and twice as fast.
  Trying();
  Ran run();
  Ran runOnce(RunningWorker &worker);
  /// The same task with these images, on a worker of any back end.
  Ran runImages(RunningWorker &worker, const std::string &originalImage,
                const std::string &candidateImage);
};

/// PTX of that original for devices that run some: one block of 32 threads
/// doubles the first `elements`, a multiple of 32.
std::string scalePtx(int64_t elements = testElements);
Argument bufferArgument(llvm::StringRef name, ElementType element,
                        std::vector<int64_t> sizes, Access access);
/// The check of that name; where there is none the test fails and gets an empty
/// one.
const Check *findCheck(const EvaluateResult &result, llvm::StringRef name);

} // namespace fsr

#endif // FSR_TEST_WORKER_WORKERHARNESS_H
