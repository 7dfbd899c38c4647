// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `fsr-worker replay FILE`: one launch of a candidate on the workload's own
// inputs, to be watched from outside. Buffers are exactly as large as the task
// says, and outputs and scratch are left as they were allocated: a guard zone
// would hide what a memory checker looks for, and poison what an
// initialisation checker does.
//
// Exit status: 0 it ran; 1 it did not.
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "Sanitizer.h"

#include "fsr/Device/Protocol.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Hash.h"
#include "fsr/Worker/Worker.h"

#include "llvm/Support/raw_ostream.h"

#include <fcntl.h>
#include <unistd.h>

namespace fsr {

namespace {

struct ReplayInput {
  std::string image;
  WireEvaluate request;
};

llvm::Expected<ReplayInput> readReplay(llvm::StringRef path) {
  int fd = ::open(path.str().c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return makeError(ErrorKind::BadInput, "cannot read '" + path + "'");
  auto read = [&]() -> llvm::Expected<ReplayInput> {
    ReplayInput input;
    for (bool isImage : {true, false}) {
      auto frame = readFrame(fd);
      if (!frame)
        return frame.takeError();
      if (!*frame)
        return makeError(ErrorKind::Corrupt, "'" + path + "' ends too early");
      if (isImage) {
        input.image = std::move((*frame)->blob);
        continue;
      }
      llvm::json::Path::Root root("evaluate");
      llvm::json::Value json(std::move((*frame)->header));
      if (!fromJSON(json, input.request, root))
        return makeError(ErrorKind::Corrupt, llvm::toString(root.getError()));
    }
    if (sha256(input.image) != input.request.candidateHash)
      return makeError(ErrorKind::Corrupt,
                       "'" + path + "': the image is another one");
    return std::move(input);
  };
  auto input = read();
  ::close(fd);
  return input;
}

} // namespace

llvm::Error replayOnce(Backend &backend, llvm::StringRef path) {
  auto input = readReplay(path);
  if (!input)
    return input.takeError();
  const WireEvaluate &request = input->request;
  const KernelTask &task = request.task;
  if (llvm::Error error = checkArguments(task, request.plan))
    return error;
  auto helpers = Helpers::create(backend);
  if (!helpers)
    return helpers.takeError();
  auto buffers = TaskBuffers::create(**helpers, task, /*tight=*/true);
  if (!buffers)
    return buffers.takeError();
  if (llvm::Error error = (*buffers)->addScratch(request.plan))
    return error;
  auto image = LoadedImage::load(backend, input->image);
  if (!image)
    return image.takeError();
  std::vector<FunctionHandle> functions;
  for (const ResolvedLaunch &launch : request.plan.launches) {
    auto function = (*image)->function(launch.kernel);
    if (!function)
      return function.takeError();
    functions.push_back(*function);
  }
  InputPlan inputs(task, request.options.seed, request.candidateHash);
  if (llvm::Error error =
          (*buffers)->fill(inputs.workload().front(), /*onlyWritten=*/false))
    return error;
  if (llvm::Error error =
          launchCandidate(**helpers, **buffers, task, request.plan, functions))
    return error;
  return (*helpers)->synchronize();
}

int replayWorkerMain(int argc, char **argv) {
  llvm::StringRef file, device = "cuda", lock;
  for (int i = 2; i < argc; ++i) { // After "replay".
    llvm::StringRef argument = argv[i];
    if (argument.consume_front("--device="))
      device = argument;
    else if (argument.consume_front("--while-locked=")) // A worker's.
      lock = argument;
    else if (file.empty() && !argument.starts_with("-"))
      file = argument;
    else
      file = "";
  }
  if (file.empty()) {
    llvm::errs() << "usage: fsr-worker replay FILE [--device=DEVICE]\n";
    return 1;
  }
  if (!lock.empty())
    if (llvm::Error gone = endWithHolder(lock.str())) {
      llvm::errs() << "fsr-worker: error: " << llvm::toString(std::move(gone))
                   << '\n';
      return 1;
    }
  auto backend = openBackend(device);
  llvm::Error error =
      backend ? replayOnce(**backend, file) : backend.takeError();
  if (!error)
    return 0;
  llvm::errs() << "fsr-worker: error: " << llvm::toString(std::move(error))
               << '\n';
  llvm::errs().flush();
  // Tearing down a dead context can hang.
  _exit(1);
}

} // namespace fsr
