// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Several devices as one: the texts that name them, and a pool of devices that
// play by a script while many threads ask. What real workers make of it is in
// the lit tests of test/Devices.
//
//===----------------------------------------------------------------------===//

#include "DevicePool.h"
#include "DeviceSpec.h"
#include "DeviceTestUtils.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

#include <atomic>
#include <functional>
#include <thread>

using namespace fsr;
using namespace fsr::test;

namespace {

std::string split(llvm::StringRef spec) {
  auto devices = splitDeviceSpec(spec);
  if (!devices)
    return "error: " + llvm::toString(devices.takeError());
  return llvm::join(*devices, "|");
}

/// Its answer names it, and counts what it was asked.
class Scripted final : public Device {
public:
  explicit Scripted(llvm::StringRef name) {
    description.name = "card";
    description.chip = "sm_90";
    answer = name.str();
  }
  llvm::Expected<DeviceDescription> describe() override { return description; }
  llvm::Error probe() override {
    ++probes;
    return isSick ? makeError(ErrorKind::Unavailable, answer + " is sick")
                  : llvm::Error::success();
  }
  llvm::Expected<EvaluateResult>
  evaluate(const EvaluateRequest &request) override {
    EXPECT_EQ(++inside, 1u) << "two requests on one device";
    ++asked;
    if (meanwhile)
      meanwhile();
    --inside;
    if (failure)
      return makeError(*failure, answer + " failed");
    EvaluateResult result;
    result.message = answer + " " + request.candidateImage;
    return result;
  }
  llvm::Expected<std::vector<DummyResult>>
  testStrength(const StrengthRequest &) override {
    if (failure)
      return makeError(*failure, answer + " failed");
    return std::vector<DummyResult>(1);
  }

  DeviceDescription description;
  std::string answer;
  std::atomic<unsigned> inside{0}, asked{0}, probes{0};
  std::atomic<bool> isSick{false};
  std::optional<ErrorKind> failure;
  std::function<void()> meanwhile;
};

struct Pool : testing::Test {
  /// The error of making one, or "".
  std::string make(
      size_t count, llvm::function_ref<void(Scripted &, size_t)> edit =
                        [](Scripted &, size_t) {}) {
    std::vector<DevicePool::Opened> opened;
    devices.clear();
    for (size_t i = 0; i < count; ++i) {
      std::string name(1, char('a' + i));
      auto device = std::make_unique<Scripted>(name);
      edit(*device, i);
      devices.push_back(device.get());
      opened.push_back({name, std::move(device)});
    }
    auto made = DevicePool::create(std::move(opened), {});
    if (!made)
      return llvm::toString(made.takeError());
    pool = std::move(*made);
    return "";
  }
  std::string ask(const llvm::Twine &candidate = "x") {
    EvaluateRequest request;
    request.candidateImage = candidate.str();
    auto result = pool->evaluate(request);
    return result ? result->message
                  : "error: " + llvm::toString(result.takeError());
  }

  std::vector<Scripted *> devices; ///< Those given up are gone.
  std::unique_ptr<Device> pool;
};

} // namespace

TEST(DeviceSpec, IsTakenApartAtItsCommas) {
  EXPECT_EQ(split("auto"), "auto");
  EXPECT_EQ(split("cuda"), "cuda:0");
  EXPECT_EQ(split("cuda:0+2+1"), "cuda:0|cuda:2|cuda:1");
  EXPECT_EQ(split("cuda:1, virtual:sm_80,virtual"),
            "cuda:1|virtual:sm_80|virtual");
  EXPECT_EQ(split("cuda:0,exec:ssh gpu7 fsr-worker device"),
            "cuda:0|exec:ssh gpu7 fsr-worker device");
  EXPECT_EQ(split("exec:ssh gpu7 fsr-worker device,"
                  "exec:ssh gpu8 fsr-worker device,cuda:0+1"),
            "exec:ssh gpu7 fsr-worker device|exec:ssh gpu8 fsr-worker device|"
            "cuda:0|cuda:1");
}

TEST(DeviceSpec, AQuotedCommaIsOfTheCommand) {
  EXPECT_EQ(split("exec:ssh -o \"Ciphers=a,b\" gpu7 w,cuda"),
            "exec:ssh -o \"Ciphers=a,b\" gpu7 w|cuda:0");
  EXPECT_EQ(split("exec:run 'a,\\',virtual"), "exec:run 'a,\\'|virtual");
  EXPECT_EQ(split("exec:run a\\,b \"c\\\",d\",virtual"),
            "exec:run a\\,b \"c\\\",d\"|virtual");
  // An open quote is the command's error, not another device.
  EXPECT_EQ(split("exec:run 'a,cuda"), "exec:run 'a,cuda");
}

