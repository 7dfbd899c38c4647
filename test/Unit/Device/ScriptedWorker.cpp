// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A device worker with no device, for tests: it speaks the protocol and answers
// evaluate requests as its command line says. One action a request, in order;
// the last repeats.
//
//   fsr-scripted-worker [options] [ACTION…] [--then ACTION…]…
//
// With --lives=FILE each start of the program adds a byte to FILE and plays the
// list of its turn (lists are split by --then; the last repeats), so that a
// test says what a restarted worker does. Its evidence is of level `none`
// always: nothing that it says was measured.
//
//   --verdict=V     V, or `hash` (by the candidate), where no action is given
//   --chip=sm_90    of the description
//   --device-name=N of the description
//   --hello=N|die|die-once|hang|garbage|error   protocol version, or a fault
//                   instead (die-once: in its first life only)
//   --probe=ok|fail|die                what a probe gives
//   --strength=ok|weak|none|die        what a test of the task gives
//   --die-in-message  the action `half` always
//   --log=FILE      appends each operation received, one a line
//
// Actions: a verdict's name · die · die-original · die-silent · hang ·
// hang-original · silent · half · garbage · long · blob · unknown-event ·
// bad-deadline · bad-result · no-measurement · slower-accepted · failed-check
// · boasting (a ratio that its samples do not give) · lost
// (an error with a lost context) · last=V (then ends with status 3)
// · linger=V (the same, but only when the next request is there) · error=KIND ·
// random=V (a thread kills the process within 4 ms of each start of a request;
// V if it lives) · phases=V (a few phases, then V)
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Statistics.h"
#include "fsr/Device/Protocol.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Hash.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <deque>
#include <fcntl.h>
#include <random>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace fsr;
using llvm::json::Object;

namespace {

struct Script {
  std::string verdict = "accepted", hello = "2", probe = "ok", strength = "ok";
  std::string chip = "sm_90", deviceName = "scripted";
  std::string log;
  std::vector<std::string> actions;
};

[[noreturn]] void usage(llvm::StringRef what) {
  llvm::errs() << "fsr-scripted-worker: " << what << '\n';
  _exit(2);
}

[[noreturn]] void die() {
  raise(SIGKILL);
  _exit(9);
}

[[noreturn]] void sleepForEver() {
  while (true)
    pause();
}

void sendFrame(llvm::json::Object header) {
  Frame frame;
  frame.header = std::move(header);
  if (llvm::Error error = writeFrame(STDOUT_FILENO, frame)) {
    llvm::consumeError(std::move(error));
    _exit(1);
  }
}

void sendBytes(llvm::StringRef bytes) {
  if (write(STDOUT_FILENO, bytes.data(), bytes.size()) < 0)
    _exit(1);
}

void started(llvm::StringRef phase, int64_t deadlineMs = 60000) {
  sendFrame(Object{
      {"event", "started"}, {"phase", phase}, {"deadline_ms", deadlineMs}});
}

void log(const Script &script, llvm::StringRef line) {
  if (script.log.empty())
    return;
  int fd = open(script.log.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644);
  std::string text = line.str() + "\n";
  if (fd < 0 || write(fd, text.data(), text.size()) < 0)
    usage("cannot write " + script.log);
  close(fd);
}

/// Which start of the program this is, from 0.
size_t countLife(const std::string &path) {
  int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644);
  struct stat info{};
  if (fd < 0 || write(fd, "+", 1) != 1 || fstat(fd, &info) != 0)
    usage("cannot write " + path);
  close(fd);
  return size_t(info.st_size) - 1;
}

/// Times that depend on the candidate's bytes only.
Measurement measurementFor(const Script &script, uint64_t digest,
                           Verdict verdict) {
  Measurement result;
  result.device = script.deviceName;
  result.driver = "0.0";
  double factor = verdict == Verdict::Accepted
                      ? 1.1 + double(digest % 1000) / 500
                      : 0.5 + double(digest % 400) / 1000;
  for (int i = 0; i < 16; ++i) {
    double wobble = 1 + double((digest >> (i % 8)) % 7) / 10000;
    result.originalUs.push_back(100 * wobble);
    result.candidateUs.push_back(100 / factor);
  }
  RatioInterval ratio = pairedRatio(result.originalUs, result.candidateUs);
  result.originalMedianUs = median(result.originalUs);
  result.candidateMedianUs = median(result.candidateUs);
  result.speedup = ratio.ratio;
  result.speedupLow = ratio.low;
  result.speedupHigh = ratio.high;
  result.noiseFloor = 0.002;
  result.smClockMhz = 1980;
  return result;
}

bool hasMeasurement(Verdict verdict) {
  return verdict == Verdict::Accepted || verdict == Verdict::NotFaster ||
         verdict == Verdict::Undecided;
}

