// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The client and a worker that answers, hangs, dies and lies. Each test drives
// the real process machinery and the real worker on the virtual device;
// fsr-worker-fault, between the two, brings in what goes wrong.
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
#include <deque>
#include <thread>

using namespace fsr;
using namespace fsr::test;
using std::chrono::milliseconds;

namespace {

/// y = 2 * x by one warp. `parameters` come before those that it reads.
std::string loopPtx(llvm::StringRef name, bool isReference) {
  llvm::StringRef x = isReference ? ".param .u64 xb, .param .u64 x, "
                                    ".param .u64 xo, .param .u64 xs, "
                                    ".param .u64 xt, .param .u64 yb, "
                                    ".param .u64 y, .param .u64 yo, "
                                    ".param .u64 ys, .param .u64 yt"
                                  : ".param .u64 x, .param .u64 y";
  return (R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry )" +
          name + "(" + x + R"() {
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
  setp.lt.u32 %p1, %r1, 1024;
  @%p1 bra loop;
  ret;
}
)")
      .str();
}

/// One thread an element; `body` makes %f2 of %f1.
std::string candidatePtx(llvm::StringRef body) {
  return (R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry fast(.param .u64 x, .param .u64 y) {
  .reg .b32 %r<4>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mad.lo.u32 %r3, %r2, 128, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
)" + body +
          R"(
  st.global.f32 [%rd5], %f2;
  ret;
}
)")
      .str();
}

/// Twice the input, so accepted.
const std::string right = candidatePtx("  add.f32 %f2, %f1, %f1;");
/// The same by another way, which takes longer.
const std::string longer =
    candidatePtx("  mul.f32 %f3, %f1, 0f40800000;\n"
                 "  ld.volatile.global.f32 %f1, [%rd4];\n"
                 "  mul.f32 %f2, %f1, 0f40000000;");
const std::string wrong = candidatePtx("  mov.f32 %f2, %f1;");
const std::string trapping = candidatePtx("  add.f32 %f2, %f1, %f1;\n  trap;");

/// `image` with other bytes: a name for the same kernel.
std::string named(const std::string &image, const llvm::Twine &name) {
  return ("// " + name + "\n" + image).str();
}

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

bool contains(llvm::StringRef text, llvm::StringRef part) {
  return text.contains(part);
}

bool isMismatch(llvm::StringRef line) {
  return line.starts_with("mismatch: ") &&
         line.contains("y differs from the original");
}

bool isAccepted(llvm::StringRef line) {
  return line.starts_with("accepted: modelled, not measured: ");
}

class WorkerClient : public ::testing::Test {
protected:
  void SetUp() override {
    // As in a host that leaves the signal at its default: a write to a worker
    // that died must not end this process.
    signal(SIGPIPE, SIG_DFL);
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fsr-device", folder));
    timeouts.remoteHello = timeouts.probe = milliseconds(20000);
    task = smallTask();
    task.launch.grid = {1, 1, 1};
    task.launch.block = {32, 1, 1};
    request.task = &task;
    request.referenceImage = loopPtx("scale", /*isReference=*/true);
    request.candidateImage = right;
    request.plan = smallPlan();
    request.plan.launches[0].kernel = "fast";
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  /// Device options that put `faults` before the real worker.
  std::string command(llvm::StringRef faults) const {
    return std::string("exec:") + FSR_WORKER_FAULT +
           " --lives=" + folder.str().str() +
           "/lives --log=" + folder.str().str() + "/log " + faults.str() +
           " -- " + FSR_WORKER + " device --device=virtual";
  }
  /// The error of opening, or "".
  std::string open(llvm::StringRef faults) { return openSpec(command(faults)); }
  std::string openSpec(llvm::StringRef spec) {
    auto opened = openDevice(spec, timeouts);
    if (!opened)
      return llvm::toString(opened.takeError());
    device = std::move(*opened);
    return "";
  }
  std::string evaluate() { return lineOf(device->evaluate(request)); }
  std::string evaluate(const std::string &candidate) {
    request.candidateImage = candidate;
    return evaluate();
  }
  std::string read(llvm::StringRef name) {
    auto text = readFile((folder + "/" + name).str());
    if (!text)
      return "error: " + llvm::toString(text.takeError());
    return *text;
  }
  /// What the worker was asked, each with its first word.
  std::string operations() {
    std::string log = read("log"), result;
    llvm::SmallVector<llvm::StringRef> lines;
    llvm::StringRef(log).split(lines, '\n', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef line : lines)
      result += line.split(' ').first.str() + "\n";
    return result;
  }
  size_t starts() { return read("lives").size(); }

  llvm::SmallString<128> folder;
  DeviceTimeouts timeouts;
  KernelTask task;
  EvaluateRequest request;
  std::unique_ptr<Device> device;
};

} // namespace