TEST(DeviceSpec, WhatCannotBeMeantIsRefused) {
  EXPECT_EQ(split("exec:srun --gres=gpu:1,shard:2 fsr-worker device"),
            "error: unknown device 'shard:2 fsr-worker device' in 'exec:srun "
            "--gres=gpu:1,shard:2 fsr-worker device'; known: cuda, cuda:N, "
            "cuda:N+M, virtual, virtual:CHIP, exec:COMMAND, and several of "
            "them with commas between; a comma of a command stands in quotes");
  EXPECT_EQ(split("cuda:0+x"), "error: device 'cuda:0+x': got 'x', wanted the "
                               "number of a GPU");
  EXPECT_EQ(split("cuda,cuda:1+0"),
            "error: device 'cuda,cuda:1+0' names cuda:0 twice: kernels that "
            "are timed on one GPU at once disturb each other");
  for (const char *bad : {"", ",", "cuda:0,", "cuda:0+", "virtual,1"})
    EXPECT_TRUE(llvm::StringRef(split(bad)).starts_with("error: ")) << bad;
  std::string many = "cuda:0";
  for (unsigned i = 1; i <= 256; ++i)
    many += "+" + std::to_string(i);
  EXPECT_EQ(split(many), "error: device: more than 256 are named");
}

TEST_F(Pool, AsksOneOfThemAtATimeAndAllOfThemAtOnce) {
  // Every device waits until all are in a request.
  constexpr unsigned count = 4, requests = 40;
  std::atomic<unsigned> waiting{0};
  auto meet = [&] {
    ++waiting;
    for (int i = 0; i < 10000 && waiting < count; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  ASSERT_EQ(
      make(count, [&](Scripted &device, size_t) { device.meanwhile = meet; }),
      "");
  EXPECT_EQ(pool->slots(), count);
  std::vector<std::string> answers(requests);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < requests; ++i)
    threads.emplace_back([&, i] { answers[i] = ask(llvm::Twine(i)); });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_GE(waiting, count);
  unsigned asked = 0;
  for (Scripted *device : devices) {
    EXPECT_GT(device->asked, 0u);
    asked += device->asked;
  }
  EXPECT_EQ(asked, requests);
  for (unsigned i = 0; i < requests; ++i)
    EXPECT_EQ(llvm::StringRef(answers[i]).split(' ').second, std::to_string(i));
  EXPECT_TRUE(pool->takeRemarks().empty());
}

TEST_F(Pool, ASickDeviceIsGivenUpAndItsRequestServedElsewhere) {
  ASSERT_EQ(make(3,
                 [](Scripted &device, size_t i) {
                   if (i == 2)
                     return;
                   device.failure = ErrorKind::Unavailable;
                   device.isSick = true;
                 }),
            "");
  EXPECT_EQ(ask(), "c x");
  EXPECT_EQ(pool->slots(), 1u);
  std::vector<std::string> remarks = pool->takeRemarks();
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_EQ(remarks[0], "device 'a' is given up, 2 devices left: a failed; "
                        "then: a is sick");
  EXPECT_EQ(remarks[1], "device 'b' is given up, 1 device left: b failed; "
                        "then: b is sick");
  EXPECT_EQ(ask("y"), "c y");
  EXPECT_TRUE(pool->takeRemarks().empty());
}

TEST_F(Pool, OnlyWhereNoneIsLeftIsItAnError) {
  ASSERT_EQ(make(2,
                 [](Scripted &device, size_t) {
                   device.failure = ErrorKind::Unavailable;
                   device.isSick = true;
                 }),
            "");
  const std::string none =
      "no device is left of 2: 'a': a failed; then: a is sick; 'b': b "
      "failed; then: b is sick";
  EXPECT_EQ(ask(), "error: " + none);
  EXPECT_EQ(ask(), "error: " + none);
  EXPECT_EQ(llvm::toString(pool->probe()), none);
  EXPECT_EQ(llvm::toString(pool->testStrength({}).takeError()), none);
  EXPECT_EQ(pool->slots(), 1u);
}

TEST_F(Pool, AThreadThatWaitsForTheLastOneHearsThatItIsGone) {
  std::atomic<unsigned> inside{0};
  ASSERT_EQ(make(1, [](Scripted &, size_t) {}), "");
  devices[0]->isSick = true;
  devices[0]->failure = ErrorKind::TimedOut;
  devices[0]->meanwhile = [&] {
    ++inside;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  };
  std::string first;
  std::thread other([&] { first = ask(); });
  while (!inside)
    std::this_thread::yield();
  EXPECT_TRUE(llvm::StringRef(ask()).starts_with("error: no device is left"));
  other.join();
  EXPECT_TRUE(llvm::StringRef(first).starts_with("error: no device is left"));
  EXPECT_EQ(inside, 1u);
}

TEST_F(Pool, WhatFailsOnTwoHealthyDevicesFails) {
  ASSERT_EQ(make(3, [](Scripted &device,
                       size_t) { device.failure = ErrorKind::TimedOut; }),
            "");
  auto result = pool->evaluate({});
  ASSERT_FALSE(bool(result));
  llvm::Error error = result.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::TimedOut);
  EXPECT_EQ(llvm::toString(std::move(error)),
            "device 'a': a failed; then device 'b': b failed");
  EXPECT_EQ(devices[2]->asked, 0u);
  EXPECT_EQ(pool->slots(), 3u);
  EXPECT_TRUE(pool->takeRemarks().empty());
  // What another could not do either is not tried there.
  for (Scripted *device : devices)
    device->failure = ErrorKind::Unsupported;
  EXPECT_EQ(ask(), "error: a failed");
}

