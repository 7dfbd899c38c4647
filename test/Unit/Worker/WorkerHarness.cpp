// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parent's side of the protocol, without its patience.
//
//===----------------------------------------------------------------------===//

#include "WorkerHarness.h"

#include "fsr/Support/Hash.h"
#include "fsr/Worker/Worker.h"

#include "gtest/gtest.h"

#include <sys/socket.h>
#include <unistd.h>

namespace fsr {

RunningWorker::RunningWorker(Backend &backend, const SanitizerSetup *sanitizer,
                             bool asGpu) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
    abort();
  fd = pair[0];
  thread = std::thread([this, &backend, sanitizer, asGpu, end = pair[1]] {
    status = serveDevice(backend, end, end, sanitizer, asGpu);
    close(end);
  });
}

RunningWorker::~RunningWorker() {
  if (thread.joinable())
    finish();
}

void RunningWorker::send(llvm::json::Object header, std::string blob) {
  Frame frame;
  frame.header = std::move(header);
  frame.blob = std::move(blob);
  EXPECT_EQ(llvm::toString(writeFrame(fd, frame)), "");
}

std::optional<llvm::json::Object> RunningWorker::receive() {
  auto frame = readFrame(fd, Deadline::in(std::chrono::seconds(60)));
  if (!frame) {
    ADD_FAILURE() << llvm::toString(frame.takeError());
    return std::nullopt;
  }
  if (!*frame)
    return std::nullopt;
  return (*frame)->header;
}

int RunningWorker::finish() {
  shutdown(fd, SHUT_WR);
  thread.join();
  close(fd);
  return status;
}

Argument bufferArgument(llvm::StringRef name, ElementType element,
                        std::vector<int64_t> sizes, Access access) {
  Argument argument;
  argument.name = name.str();
  argument.element = element;
  argument.isBuffer = true;
  argument.sizes = sizes;
  argument.strides.assign(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;)
    argument.strides[d - 1] = argument.strides[d] * sizes[d];
  argument.access = access;
  argument.alignment = byteSize(element);
  return argument;
}

const Check *findCheck(const EvaluateResult &result, llvm::StringRef name) {
  for (const Check &check : result.evidence.checks)
    if (check.name == name)
      return &check;
  ADD_FAILURE() << "no check named " << name.str();
  static const Check none;
  return &none;
}

Trying::Trying() {
  task.name = "scale";
  task.key = sha256("scale");
  task.target = "sm_90";
  task.arguments = {bufferArgument("x", ElementType::F32,
                                   {testRows, testColumns}, Access::Read),
                    bufferArgument("y", ElementType::F32,
                                   {testRows, testColumns}, Access::Write)};
  task.reference.entry = "scale";
  task.work.exactOnIntegers = true;
  task.work.flops = testElements;
  task.work.bytesRead = task.work.bytesWritten = testElements * 4;
  WorkloadCase sizes;
  sizes.name = "static";
  sizes.fills.resize(2);
  task.workload = {sizes};
  ResolvedLaunch launch;
  launch.kernel = "fast";
  launch.args = {"x", "y"};
  plan.launches = {launch};
  options.seed = 42;
  original.body = [](llvm::ArrayRef<void *> params) {
    // base, aligned, offset, two sizes, two strides; aligned of y is 8th.
    float *x = pointerOf(params, 1), *y = pointerOf(params, 8);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = 2 * x[i];
    return 0;
  };
  candidate.body = [](llvm::ArrayRef<void *> params) {
    float *x = pointerOf(params, 0), *y = pointerOf(params, 1);
    for (int64_t i = 0; i < testElements; ++i)
      y[i] = x[i] + x[i];
    return 0;
  };
  original.microseconds = 100;
  candidate.microseconds = 50;
}

Ran Trying::runOnce(RunningWorker &worker) {
  backend.images["original image"] = {{task.reference.entry, original}};
  backend.images["candidate image"] = {{"fast", candidate}};
  return runImages(worker, "original image", "candidate image");
}

Ran Trying::runImages(RunningWorker &worker, const std::string &originalImage,
                      const std::string &candidateImage) {
  WireEvaluate request;
  request.task = task;
  request.referenceHash = sha256(originalImage);
  request.candidateHash = sha256(candidateImage);
  for (auto [image, hash] :
       {std::pair(&originalImage, &request.referencePtxHash),
        std::pair(&candidateImage, &request.candidatePtxHash)})
    if (llvm::StringRef(*image).contains(".version"))
      *hash = sha256(*image);
  if (!cloneImage.empty())
    request.cloneHash = sha256(cloneImage);
  request.plan = plan;
  request.options = options;
  for (const std::string &image : {cloneImage, originalImage, candidateImage}) {
    if (image.empty())
      continue;
    worker.send(llvm::json::Object{{"op", "image"}, {"hash", sha256(image)}},
                image);
    auto answer = worker.receive();
    EXPECT_TRUE(answer && answer->getString("event") == "done");
  }
  worker.send(*toJSON(request).getAsObject());
  Ran ran;
  while (auto event = worker.receive()) {
    llvm::StringRef name = event->getString("event").value_or("");
    if (name == "started") {
      ran.phases.push_back({event->getString("phase").value_or("").str(),
                            event->getInteger("deadline_ms").value_or(-1)});
      continue;
    }
    if (name == "error") {
      ran.error = event->getString("message").value_or("").str();
      break;
    }
    EXPECT_EQ(name, "result");
    EvaluateResult result;
    llvm::json::Path::Root root("result");
    EXPECT_TRUE(fromJSON(llvm::json::Object(*event), result, root))
        << llvm::toString(root.getError());
    ran.result = std::move(result);
    break;
  }
  EXPECT_TRUE(ran.result || !ran.error.empty()) << "no answer";
  return ran;
}

Ran Trying::run() {
  RunningWorker worker(backend);
  Ran ran = runOnce(worker);
  ran.status = worker.finish();
  return ran;
}

} // namespace fsr