TEST_F(WorkerClient, AnswersAndSendsImagesOnce) {
  ASSERT_EQ(open("none"), "");
  auto description = device->describe();
  ASSERT_TRUE(bool(description));
  EXPECT_EQ(description->chip, "sm_90");
  for (int i = 0; i < 2; ++i) {
    std::string line = evaluate();
    EXPECT_TRUE(isAccepted(line)) << line;
  }
  EXPECT_EQ(operations(), "hello\nimage\nimage\nevaluate\nevaluate\n");
  request.plan.launches[0].shape.grid = {1, 1, 1};
  request.plan.launches[0].shape.block = {32, 1, 1};
  std::string line = evaluate(loopPtx("fast", /*isReference=*/false));
  EXPECT_TRUE(llvm::StringRef(line).starts_with("not-faster: ")) << line;
  EXPECT_EQ(operations(),
            "hello\nimage\nimage\nevaluate\nevaluate\nimage\nevaluate\n");
  EXPECT_EQ(starts(), 1u);
}

TEST_F(WorkerClient, SendsPtxThatIsNoImage) {
  ASSERT_EQ(open("none"), "");
  request.referencePtx = "PTX of the original";
  request.candidatePtx = request.candidateImage;
  EXPECT_TRUE(isAccepted(evaluate()));
  EXPECT_TRUE(isAccepted(evaluate()));
  EXPECT_EQ(operations(), "hello\nimage\nimage\nimage\nevaluate\nevaluate\n");
  // Too large is as good as none.
  request.candidatePtx.assign((size_t(8) << 20) + 1, ' ');
  EXPECT_TRUE(isAccepted(evaluate()));
  EXPECT_EQ(operations(),
            "hello\nimage\nimage\nimage\nevaluate\nevaluate\nevaluate\n");
}

TEST_F(WorkerClient, ImagesThatAWorkerMayHaveDroppedAreSentAgain) {
  ASSERT_EQ(open("none"), "");
  request.options.measure = false; // The many are to be quick.
  for (int i = 0; i < 20; ++i) {
    std::string line = evaluate(named(wrong, llvm::Twine(i)));
    EXPECT_TRUE(isMismatch(line)) << line;
  }
  EXPECT_TRUE(isMismatch(evaluate(named(wrong, "0"))));
  // Two large ones push out all but themselves.
  request.referenceImage += std::string(size_t(40) << 20, '\n');
  for (const char *name : {"a", "b"}) {
    std::string large = named(wrong, name) + std::string(40u << 20, '\n');
    EXPECT_TRUE(isMismatch(evaluate(large)));
  }
  EXPECT_EQ(starts(), 1u);

  // No request names an image that a worker of the protocol may have dropped.
  std::deque<std::pair<std::string, uint64_t>> kept;
  size_t evaluated = 0, sent = 0;
  std::string log = read("log");
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(log).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef line : lines) {
    llvm::SmallVector<llvm::StringRef> words;
    line.split(words, ' ');
    if (words[0] == "image") {
      ++sent;
      uint64_t size = 0, bytes = 0;
      ASSERT_FALSE(words[2].getAsInteger(10, size));
      kept.emplace_back(words[1].str(), size);
      for (const auto &image : kept)
        bytes += image.second;
      while (kept.size() > 2 &&
             (kept.size() > 8 || bytes > uint64_t(64) << 20)) {
        bytes -= kept.front().second;
        kept.pop_front();
      }
    } else if (words[0] == "evaluate") {
      ++evaluated;
      for (llvm::StringRef hash : {words[1], words[2]})
        EXPECT_TRUE(
            llvm::any_of(kept, [&](auto &one) { return one.first == hash; }))
            << line.str() << " in request " << evaluated;
    }
  }
  EXPECT_EQ(evaluated, 23u);
  EXPECT_GT(sent, 24u);
}

