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

std::string scalePtx(int64_t elements) {
  std::string text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 xb, .param .u64 x, .param .u64 xo,
  .param .u64 xs0, .param .u64 xs1, .param .u64 xt0, .param .u64 xt1,
  .param .u64 yb, .param .u64 y, .param .u64 yo, .param .u64 ys0,
  .param .u64 ys1, .param .u64 yt0, .param .u64 yt1) {
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
loop:
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
  add.u32 %r1, %r1, 32;
  setp.lt.u32 %p1, %r1, ELEMENTS;
  @%p1 bra loop;
  ret;
}
)";
  return text.replace(text.find("ELEMENTS"), 8, std::to_string(elements));
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
