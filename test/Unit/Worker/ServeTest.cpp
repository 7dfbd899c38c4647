// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The protocol: greetings, bad requests, phases with deadlines, and what a
// worker does when the candidate, or the original, takes the context with it.
//
//===----------------------------------------------------------------------===//

#include "Serve.h"
#include "Evaluation.h"
#include "WorkerHarness.h"

#include "fsr/Support/Hash.h"

#include "gtest/gtest.h"

#include <unistd.h>

using namespace fsr;

namespace {

using Params = llvm::ArrayRef<void *>;

std::string ask(RunningWorker &worker, llvm::json::Object request,
                std::string blob = "") {
  worker.send(std::move(request), std::move(blob));
  auto answer = worker.receive();
  if (!answer)
    return "closed";
  return (answer->getString("event").value_or("") + ": " +
          answer->getString("message").value_or(""))
      .str();
}

TEST(ServeTest, Hello) {
  HostBackend backend;
  RunningWorker worker(backend);
  worker.send(llvm::json::Object{{"op", "hello"}, {"protocol", 2}});
  auto answer = worker.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->getString("event"), "hello");
  DeviceDescription device;
  llvm::json::Path::Root root("description");
  ASSERT_TRUE(answer->get("description"));
  ASSERT_TRUE(fromJSON(*answer->get("description"), device, root))
      << llvm::toString(root.getError());
  EXPECT_EQ(device.name, "Host");
  EXPECT_EQ(device.coresPerMultiprocessor, 128);
  EXPECT_DOUBLE_EQ(device.peakBytesPerSecond(), 4.608e12);
  EXPECT_EQ(worker.finish(), 0);
}

TEST(ServeTest, AnImageMayBeSentAgain) {
  HostBackend backend;
  RunningWorker worker(backend);
  auto send = [&](const std::string &image) {
    return ask(worker,
               llvm::json::Object{{"op", "image"}, {"hash", sha256(image)}},
               image);
  };
  // The older of two, so often that the cache moves to other memory.
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(send("one"), "done: ");
    ASSERT_EQ(send("other"), "done: ");
  }
  EXPECT_EQ(worker.finish(), 0);
}

TEST(ServeTest, AnotherProtocolIsRefused) {
  HostBackend backend;
  RunningWorker worker(backend);
  EXPECT_EQ(ask(worker, llvm::json::Object{{"op", "hello"}, {"protocol", 3}}),
            "error: this worker speaks protocol 2, got 3");
  EXPECT_EQ(ask(worker, llvm::json::Object{{"op", "hello"}}),
            "error: this worker speaks protocol 2, got none");
}

TEST(ServeTest, BadRequestsAreAnsweredAndTheLoopGoesOn) {
  HostBackend backend;
  RunningWorker worker(backend);
  EXPECT_EQ(ask(worker, llvm::json::Object{{"op", "reboot"}}),
            "error: unknown request 'reboot'; known are hello, probe, image, "
            "evaluate and strength");
  EXPECT_EQ(ask(worker, llvm::json::Object()),
            "error: expected a request with an op");
  EXPECT_NE(ask(worker,
                llvm::json::Object{{"op", "image"}, {"hash", sha256("a")}}, "b")
                .find("the bytes have the hash"),
            std::string::npos);
  EXPECT_NE(ask(worker, llvm::json::Object{{"op", "evaluate"}}).find("error: "),
            std::string::npos);
  EXPECT_EQ(ask(worker, llvm::json::Object{{"op", "probe"}}), "done: ");
  EXPECT_EQ(worker.finish(), 0);
  EXPECT_EQ(backend.allocatedBytes(), 0u);
}