TEST_F(WorkerClient, ALostContextCountsAsADeath) {
  ASSERT_EQ(open("'original-run:event=error;kind=unavailable;message=injected "
                 "loss;context_lost=true;send;exit=3' --then none"),
            "");
  std::string line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, ALostContextTwiceIsTheVerdict) {
  ASSERT_EQ(open("'original-run:event=error;kind=unavailable;message=injected "
                 "loss;context_lost=true;send;exit=3'"),
            "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "crashed: worker: injected loss in phase "
                             "'candidate-load'; repeated on a healthy worker: "
                             "the same"))
      << line;
}

// Another worker could not do it either, and would take as long to say so.
TEST_F(WorkerClient, WhatADeviceCannotDoIsNotRepeated) {
  ASSERT_EQ(open("'original-run:event=error;kind=unsupported;message=too large "
                 "for it;context_lost=true;send;exit=3' --then none"),
            "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "worker: too large for it")) << line;
  EXPECT_FALSE(contains(line, "repeated")) << line;
  EXPECT_EQ(starts(), 1u);
  line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
}

TEST_F(WorkerClient, MeasurementIsOfTheCandidate) {
  ASSERT_EQ(open("none"), "");
  auto first = device->evaluate(request), again = device->evaluate(request);
  request.candidateImage = longer;
  auto other = device->evaluate(request);
  ASSERT_TRUE(first && again && other);
  ASSERT_TRUE(first->measurement && again->measurement && other->measurement);
  EXPECT_GT(first->measurement->speedupLow, 1);
  EXPECT_EQ(first->measurement->speedup, again->measurement->speedup);
  EXPECT_NE(first->measurement->speedup, other->measurement->speedup);
  EXPECT_EQ(first->evidence.level, EvidenceLevel::Modelled);
}

TEST_F(WorkerClient, PhasesReplaceEachOther) {
  ASSERT_EQ(open("none"), "");
  std::string line = evaluate(wrong);
  EXPECT_TRUE(isMismatch(line)) << line;
}

TEST_F(WorkerClient, DeathIsRepeatedOnceOnAProbedWorker) {
  ASSERT_EQ(open("'candidate:send;die' --then none"), "");
  std::string line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(operations(), "hello\nimage\nimage\nevaluate\n"
                          "hello\nprobe\nimage\nimage\nevaluate\n");
}

TEST_F(WorkerClient, DeathTwiceIsTheVerdict) {
  ASSERT_EQ(
      open("'candidate:send;die' --then 'candidate:send;die' --then none"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "crashed: the worker died: killed by SIGKILL in "
                             "phase 'candidate-load'; repeated on a healthy "
                             "worker"))
      << line;
  EXPECT_EQ(starts(), 2u);
  // The next candidate gets a third worker.
  line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 3u);
}

TEST_F(WorkerClient, OverrunTwiceIsTheVerdict) {
  ASSERT_EQ(open("'candidate-run:deadline_ms=200;send;hang'"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "timed-out: passed its deadline in phase "
                             "'candidate-run'"))
      << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, OverrunOnceIsForgiven) {
  ASSERT_EQ(open("'candidate-run:deadline_ms=200;send;hang' --then none"), "");
  std::string line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, FailingOriginalIsAnError) {
  for (const char *fault : {"'original-run:send;die'",
                            "'original-run:deadline_ms=200;send;hang'"}) {
    ASSERT_EQ(open(fault), "");
    std::string line = evaluate();
    EXPECT_TRUE(contains(line, "error unavailable: ")) << line;
    EXPECT_TRUE(contains(line, "in phase 'original-run'")) << line;
  }
}

TEST_F(WorkerClient, OneLossOfTheCandidateIsNotItsVerdict) {
  ASSERT_EQ(open("'candidate:send;die' --then 'original:send;die'"), "");
  EXPECT_TRUE(contains(evaluate(), "error unavailable: "));
}

TEST_F(WorkerClient, DeathBeforeAnyPhaseIsAnError) {
  ASSERT_EQ(open("evaluate:die"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "error unavailable: the worker died: killed by "
                             "SIGKILL before any phase"))
      << line;
}

