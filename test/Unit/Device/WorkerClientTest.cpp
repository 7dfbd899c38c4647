// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The client against workers that answer, hang, die and lie. Each test drives
// the real process machinery; fsr-scripted-worker plays the worker.
//
//===----------------------------------------------------------------------===//

#include "DeviceTestUtils.h"
#include "fsr/Device/Device.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

#include <csignal>
#include <cstdlib>

using namespace fsr;
using namespace fsr::test;
using std::chrono::milliseconds;

namespace {

/// An answer as one line: "accepted: message", "error unavailable: message".
std::string lineOf(llvm::Expected<EvaluateResult> result) {
  if (!result) {
    llvm::Error error = result.takeError();
    const char *names[] = {"bad-input", "unavailable", "timed-out", "corrupt",
                           "unsupported"};
    std::string kind = names[int(kindOf(error))];
    return "error " + kind + ": " + llvm::toString(std::move(error));
  }
  return nameOf(result->verdict).str() + ": " + result->message;
}

class WorkerClient : public ::testing::Test {
protected:
  void SetUp() override {
    // As in a host that leaves the signal at its default: a write to a worker
    // that died must not end this process.
    signal(SIGPIPE, SIG_DFL);
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fsr-device", folder));
    timeouts.hello = timeouts.probe = milliseconds(20000);
    task = smallTask();
    request.task = &task;
    request.referenceImage = "reference image";
    request.candidateImage = "candidate image";
    request.plan = smallPlan();
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string command(llvm::StringRef arguments) const {
    return std::string("exec:") + FSR_SCRIPTED_WORKER +
           " --lives=" + folder.str().str() +
           "/lives --log=" + folder.str().str() + "/log " + arguments.str();
  }
  /// The error of opening, or "".
  std::string open(llvm::StringRef arguments) {
    return openSpec(command(arguments));
  }
  std::string openSpec(llvm::StringRef spec) {
    auto opened = openDevice(spec, timeouts);
    if (!opened)
      return llvm::toString(opened.takeError());
    device = std::move(*opened);
    return "";
  }
  std::string evaluate() { return lineOf(device->evaluate(request)); }
  std::string read(llvm::StringRef name) {
    auto text = readFile((folder + "/" + name).str());
    if (!text)
      return "error: " + llvm::toString(text.takeError());
    return *text;
  }
  size_t starts() { return read("lives").size(); }

  llvm::SmallString<128> folder;
  DeviceTimeouts timeouts;
  KernelTask task;
  EvaluateRequest request;
  std::unique_ptr<Device> device;
};

bool contains(llvm::StringRef text, llvm::StringRef part) {
  return text.contains(part);
}

} // namespace

TEST_F(WorkerClient, AnswersAndSendsImagesOnce) {
  ASSERT_EQ(open("accepted not-faster"), "");
  auto description = device->describe();
  ASSERT_TRUE(bool(description));
  EXPECT_EQ(description->chip, "sm_90");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  EXPECT_EQ(evaluate(), "not-faster: scripted not-faster");
  EXPECT_EQ(read("log"), "hello\nimage\nimage\nevaluate\nevaluate\n");
  request.candidateImage = "another";
  EXPECT_EQ(evaluate(), "not-faster: scripted not-faster");
  EXPECT_EQ(read("log"),
            "hello\nimage\nimage\nevaluate\nevaluate\nimage\nevaluate\n");
  EXPECT_EQ(starts(), 1u);
}

TEST_F(WorkerClient, ImagesThatAWorkerMayHaveDroppedAreSentAgain) {
  // The scripted worker keeps what the protocol demands and no more.
  ASSERT_EQ(open("accepted"), "");
  for (int i = 0; i < 20; ++i) {
    request.candidateImage = "candidate " + std::to_string(i);
    EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  }
  request.candidateImage = "candidate 0";
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  // Two large ones push out all but themselves.
  request.referenceImage.assign(size_t(40) << 20, 'r');
  for (char c : {'a', 'b'}) {
    request.candidateImage.assign(size_t(40) << 20, c);
    EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  }
  EXPECT_EQ(starts(), 1u);
}

TEST_F(WorkerClient, ALostContextCountsAsADeath) {
  ASSERT_EQ(open("lost --then accepted"), "");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, ALostContextTwiceIsTheVerdict) {
  ASSERT_EQ(open("lost"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "crashed: worker: scripted loss in phase "
                             "'candidate'; repeated on a healthy worker"))
      << line;
}

TEST_F(WorkerClient, MeasurementIsOfTheCandidate) {
  ASSERT_EQ(open("--verdict=accepted"), "");
  auto first = device->evaluate(request), again = device->evaluate(request);
  request.candidateImage = "another";
  auto other = device->evaluate(request);
  ASSERT_TRUE(first && again && other);
  EXPECT_GT(first->measurement->speedupLow, 1);
  EXPECT_EQ(first->measurement->speedup, again->measurement->speedup);
  EXPECT_NE(first->measurement->speedup, other->measurement->speedup);
  EXPECT_EQ(first->evidence.level, EvidenceLevel::None);
}

TEST_F(WorkerClient, PhasesReplaceEachOther) {
  ASSERT_EQ(open("phases=mismatch"), "");
  EXPECT_EQ(evaluate(), "mismatch: scripted mismatch");
}

TEST_F(WorkerClient, DeathIsRepeatedOnceOnAProbedWorker) {
  ASSERT_EQ(open("die --then accepted"), "");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  EXPECT_EQ(read("log"), "hello\nimage\nimage\nevaluate\n"
                         "hello\nprobe\nimage\nimage\nevaluate\n");
}

TEST_F(WorkerClient, DeathTwiceIsTheVerdict) {
  ASSERT_EQ(open("die --then die --then accepted"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "crashed: the worker died: killed by SIGKILL in "
                             "phase 'candidate'; repeated on a healthy worker"))
      << line;
  EXPECT_EQ(starts(), 2u);
  // The next candidate gets a third worker.
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  EXPECT_EQ(starts(), 3u);
}

TEST_F(WorkerClient, OverrunTwiceIsTheVerdict) {
  ASSERT_EQ(open("hang"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "timed-out: passed its deadline in phase "
                             "'candidate'"))
      << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, OverrunOnceIsForgiven) {
  ASSERT_EQ(open("hang --then accepted"), "");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
}

TEST_F(WorkerClient, FailingOriginalIsAnError) {
  for (const char *action : {"die-original", "hang-original"}) {
    ASSERT_EQ(open(action), "");
    std::string line = evaluate();
    EXPECT_TRUE(contains(line, "error unavailable: ")) << line;
    EXPECT_TRUE(contains(line, "in phase 'original reference'")) << line;
  }
}

TEST_F(WorkerClient, OneLossOfTheCandidateIsNotItsVerdict) {
  ASSERT_EQ(open("die --then die-original"), "");
  EXPECT_TRUE(contains(evaluate(), "error unavailable: "));
}

TEST_F(WorkerClient, DeathBeforeAnyPhaseIsAnError) {
  ASSERT_EQ(open("die-silent"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "error unavailable: the worker died: killed by "
                             "SIGKILL before any phase"))
      << line;
}

TEST_F(WorkerClient, SilenceIsAnError) {
  timeouts.firstPhase = milliseconds(200);
  ASSERT_EQ(open("silent"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "error unavailable: passed its deadline before "
                             "any phase"))
      << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, DeathInTheMiddleOfAFrameIsADeath) {
  ASSERT_EQ(open("half"), "");
  EXPECT_TRUE(contains(evaluate(), "crashed: the worker died"));
}

TEST_F(WorkerClient, NonsenseIsAnError) {
  for (const char *action :
       {"garbage", "long", "blob", "unknown-event", "bad-deadline",
        "bad-result", "no-measurement", "slower-accepted", "failed-check"}) {
    ASSERT_EQ(open(action), "") << action;
    std::string line = evaluate();
    EXPECT_TRUE(contains(line, "error corrupt: ")) << action << ": " << line;
  }
}

TEST_F(WorkerClient, RatiosAreThoseOfTheSamples) {
  ASSERT_EQ(open("boasting"), "");
  auto result = device->evaluate(request);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_LT(result->measurement->speedupHigh, 1000);
}

TEST_F(WorkerClient, NonsenseOnceIsForgiven) {
  ASSERT_EQ(open("garbage --then accepted"), "");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
}

TEST_F(WorkerClient, ErrorsOfTheWorkerAreScrubbedAndKeepTheirKind) {
  ASSERT_EQ(open("error=unsupported accepted"), "");
  EXPECT_EQ(evaluate(), "error unsupported: worker: scripted  [31m error");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  EXPECT_EQ(starts(), 1u);
}

TEST_F(WorkerClient, AResultBeforeTheEndStands) {
  ASSERT_EQ(open("last=crashed --then accepted"), "");
  EXPECT_EQ(evaluate(), "crashed: scripted crashed");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  EXPECT_EQ(starts(), 2u);
  EXPECT_TRUE(contains(read("log"), "hello\nprobe\n"));
}

TEST_F(WorkerClient, AWorkerThatReportedACrashIsNotUsedAgain) {
  // Though this one would go on.
  ASSERT_EQ(open("crashed accepted --then mismatch"), "");
  EXPECT_EQ(evaluate(), "crashed: scripted crashed");
  EXPECT_EQ(evaluate(), "mismatch: scripted mismatch");
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, TheEndOfAWorkerDoesNotCountAgainstTheNextCandidate) {
  // It dies after it took the next request, and the next worker dies too, once.
  ASSERT_EQ(open("linger=mismatch --then die --then accepted"), "");
  EXPECT_EQ(evaluate(), "mismatch: scripted mismatch");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  EXPECT_EQ(starts(), 3u);
}

TEST_F(WorkerClient, TwoFailedProbesAreAnError) {
  ASSERT_EQ(open("--probe=fail die"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "error unavailable: no healthy worker after two "
                             "starts: worker: the probe read back other bytes"))
      << line;
  EXPECT_EQ(starts(), 3u);
  ASSERT_EQ(open("--probe=die die"), "");
  EXPECT_TRUE(contains(evaluate(), "error unavailable: no healthy worker"));
}

TEST_F(WorkerClient, AProbeIsForBeforeTheFirstRequest) {
  auto probe = [&](llvm::StringRef arguments) {
    EXPECT_EQ(open(arguments), "");
    return llvm::toString(device->probe());
  };
  EXPECT_EQ(probe("accepted"), "");
  EXPECT_EQ(evaluate().substr(0, 9), "accepted:");
  for (const char *bad : {"--probe=fail accepted", "--probe=die accepted"}) {
    std::string error = probe(bad);
    EXPECT_TRUE(contains(error, "no healthy worker after two starts")) << error;
  }
}

TEST_F(WorkerClient, KilledAtAnyMomentTheResultIsOneAndRight) {
  ASSERT_EQ(open("random=mismatch"), "");
  unsigned whole = 0;
  for (int i = 0; i < 60; ++i) {
    request.candidateImage = "candidate " + std::to_string(i);
    std::string line = evaluate();
    bool crashed = contains(line, "crashed: the worker died: killed by "
                                  "SIGKILL in phase 'candidate'") ||
                   contains(line, "repeated on a healthy worker: the worker "
                                  "died: killed by SIGKILL in phase "
                                  "'candidate'");
    bool untouched = contains(line, "error unavailable: the worker died: "
                                    "killed by SIGKILL before any phase; ");
    whole += line == "mismatch: scripted mismatch";
    EXPECT_TRUE(crashed || untouched || line == "mismatch: scripted mismatch")
        << line;
  }
  EXPECT_GT(whole, 0u);
  EXPECT_GT(starts(), 1u);
}

TEST_F(WorkerClient, HelloIsChecked) {
  std::string error = open("--hello=1");
  EXPECT_TRUE(contains(error, "protocol version: got 1, wanted 2")) << error;
  error = open("--hello=error");
  EXPECT_TRUE(contains(error, "worker: no CUDA driver")) << error;
  error = open("--hello=die");
  EXPECT_TRUE(contains(error, "did not say hello (exit status 1)")) << error;
  error = open("--hello=garbage");
  EXPECT_TRUE(contains(error, "did not say hello")) << error;
  error = open("--chip=potato");
  EXPECT_TRUE(contains(error, "chip")) << error;
  timeouts.hello = milliseconds(200);
  error = open("--hello=hang");
  EXPECT_TRUE(contains(error, "deadline has passed")) << error;
}

TEST_F(WorkerClient, DeathBeforeItSpokeIsRepeatedOnce) {
  EXPECT_EQ(open("--hello=die-once accepted"), "");
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, SpecsAreChecked) {
  EXPECT_EQ(openSpec("rocm:0"),
            "unknown device 'rocm:0'; known: cuda, cuda:N, virtual, "
            "virtual:CHIP, exec:COMMAND");
  EXPECT_EQ(openSpec("exec:"), "device 'exec:': command names no program");
  EXPECT_EQ(openSpec("cuda:x"),
            "device 'cuda:x': got 'x', wanted the number of a GPU");
  EXPECT_EQ(openSpec("cuda:"),
            "device 'cuda:': got '', wanted the number of a GPU");
  std::string error = openSpec("exec:/nowhere/fsr-worker device");
  EXPECT_TRUE(contains(error, "/nowhere/fsr-worker")) << error;
}

TEST_F(WorkerClient, CudaIsFoundInFsrBin) {
  // A script in the place of the worker shows how it is called.
  std::string worker = folder.str().str() + "/fsr-worker";
  ASSERT_FALSE(bool(writeFileAtomically(
      worker, std::string("#!/bin/sh\necho \"$@\" > ") + folder.str().str() +
                  "/args\nexec " + FSR_SCRIPTED_WORKER + "\n")));
  ASSERT_FALSE(llvm::sys::fs::setPermissions(worker, llvm::sys::fs::owner_all));
  setenv("FSR_BIN", folder.c_str(), 1);
  EXPECT_EQ(openSpec("cuda:3"), "");
  EXPECT_EQ(read("args"), "device --device=cuda:3\n");
  EXPECT_EQ(openSpec("cuda"), "");
  EXPECT_EQ(read("args"), "device --device=cuda:0\n");
  llvm::sys::fs::remove(worker);
  EXPECT_TRUE(contains(openSpec("cuda"), folder.str()));
  unsetenv("FSR_BIN");
}

TEST_F(WorkerClient, AnotherDeviceAfterARestartIsAnError) {
  std::string worker = folder.str().str() + "/roam";
  ASSERT_FALSE(bool(writeFileAtomically(
      worker, std::string("#!/bin/sh\nname=$$\nexec ") + FSR_SCRIPTED_WORKER +
                  " --device-name=gpu$name die\n")));
  ASSERT_FALSE(llvm::sys::fs::setPermissions(worker, llvm::sys::fs::owner_all));
  ASSERT_EQ(openSpec("exec:" + worker), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "the restarted worker is on another device"))
      << line;
}