TEST(ServeTest, AnErrorSaysAllOfThem) {
  bool dead = false;
  llvm::json::Object event = errorEvent(
      llvm::joinErrors(
          makeError(ErrorKind::Corrupt, "it reads back otherwise"),
          llvm::joinErrors(llvm::make_error<BackendError>(
                               700, "CUDA_ERROR_ILLEGAL_ADDRESS", "cuMemFree"),
                           makeError(ErrorKind::BadInput, "and this"))),
      dead);
  EXPECT_TRUE(dead);
  EXPECT_EQ(event.getString("kind"), "corrupt");
  EXPECT_EQ(event.getBoolean("context_lost"), true);
  llvm::StringRef message = *event.getString("message");
  EXPECT_TRUE(message.starts_with("it reads back otherwise; then: "))
      << message.str();
  EXPECT_TRUE(message.contains("CUDA_ERROR_ILLEGAL_ADDRESS")) << message.str();
  EXPECT_TRUE(message.ends_with("; then: and this")) << message.str();
}

TEST(ServeTest, GarbageEndsTheWorker) {
  HostBackend backend;
  RunningWorker worker(backend);
  std::string garbage(64, '\xff');
  ASSERT_EQ(write(worker.socket(), garbage.data(), garbage.size()), 64);
  auto answer = worker.receive();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->getString("kind"), "corrupt");
  EXPECT_EQ(worker.finish(), 1);
}

TEST(ServeTest, EveryLaunchOfTheCandidateStandsUnderADeadline) {
  Trying trying;
  trying.original.microseconds = 400000;
  trying.candidate.microseconds = 300000;
  Ran ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  ASSERT_FALSE(ran.phases.empty());
  EXPECT_EQ(ran.phases.front().first, "original-load");
  bool candidate = false;
  for (auto &[phase, deadline] : ran.phases) {
    EXPECT_GT(deadline, 0);
    EXPECT_LE(deadline, maxWireDeadlineMs);
    if (phase != "candidate-run")
      continue;
    candidate = true;
    // Ten times the original, and what the helpers may take.
    EXPECT_GE(deadline, 3960 + 3000);
  }
  EXPECT_TRUE(candidate);
}

TEST(ServeTest, CandidateNeverRunsInAPhaseOfTheOriginal) {
  // With no socket between, the phase in force at each launch is known.
  Trying trying;
  std::string phase;
  size_t launches = 0;
  auto right = trying.candidate.body;
  trying.candidate.body = [&](Params params) {
    ++launches;
    EXPECT_TRUE(llvm::StringRef(phase).starts_with("candidate")) << phase;
    return right(params);
  };
  trying.backend.images["original"] = {{"scale", trying.original}};
  trying.backend.images["candidate"] = {{"fast", trying.candidate}};
  WireEvaluate request;
  request.task = trying.task;
  request.plan = trying.plan;
  auto helpers = llvm::cantFail(Helpers::create(trying.backend));
  auto emit = [&](llvm::json::Object event) {
    phase = event.getString("phase").value_or("").str();
    return llvm::Error::success();
  };
  Evaluation evaluation(*helpers, request,
                        {"original", "candidate", "", "", ""}, emit);
  EvaluateResult result = llvm::cantFail(evaluation.run());
  EXPECT_EQ(nameOf(result.verdict), nameOf(Verdict::Accepted))
      << result.message;
  EXPECT_GT(launches, 20u);
}

TEST(ServeTest, IllegalAddressIsUnsafeAndEndsTheWorker) {
  Trying trying;
  trying.candidate.body = [](Params) { return 700; };
  Ran ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Unsafe));
  EXPECT_NE(ran.result->message.find("CUDA_ERROR_ILLEGAL_ADDRESS"),
            std::string::npos);
  EXPECT_EQ(ran.status, 3);
}

TEST(ServeTest, AnotherStickyErrorIsACrash) {
  Trying trying;
  trying.candidate.body = [](Params) { return 719; };
  Ran ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Crashed));
  EXPECT_EQ(ran.status, 3);
}