TEST_F(WorkerClient, SilenceIsAnError) {
  timeouts.firstPhase = milliseconds(200);
  ASSERT_EQ(open("evaluate:hang"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "error unavailable: passed its deadline before "
                             "any phase"))
      << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, DeathInTheMiddleOfAFrameIsADeath) {
  ASSERT_EQ(open("original-run:half"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "crashed: the worker died: killed by SIGKILL in "
                             "phase 'candidate-load'"))
      << line;
}

TEST_F(WorkerClient, NonsenseIsAnError) {
  const std::pair<const char *, const char *> cases[] = {
      {"candidate:send;line", "frame"},
      {"result:bytes=0:ffffffff", "frame"},
      {"result:bytes=4:ffffffffffffff7f", "frame"},
      {"candidate:event=surprise", "got event 'surprise'"},
      {"candidate:deadline_ms=1152921504606846976", "deadline from 1 to"},
      {"result:measurement.candidate_us=[]",
       "expected as many as in original_us"},
      {"result:measurement=null", "accepted and has no measurement"},
      {"result:measurement.original_us=[0.001]", "samples say no gain"},
      {"result:evidence.checks.0.passed=false", "its check '"},
  };
  for (auto [fault, part] : cases) {
    ASSERT_EQ(open(std::string("'") + fault + "'"), "") << fault;
    std::string line = evaluate();
    EXPECT_TRUE(contains(line, "error corrupt: ") && contains(line, part))
        << fault << ": " << line;
  }
}

// Though the stream ends with it, as after a context that died.
TEST_F(WorkerClient, NonsenseAtTheEndOfAStreamIsNoDeath) {
  for (auto [fault, part] :
       {std::pair("result:measurement=null;pad=8000000;send;die",
                  "has no measurement"),
        {"candidate:event=surprise;pad=8000000;send;die",
         "got event 'surprise'"}}) {
    ASSERT_EQ(open(std::string("'") + fault + "'"), "") << fault;
    std::string line = evaluate();
    EXPECT_TRUE(contains(line, "error corrupt: ") && contains(line, part))
        << fault << ": " << line;
  }
}

TEST_F(WorkerClient, OnlyWhatWasMeasuredInFullIsAccepted) {
  request.options.measure = false;
  ASSERT_EQ(open("result:verdict=accepted"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "error corrupt: ") &&
              contains(line, "is accepted, and was not asked to be measured"))
      << line;
  request.options.measure = true;
  request.options.full = false;
  ASSERT_EQ(open("result:verdict=accepted"), "");
  line = evaluate();
  EXPECT_TRUE(contains(line, "error corrupt: ") &&
              contains(line, "is accepted after a quick look"))
      << line;
}

TEST_F(WorkerClient, AVirtualDeviceMeasuresNothing) {
  ASSERT_EQ(open("result:evidence.level=measured"), "");
  std::string line = evaluate(wrong);
  EXPECT_TRUE(contains(line, "error corrupt: ") &&
              contains(line, "virtual device"))
      << line;
}

TEST_F(WorkerClient, TheLimitOfTheWholeIsNotTheCandidates) {
  timeouts.evaluate = milliseconds(3000);
  ASSERT_EQ(open("'candidate-run:send;hang'"), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "error unavailable: passed the limit of the whole "
                             "request, 3 s, in phase 'candidate-run'"))
      << line;
}

TEST_F(WorkerClient, TimesOfPhasesAreKeptToABound) {
  ASSERT_EQ(open("candidate:flood=1000"), "");
  auto result = device->evaluate(request);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  llvm::StringRef before;
  for (const PhaseTime &time : result->phases) {
    EXPECT_NE(time.phase, before) << "two in a row";
    EXPECT_GT(time.milliseconds, 0);
    before = time.phase;
  }
  ASSERT_EQ(open("candidate:names=6000"), "");
  auto begin = std::chrono::steady_clock::now();
  result = device->evaluate(request);
  double all = std::chrono::duration<double, std::milli>(
                   std::chrono::steady_clock::now() - begin)
                   .count();
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ(result->phases.size(), 4096u);
  double sum = 0; // None is lost.
  for (const PhaseTime &time : result->phases)
    sum += time.milliseconds;
  EXPECT_LE(sum, all);
  EXPECT_GT(sum, all / 2);
}