TEST_F(Pool, AnErrorTellsOfThoseGivenUpAsWell) {
  ASSERT_EQ(make(2,
                 [](Scripted &device, size_t i) {
                   device.failure =
                       i ? ErrorKind::Corrupt : ErrorKind::Unavailable;
                   device.isSick = i == 0;
                 }),
            "");
  auto result = pool->evaluate({});
  ASSERT_FALSE(bool(result));
  llvm::Error error = result.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::Corrupt);
  EXPECT_EQ(llvm::toString(std::move(error)),
            "device 'b': b failed; given up before: 'a': a failed; then: a is "
            "sick");
}

TEST_F(Pool, FailsOnceAndIsServedByTheNext) {
  ASSERT_EQ(make(2), "");
  devices[0]->failure = ErrorKind::Corrupt;
  EXPECT_EQ(ask(), "b x");
  EXPECT_EQ(devices[0]->probes, 1u);
  auto told = pool->testStrength({});
  EXPECT_TRUE(bool(told));
  devices[0]->failure.reset();
  EXPECT_EQ(ask(), "a x");
}

TEST_F(Pool, ProbesAllAndKeepsTheHealthy) {
  ASSERT_EQ(make(3), "");
  devices[1]->isSick = true;
  EXPECT_EQ(llvm::toString(pool->probe()), "");
  EXPECT_EQ(pool->slots(), 2u);
  EXPECT_EQ(devices[0]->probes, 1u);
  EXPECT_EQ(devices[2]->probes, 1u);
  EXPECT_EQ(pool->takeRemarks().size(), 1u);
}

TEST_F(Pool, AllAreOfOneKindAndNoneTwice) {
  EXPECT_EQ(make(2,
                 [](Scripted &device, size_t i) {
                   if (i)
                     device.description.name = "better card";
                 }),
            "device 'a' is a card (sm_90), 'b' a better card (sm_90): the "
            "devices of one search must be alike, since times of two kinds say "
            "nothing of each other");
  std::string error = make(3, [](Scripted &device, size_t i) {
    device.description.chip = i == 2 ? "sm_80" : "sm_90";
  });
  EXPECT_TRUE(llvm::StringRef(error).starts_with(
      "device 'a' is a card (sm_90), 'c' a card (sm_80): "))
      << error;
  EXPECT_EQ(make(2, [](Scripted &device,
                       size_t) { device.description.uuid = "00ff"; }),
            "device 'a' and 'b' are one GPU, UUID 00ff: kernels that are timed "
            "on it at once disturb each other");
  EXPECT_EQ(make(2,
                 [](Scripted &device, size_t i) {
                   device.description.uuid = i ? "00ff" : "00fe";
                   device.description.memoryBytes = i ? 10 : 20;
                 }),
            "");
  EXPECT_EQ(pool->describe()->memoryBytes, 10);
}