EvaluateResult resultFor(const Script &script, llvm::StringRef name,
                         const WireEvaluate &request) {
  uint64_t digest = 0;
  llvm::StringRef(request.candidateHash)
      .take_front(16)
      .getAsInteger(16, digest);
  std::optional<Verdict> verdict = parseVerdict(name);
  if (name == "hash") {
    constexpr Verdict choices[] = {Verdict::Accepted, Verdict::NotFaster,
                                   Verdict::Mismatch, Verdict::Accepted};
    verdict = choices[digest % 4];
  }
  if (!verdict)
    usage("no verdict is called '" + name.str() + "'");
  EvaluateResult result;
  result.verdict = *verdict;
  result.message = "scripted " + nameOf(*verdict).str();
  result.evidence.device = script.deviceName;
  result.evidence.driver = "0.0";
  Check check;
  check.name = "scripted";
  check.passed = hasMeasurement(*verdict);
  check.rule = "what the command line says";
  result.evidence.checks.push_back(check);
  if (request.options.measure && hasMeasurement(*verdict))
    result.measurement = measurementFor(script, digest, *verdict);
  return result;
}

void sendResult(const EvaluateResult &result) {
  sendFrame(std::move(*toJSON(result).getAsObject()));
}

/// True where the next request must be met with death.
bool perform(const Script &script, llvm::StringRef action,
             const WireEvaluate &request) {
  auto [verb, argument] = action.split('=');
  auto verdict = [&](llvm::StringRef name) {
    return resultFor(script, name, request);
  };
  if (verb == "die") {
    started("candidate");
    die();
  } else if (verb == "die-original") {
    started("original reference");
    die();
  } else if (verb == "die-silent") {
    die();
  } else if (verb == "hang") {
    started("candidate", 200);
    sleepForEver();
  } else if (verb == "hang-original") {
    started("original reference", 200);
    sleepForEver();
  } else if (verb == "silent") {
    sleepForEver();
  } else if (verb == "half") {
    started("candidate");
    sendBytes(llvm::StringRef("\x40\0\0\0\0\0\0\0\0\0\0\0{\"event\":", 21));
    die();
  } else if (verb == "garbage") {
    started("candidate");
    sendBytes("this is no frame, but a line that a library printed\n");
    sleepForEver();
  } else if (verb == "long") {
    started("candidate");
    sendBytes(llvm::StringRef("\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 12));
    sleepForEver();
  } else if (verb == "blob") {
    started("candidate");
    sendBytes(
        llvm::StringRef("\2\0\0\0\xff\xff\xff\xff\xff\xff\xff\x7f{}", 14));
    sleepForEver();
  } else if (verb == "unknown-event") {
    sendFrame(Object{{"event", "surprise"}});
  } else if (verb == "bad-deadline") {
    started("candidate", int64_t(1) << 60);
    sendResult(verdict("accepted"));
  } else if (verb == "bad-result") {
    started("candidate");
    EvaluateResult result = verdict("accepted");
    if (result.measurement)
      result.measurement->candidateUs.pop_back();
    sendResult(result);
  } else if (verb == "slower-accepted" || verb == "failed-check" ||
             verb == "boasting") {
    started("candidate");
    EvaluateResult result = verdict("accepted");
    if (verb == "failed-check")
      result.evidence.checks.front().passed = false;
    else if (verb == "slower-accepted")
      std::swap(result.measurement->originalUs,
                result.measurement->candidateUs);
    else
      result.measurement->speedup = result.measurement->speedupHigh = 1e300;
    sendResult(result);
  } else if (verb == "no-measurement") {
    started("candidate");
    EvaluateResult result = verdict("accepted");
    result.measurement.reset();
    sendResult(result);
  } else if (verb == "error") {
    sendFrame(Object{{"event", "error"},
                     {"kind", argument},
                     {"message", "scripted \x1b[31m error"}});
  } else if (verb == "last") {
    started("candidate");
    sendResult(verdict(argument));
    _exit(3);
  } else if (verb == "lost") {
    started("candidate");
    sendFrame(Object{{"event", "error"},
                     {"kind", "unavailable"},
                     {"message", "scripted loss"},
                     {"context_lost", true}});
    _exit(3);
  } else if (verb == "linger") {
    started("candidate");
    sendResult(verdict(argument));
    return true;
  } else if (verb == "random") {
    std::random_device entropy;
    std::thread([pause = entropy() % 4000] {
      std::this_thread::sleep_for(std::chrono::microseconds(pause));
      die();
    }).detach();
    for (int i = 0; i < 8; ++i)
      started("candidate");
    sendResult(verdict(argument));
  } else if (verb == "phases") {
    for (llvm::StringRef phase :
         {"original reference", "load", "candidate quick", "candidate full"})
      started(phase);
    sendResult(verdict(argument));
  } else {
    started("candidate");
    sendResult(verdict(action));
  }
  return false;
}

void hello(const Script &script) {
  if (script.hello == "die")
    _exit(1);
  if (script.hello == "hang")
    sleepForEver();
  if (script.hello == "garbage") {
    sendBytes("Welcome to gpu7. Unauthorised use is forbidden.\n");
    sleepForEver();
  }
  if (script.hello == "error") {
    sendFrame(Object{{"event", "error"},
                     {"kind", "unavailable"},
                     {"message", "no CUDA driver"}});
    _exit(1);
  }
  int64_t version = 0;
  if (llvm::StringRef(script.hello).getAsInteger(10, version))
    usage("no such --hello: " + script.hello);
  DeviceDescription description;
  description.name = script.deviceName;
  description.driver = "0.0";
  description.chip = script.chip;
  description.multiprocessors = 132;
  description.coresPerMultiprocessor = 128;
  description.clockKhz = 1980000;
  description.memoryClockKhz = 3201000;
  description.memoryBusBits = 6144;
  description.l2Bytes = 60 << 20;
  description.memoryBytes = int64_t(1) << 36;
  description.sharedBytesPerMultiprocessor = 228 << 10;
  description.registersPerMultiprocessor = 65536;
  description.threadsPerMultiprocessor = 2048;
  description.limits.sharedBytesPerBlock = 227 << 10;
  sendFrame(Object{{"event", "hello"},
                   {"protocol", version},
                   {"description", toJSON(description)}});
}

int serve(const Script &script) {
  size_t requests = 0;
  bool doomed = false;
  std::deque<std::pair<std::string, uint64_t>> images;
  while (true) {
    llvm::Expected<std::optional<Frame>> frame = readFrame(STDIN_FILENO);
    if (!frame)
      usage(llvm::toString(frame.takeError()));
    if (!*frame)
      return 0;
    if (doomed)
      return 3;
    llvm::StringRef op = (*frame)->header.getString("op").value_or("");
    log(script, op);
    if (op == "hello") {
      hello(script);
    } else if (op == "probe") {
      if (script.probe == "die")
        die();
      if (script.probe == "ok")
        sendFrame(Object{{"event", "done"}});
      else
        sendFrame(Object{{"event", "error"},
                         {"kind", "unavailable"},
                         {"message", "the probe read back other bytes"}});
    } else if (op == "image") {
      // Keeps no more than the protocol demands.
      images.emplace_back(sha256((*frame)->blob), (*frame)->blob.size());
      auto bytes = [&] {
        uint64_t sum = 0;
        for (const auto &image : images)
          sum += image.second;
        return sum;
      };
      while (images.size() > 2 &&
             (images.size() > 8 || bytes() > uint64_t(64) << 20))
        images.pop_front();
      sendFrame(Object{{"event", "done"}});
    } else if (op == "evaluate") {
      WireEvaluate request;
      llvm::json::Path::Root root("evaluate");
      llvm::json::Value json(llvm::json::Object((*frame)->header));
      if (!fromJSON(json, request, root))
        usage(llvm::toString(root.getError()));
      for (const std::string &hash :
           {request.referenceHash, request.candidateHash})
        if (llvm::none_of(images, [&](auto &i) { return i.first == hash; }))
          usage("no image " + hash);
      std::string action = script.verdict;
      if (!script.actions.empty())
        action = script.actions[std::min(requests, script.actions.size() - 1)];
      ++requests;
      doomed = perform(script, action, request);
    } else if (op == "strength") {
      WireStrength request;
      llvm::json::Path::Root root("strength");
      llvm::json::Value json(llvm::json::Object((*frame)->header));
      if (!fromJSON(json, request, root))
        usage(llvm::toString(root.getError()));
      if (llvm::none_of(images, [&](auto &i) {
            return i.first == request.referenceHash;
          }))
        usage("no image " + request.referenceHash);
      if (script.strength == "die")
        die();
      started("original dummy");
      WireDummies told;
      for (llvm::StringRef name : {"zeros", "half-done"}) {
        DummyResult &dummy = told.dummies.emplace_back();
        dummy.name = name.str();
        dummy.inputs = "scripted";
      }
      if (script.strength == "weak")
        told.dummies[0].outcome = DummyResult::Outcome::Passed;
      if (script.strength == "none")
        told.dummies.clear();
      sendFrame(std::move(*toJSON(told).getAsObject()));
    } else {
      usage("unknown operation '" + op.str() + "'");
    }
  }
}

} // namespace

int main(int argc, char **argv) {
  Script script;
  std::string lives;
  std::vector<std::vector<std::string>> lists(1);
  const std::pair<llvm::StringRef, std::string *> options[] = {
      {"--verdict=", &script.verdict},
      {"--chip=", &script.chip},
      {"--device-name=", &script.deviceName},
      {"--hello=", &script.hello},
      {"--probe=", &script.probe},
      {"--strength=", &script.strength},
      {"--log=", &script.log},
      {"--lives=", &lives}};
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef arg = argv[i];
    bool isOption = false;
    for (auto [prefix, value] : options)
      if (arg.starts_with(prefix)) {
        *value = arg.drop_front(prefix.size()).str();
        isOption = true;
      }
    if (isOption)
      continue;
    if (arg == "--die-in-message")
      script.verdict = "half";
    else if (arg == "--then")
      lists.emplace_back();
    else if (arg.starts_with("-"))
      usage("unknown option '" + arg.str() + "'");
    else
      lists.back().push_back(arg.str());
  }
  size_t life = lives.empty() ? 0 : countLife(lives);
  script.actions = lists[std::min(life, lists.size() - 1)];
  if (script.hello == "die-once")
    script.hello = life == 0 ? "die" : "2";
  return serve(script);
}