TEST_F(WorkerClient, AWorkerThatBeginsForEverIsCutOff) {
  ASSERT_EQ(open("candidate:flood=500001 --then none"), "");
  std::string line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, RatiosAreThoseOfTheSamples) {
  ASSERT_EQ(
      open("'result:measurement.speedup=1e300;measurement.speedup_high=1e300'"),
      "");
  auto result = device->evaluate(request);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_LT(result->measurement->speedupHigh, 1000);
}

TEST_F(WorkerClient, NonsenseOnceIsForgiven) {
  ASSERT_EQ(open("'candidate:send;line' --then none"), "");
  std::string line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, ErrorsOfTheWorkerAreScrubbedAndKeepTheirKind) {
  ASSERT_EQ(open("'result:event=error;kind=unsupported;message=\"an injected "
                 "\\u001b[31m error\"' none"),
            "");
  EXPECT_EQ(evaluate(), "error unsupported: worker: an injected  [31m error");
  std::string line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 1u);
}

TEST_F(WorkerClient, AResultBeforeTheEndStands) {
  // The worker ends by itself: nothing heals its context.
  ASSERT_EQ(open("none"), "");
  std::string line = evaluate(trapping);
  EXPECT_TRUE(llvm::StringRef(line).starts_with("crashed: trap")) << line;
  line = evaluate(right);
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 2u);
  EXPECT_TRUE(contains(operations(), "hello\nprobe\n"));
}

TEST_F(WorkerClient, AWorkerThatReportedACrashIsNotUsedAgain) {
  // Though this one would go on.
  ASSERT_EQ(open("result:verdict=crashed none --then none"), "");
  std::string line = evaluate(wrong);
  EXPECT_TRUE(llvm::StringRef(line).starts_with("crashed: ")) << line;
  EXPECT_TRUE(isMismatch(evaluate(wrong)));
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, AConfirmationIsOfAFreshProcess) {
  ASSERT_EQ(open("none"), "");
  EXPECT_TRUE(isAccepted(evaluate()));
  request.options.confirm = true;
  EXPECT_TRUE(isAccepted(evaluate()));
  EXPECT_EQ(starts(), 2u);
  request.options.confirm = false;
  EXPECT_TRUE(isAccepted(evaluate()));
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, TheEndOfAWorkerDoesNotCountAgainstTheNextCandidate) {
  // It dies after it took the next request, and the next worker dies too, once.
  ASSERT_EQ(
      open("none evaluate:exit=3 --then 'candidate:send;die' --then none"), "");
  EXPECT_TRUE(isMismatch(evaluate(wrong)));
  std::string line = evaluate(right);
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 3u);
}

TEST_F(WorkerClient, TwoFailedProbesAreAnError) {
  ASSERT_EQ(open("'probe:event=error;kind=unavailable;message=the probe read "
                 "back other bytes' 'candidate:send;die'"),
            "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "error unavailable: no healthy worker after two "
                             "starts: worker: the probe read back other bytes"))
      << line;
  EXPECT_EQ(starts(), 3u);
  ASSERT_EQ(open("probe:die 'candidate:send;die'"), "");
  EXPECT_TRUE(contains(evaluate(), "error unavailable: no healthy worker"));
}

TEST_F(WorkerClient, AProbeIsForBeforeTheFirstRequest) {
  auto probe = [&](llvm::StringRef faults) {
    EXPECT_EQ(open(faults), "");
    return llvm::toString(device->probe());
  };
  EXPECT_EQ(probe("none"), "");
  std::string line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  for (const char *bad :
       {"probe:event=error;kind=unavailable;message=no", "probe:die"}) {
    std::string error = probe(bad);
    EXPECT_TRUE(contains(error, "no healthy worker after two starts")) << error;
  }
}

