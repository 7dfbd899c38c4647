// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two sources of true values held against one another, on the virtual device:
// the original in shadow mode, and its clone in f64.
//
//   clone-values TASK.json...
//
// Prints a line a task: how far they are apart at the most, as a share of the
// row's largest value, or why one of them is missing. The exit status is 1
// where they are further apart than 1e-12.
//
//===----------------------------------------------------------------------===//

#include "CloneValues.h"
#include "Oracle.h"

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace fsr;

namespace {

constexpr double furthest = 1e-12;

llvm::Expected<std::string> compare(const KernelTask &task, bool &isFar) {
  auto backend = openVirtualBackend();
  if (!backend)
    return backend.takeError();
  auto helpers = Helpers::create(**backend);
  if (!helpers)
    return helpers.takeError();
  auto buffers = TaskBuffers::create(**helpers, task);
  if (!buffers)
    return buffers.takeError();
  InputSet set = InputPlan(task, 1, "clone-values").workload().front();
  if (llvm::Error error = (*buffers)->fill(set, false))
    return std::move(error);
  auto read = [&](DevicePointer from, void *to, uint64_t bytes) {
    if (llvm::Error error =
            (**backend).copyToHost(to, from, bytes, (*helpers)->stream()))
      return error;
    return (*helpers)->synchronize();
  };
  CloneValues clone(**helpers, task, task.reference.truePtx,
                    task.reference.noTruePtx);
  auto ready = clone.prepare(**buffers);
  if (!ready)
    return ready.takeError();
  if (!*ready)
    return "no clone: " + clone.whyNot();
  if (llvm::Error error = clone.run(**buffers))
    return std::move(error);
  if (!clone.hasValues())
    return "no clone: " + clone.whyNot();

  // Nothing has run on the task's own buffers.
  Oracle oracle(task, task.reference.ptx, 1);
  OracleLimits limits;
  limits.instructions = 1'000'000'000;
  auto fetch = [&](size_t argument, uint64_t offset, void *to, uint64_t bytes) {
    return read((*buffers)->find(argument)->data + offset, to, bytes);
  };
  if (llvm::Error error = oracle.prepare(limits, fetch))
    return std::move(error);
  auto truth = oracle.solve(fetch);
  if (!truth)
    return truth.takeError();
  if (!truth->why.empty())
    return "no shadow: " + truth->why;
  uint64_t compared = 0;
  double apart = 0;
  for (const TrueBuffer &one : truth->buffers) {
    const TaskBuffer &buffer = *(*buffers)->find(one.argument);
    std::vector<double> values(buffer.storageElements());
    if (llvm::Error error = read(clone.truthOf(one.argument), values.data(),
                                 values.size() * sizeof(double)))
      return std::move(error);
    std::map<uint64_t, double> largest;
    for (const TrueElement &element : one.elements) {
      double &row = largest[element.index / buffer.row()];
      row = std::max(row, std::fabs(element.value));
    }
    for (const TrueElement &element : one.elements) {
      ++compared;
      double difference = std::fabs(values[element.offset] - element.value) /
                          largest[element.index / buffer.row()];
      // A NaN is far.
      if (!(difference <= apart))
        apart = difference;
    }
  }
  isFar = !(apart <= furthest) || !compared;
  return llvm::formatv("{0} elements, {1}: {2}", compared, truth->part,
                       isFar ? llvm::formatv("{0:e2} apart", apart).str()
                             : "the same to 1e-12")
      .str();
}

} // namespace

int main(int argc, char **argv) {
  int status = 0;
  bool isHelp = argc == 2 && (llvm::StringRef(argv[1]) == "--help" ||
                              llvm::StringRef(argv[1]) == "-h");
  if (argc < 2 || isHelp) {
    (isHelp ? llvm::outs() : llvm::errs()) << "usage: clone-values TASK...\n";
    return isHelp ? 0 : 2;
  }
  for (int i = 1; i < argc; ++i) {
    auto text = readFile(argv[i]);
    auto task =
        text ? parseTask(*text) : llvm::Expected<KernelTask>(text.takeError());
    bool isFar = false;
    auto said = task ? compare(*task, isFar)
                     : llvm::Expected<std::string>(task.takeError());
    if (!said) {
      llvm::errs() << "clone-values: " << argv[i] << ": "
                   << llvm::toString(said.takeError()) << "\n";
      return 2;
    }
    llvm::outs() << task->name << ": " << *said << "\n";
    status |= isFar;
  }
  return status;
}