TEST(ServeTest, StickyErrorWhileTimedIsTheCandidates) {
  Trying trying;
  auto calls = std::make_shared<int>(0);
  auto right = trying.candidate.body;
  trying.candidate.body = [=](Params params) {
    right(params);
    return ++*calls > 12 ? 700 : 0;
  };
  Ran ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Unsafe));
  EXPECT_EQ(ran.status, 3);
}

TEST(ServeTest, StickyErrorOfTheOriginalIsNoVerdict) {
  Trying trying;
  trying.original.body = [](Params) { return 700; };
  Ran ran = trying.run();
  EXPECT_FALSE(ran.result);
  EXPECT_NE(ran.error.find("while the candidate was not running"),
            std::string::npos)
      << ran.error;
  EXPECT_NE(ran.error.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos);
  EXPECT_EQ(ran.status, 3);
}

TEST(ServeTest, RefusedLaunch) {
  Trying trying;
  trying.candidate.refusal = 701;
  Ran ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::LaunchFailed));
  EXPECT_NE(ran.result->message.find("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
            std::string::npos);
  EXPECT_EQ(ran.status, 0);
}

TEST(ServeTest, WhatTheDriverDoesNotDoForTheWorkerIsNoVerdict) {
  Trying trying;
  trying.candidate.refusal = 400;
  Ran ran = trying.run();
  EXPECT_FALSE(ran.result);
  EXPECT_NE(ran.error.find("not by the candidate's doing"), std::string::npos)
      << ran.error;
  EXPECT_EQ(ran.status, 0);
}

TEST(ServeTest, BrokenHardwareIsNoVerdict) {
  Trying trying;
  trying.candidate.body = [](Params) { return 214; };
  Ran ran = trying.run();
  EXPECT_FALSE(ran.result);
  EXPECT_NE(ran.error.find("CUDA_ERROR_ECC_UNCORRECTABLE"), std::string::npos)
      << ran.error;
  EXPECT_EQ(ran.status, 3); // The context is gone: a fresh worker tries again.
}

TEST(ServeTest, MissingKernelAndUnknownArgumentAreRejected) {
  {
    Trying trying;
    trying.plan.launches[0].kernel = "other";
    Ran ran = trying.run();
    ASSERT_TRUE(ran.result) << ran.error;
    EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Rejected));
    EXPECT_EQ(ran.result->message, "the image has no kernel named other");
  }
  Trying trying;
  trying.plan.launches[0].args = {"x", "nothing"};
  Ran ran = trying.run();
  ASSERT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(nameOf(ran.result->verdict), nameOf(Verdict::Rejected));
  EXPECT_NE(ran.result->message.find("no value for argument 'nothing'"),
            std::string::npos);
}

TEST(ServeTest, OutOfMemoryNamesTheNumbersAndFreesAll) {
  Trying trying;
  trying.backend.capacity = 400000;
  RunningWorker worker(trying.backend);
  Ran ran = trying.runOnce(worker);
  EXPECT_FALSE(ran.result);
  EXPECT_NE(ran.error.find("out of device memory: wanted "), std::string::npos)
      << ran.error;
  EXPECT_NE(ran.error.find("bytes are free"), std::string::npos);
  // The same worker does it once there is room.
  trying.backend.capacity = 1 << 30;
  trying.options.measure = false;
  ran = trying.runOnce(worker);
  EXPECT_TRUE(ran.result) << ran.error;
  EXPECT_EQ(worker.finish(), 0);
  EXPECT_EQ(trying.backend.allocatedBytes(), 0u);
}

TEST(ServeTest, ScalarWithoutAValueIsAnError) {
  Trying trying;
  Argument scalar;
  scalar.name = "n";
  scalar.element = ElementType::I64;
  trying.task.arguments.push_back(scalar);
  trying.task.workload[0].fills.resize(3);
  Ran ran = trying.run();
  EXPECT_FALSE(ran.result);
  EXPECT_NE(ran.error.find("scalar n has no constant value"), std::string::npos)
      << ran.error;
}

} // namespace