TEST_F(WorkerClient, KilledAtAnyMomentTheResultIsOneAndRight) {
  // Moments of twice the time that an undisturbed one takes on this machine.
  ASSERT_EQ(open("none"), "");
  auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(isMismatch(evaluate(wrong)));
  auto took = std::chrono::duration_cast<milliseconds>(
      std::chrono::steady_clock::now() - begin);
  ASSERT_EQ(open("evaluate:doom=" + std::to_string(2 * took.count() + 2)), "");
  unsigned whole = 0;
  for (int i = 0; i < 60; ++i) {
    std::string line = evaluate(named(wrong, llvm::Twine(i)));
    // Each loss by its phase; what the candidate is blamed for is in its own.
    llvm::SmallVector<llvm::StringRef> losses;
    llvm::StringRef story = line;
    bool crashed = story.consume_front("crashed: ");
    bool untouched = !crashed && story.consume_front(
                                     "error unavailable: on virtual sm_90: ");
    story.split(losses, "; repeated on a healthy worker: ");
    if (losses.size() == 2 && losses[1] == "the same")
      losses[1] = losses[0];
    auto isKill = [](llvm::StringRef loss) {
      return loss.consume_front("the worker died: killed by SIGKILL") &&
             (loss == " before any phase" || loss.starts_with(" in phase '"));
    };
    bool kills = losses.size() == 2 && llvm::all_of(losses, isKill);
    bool ofTheCandidate =
        kills && llvm::all_of(losses, [](llvm::StringRef loss) {
          return loss.contains("in phase 'candidate");
        });
    whole += isMismatch(line);
    EXPECT_TRUE(isMismatch(line) || (crashed && ofTheCandidate) ||
                (untouched && kills && !ofTheCandidate))
        << line;
  }
  EXPECT_GT(whole, 0u);
  EXPECT_GT(starts(), 2u);
}

TEST_F(WorkerClient, ManyThreadsOnAPoolWhoseWorkersAreKilled) {
  // Each of the first three workers dies in or after its first request.
  std::string one = command("'evaluate:doom=60' --then 'evaluate:doom=60' "
                            "--then 'evaluate:doom=60' --then none");
  ASSERT_EQ(openSpec(one + "," + one + "," + one), "");
  EXPECT_EQ(device->slots(), 3u);
  constexpr unsigned threads = 4, each = 6;
  std::vector<std::string> lines(threads * each);
  std::vector<std::thread> askers;
  for (unsigned t = 0; t < threads; ++t)
    askers.emplace_back([&, t] {
      for (unsigned i = t * each; i < (t + 1) * each; ++i) {
        EvaluateRequest mine = request;
        mine.candidateImage = named(wrong, llvm::Twine(i));
        mine.options.measure = false;
        lines[i] = lineOf(device->evaluate(mine));
      }
    });
  for (std::thread &asker : askers)
    asker.join();
  for (const std::string &line : lines)
    EXPECT_TRUE(isMismatch(line)) << line;
  EXPECT_EQ(device->slots(), 3u);
  EXPECT_TRUE(device->takeRemarks().empty());
  // Once, and once more for each that a kill cut off.
  size_t asked = 0, died = starts() - 3;
  std::string log = operations();
  for (size_t at = log.find("evaluate"); at != std::string::npos;
       at = log.find("evaluate", at + 1))
    ++asked;
  EXPECT_GE(asked, lines.size());
  EXPECT_LE(asked, lines.size() + 3);
  EXPECT_LE(died, 3u);
}

TEST_F(WorkerClient, HelloIsChecked) {
  std::string error = open("hello:protocol=1");
  EXPECT_TRUE(contains(error, "protocol version: got 1, wanted 2")) << error;
  error = openSpec(std::string("exec:") + FSR_WORKER +
                   " device --device=virtual:sm_1");
  EXPECT_TRUE(contains(error, "worker: no virtual device is a 'sm_1'"))
      << error;
  error = open("hello:exit=1");
  EXPECT_TRUE(contains(error, "did not say hello (exit status 1)")) << error;
  error = open("hello:line");
  EXPECT_TRUE(contains(error, "did not say hello")) << error;
  EXPECT_TRUE(contains(error, "its standard output begins with 'Welcome to "
                              "gpu7. Unauthorised use is forbidden."))
      << error;
  EXPECT_TRUE(contains(error, "', where nothing but the worker's frames may "
                              "be"))
      << error;
  for (const char *text : {"hi", "please wait, all GPUs are busy"}) {
    error = openSpec(std::string("exec:sh -c 'echo ") + text + "'");
    EXPECT_TRUE(contains(error, std::string("begins with '") + text + "', "))
        << error;
  }
  error = open("hello:description.chip=potato");
  EXPECT_TRUE(contains(error, "chip")) << error;
  timeouts.remoteHello = milliseconds(200);
  error = open("hello:hang");
  EXPECT_TRUE(contains(error, "deadline has passed")) << error;
}