TEST_F(WorkerClient, ImagesThatCannotTravelAreRefused) {
  ASSERT_EQ(open("accepted"), "");
  request.candidateImage.clear();
  EXPECT_TRUE(contains(evaluate(), "error bad-input: an image of 0 bytes"));
  request.candidateImage.assign((size_t(256) << 20) + 1, 'x');
  EXPECT_TRUE(contains(evaluate(), "error bad-input: an image of 268435457"));
}

TEST_F(WorkerClient, TestsATask) {
  StrengthRequest strength;
  strength.task = &task;
  strength.referenceImage = "reference image";
  ASSERT_EQ(open("accepted"), "");
  auto told = device->testStrength(strength);
  ASSERT_TRUE(bool(told)) << llvm::toString(told.takeError());
  EXPECT_EQ(told->size(), 2u);
  EXPECT_EQ((*told)[0].outcome, DummyResult::Outcome::Refused);
  EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  // The original's image was there.
  EXPECT_EQ(read("log"), "hello\nimage\nstrength\nimage\nevaluate\n");
  strength.referenceImage = "";
  EXPECT_TRUE(
      contains(llvm::toString(device->testStrength(strength).takeError()),
               "an image of 0 bytes"));
}

TEST_F(WorkerClient, AWorkerThatIsLostInATestIsAnErrorAfterTwo) {
  StrengthRequest strength;
  strength.task = &task;
  strength.referenceImage = "reference image";
  for (auto [how, why] :
       {std::pair<llvm::StringRef, llvm::StringRef>(
            "die", "testing the task: the worker died: killed by SIGKILL"),
        {"none", "expected 1 to 64 dummies"}}) {
    ASSERT_EQ(open(("--strength=" + how + " accepted").str()), "");
    auto told = device->testStrength(strength);
    ASSERT_FALSE(bool(told));
    std::string error = llvm::toString(told.takeError());
    EXPECT_TRUE(contains(error, why)) << error;
    EXPECT_TRUE(contains(error, "repeated on a healthy worker")) << error;
    // It is not the candidate's.
    EXPECT_EQ(evaluate(), "accepted: scripted accepted");
  }
}