TEST_F(WorkerClient, DeathBeforeItSpokeIsRepeatedOnce) {
  EXPECT_EQ(open("hello:exit=1 --then none"), "");
  std::string line = evaluate();
  EXPECT_TRUE(isAccepted(line)) << line;
  EXPECT_EQ(starts(), 2u);
}

TEST_F(WorkerClient, SpecsAreChecked) {
  EXPECT_EQ(openSpec("rocm:0"),
            "unknown device 'rocm:0'; known: cuda, cuda:N, cuda:N+M, virtual, "
            "virtual:CHIP, exec:COMMAND, and several of them with commas "
            "between");
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
                  "/args\nexec " + FSR_WORKER + " device --device=virtual\n")));
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
      worker, std::string("#!/bin/sh\nexec ") + FSR_WORKER_FAULT +
                  " hello:description.name=gpu$$ 'candidate:send;die' -- " +
                  FSR_WORKER + " device --device=virtual\n")));
  ASSERT_FALSE(llvm::sys::fs::setPermissions(worker, llvm::sys::fs::owner_all));
  ASSERT_EQ(openSpec("exec:" + worker), "");
  std::string line = evaluate();
  EXPECT_TRUE(contains(line, "the restarted worker is on another device"))
      << line;
}

TEST_F(WorkerClient, ImagesThatCannotTravelAreRefused) {
  ASSERT_EQ(open("none"), "");
  request.candidateImage.clear();
  EXPECT_TRUE(contains(evaluate(), "error bad-input: an image of 0 bytes"));
  request.candidateImage.assign((size_t(256) << 20) + 1, 'x');
  EXPECT_TRUE(contains(evaluate(), "error bad-input: an image of 268435457"));
}

TEST_F(WorkerClient, TestsATask) {
  StrengthRequest strength;
  strength.task = &task;
  strength.referenceImage = request.referenceImage;
  ASSERT_EQ(open("none"), "");
  auto told = device->testStrength(strength);
  ASSERT_TRUE(bool(told)) << llvm::toString(told.takeError());
  EXPECT_EQ(told->size(), 17u);
  for (const DummyResult &dummy : *told)
    EXPECT_TRUE(dummy.outcome == DummyResult::Outcome::Refused ||
                dummy.outcome == DummyResult::Outcome::NotApplicable)
        << dummy.name << ": " << nameOf(dummy.outcome).str();
  // The original's image is there now.
  EXPECT_TRUE(isAccepted(evaluate()));
  EXPECT_EQ(operations(), "hello\nimage\nstrength\nimage\nevaluate\n");
  strength.referenceImage = "";
  EXPECT_TRUE(
      contains(llvm::toString(device->testStrength(strength).takeError()),
               "an image of 0 bytes"));
  // What cannot be loaded is the tool's error, said once.
  strength.referenceImage = "no image";
  auto bad = device->testStrength(strength);
  ASSERT_FALSE(bool(bad));
  EXPECT_FALSE(contains(llvm::toString(bad.takeError()), "repeated"));
}

TEST_F(WorkerClient, AWorkerThatIsLostInATestIsAnErrorAfterTwo) {
  StrengthRequest strength;
  strength.task = &task;
  strength.referenceImage = request.referenceImage;
  for (auto [fault, why] :
       {std::pair<llvm::StringRef, llvm::StringRef>(
            "strength:die",
            "testing the task on virtual sm_90: the worker died: killed by "
            "SIGKILL in phase 'original-"),
        {"strength:dummies=[]", "expected 1 to 64 dummies"},
        {"strength:dummies.0.outcome=fine", "expected an outcome"}}) {
    ASSERT_EQ(open(fault), "");
    auto told = device->testStrength(strength);
    ASSERT_FALSE(bool(told));
    std::string error = llvm::toString(told.takeError());
    EXPECT_TRUE(contains(error, why)) << error;
    EXPECT_TRUE(contains(error, "repeated on a healthy worker")) << error;
  }
  ASSERT_EQ(open("strength:die --then none"), "");
  auto told = device->testStrength(strength);
  EXPECT_TRUE(bool(told)) << llvm::toString(told.takeError());
}
