// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Talks to one worker process and replaces it when it fails.
//
// What ended a worker decides what is made of it. A candidate that runs can
// only kill the worker or outlast a deadline; so either of these, twice on
// workers that had just passed a probe, is its verdict. Everything else (no
// answer before the first phase, the original failing, frames that do not
// parse) is the tool's fault, and an error once it happened twice.
//
//===----------------------------------------------------------------------===//

#include "WorkerClient.h"

#include "fsr/Core/Statistics.h"
#include "fsr/Device/Protocol.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Hash.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <deque>
#include <mutex>
#include <poll.h>
#include <sys/socket.h>

using namespace fsr;
using std::chrono::milliseconds;

namespace {

constexpr unsigned attempts = 2;

/// The images that a worker keeps are bounded, oldest first out. These are what
/// every worker keeps of the latest; the protocol says so.
constexpr size_t keptImages = 8;
constexpr uint64_t keptImageBytes = uint64_t(64) << 20;
/// Of a PTX that is sent beside an image.
constexpr size_t mostPtx = size_t(8) << 20;
/// Kept of one request; those beyond are added to the ones there are.
constexpr size_t mostPhaseTimes = 4096;

/// How one try of a request ended, other than by an answer.
struct Loss {
  enum Kind {
    Died,    ///< The stream ended.
    Overran, ///< The deadline of a phase passed.
    Expired, ///< The limit of the whole request passed; no phase was too long.
    Broke,   ///< It sent what the protocol does not allow.
  };
  Kind kind = Died;
  std::string phase; ///< The last that was started; empty before the first.
  std::string what;  ///< "killed by SIGKILL in phase 'quick'"

  /// The code of the candidate may have run.
  bool mayBeTheCandidate() const {
    return (kind == Died || kind == Overran) && !phase.empty() &&
           !isPhaseOfTheOriginal(phase);
  }
};

/// What one try gave: exactly one of the two.
struct Outcome {
  std::optional<EvaluateResult> result;
  std::optional<Loss> loss;
};

class WorkerClient final : public Device {
public:
  WorkerClient(std::vector<std::string> command, const DeviceTimeouts &timeouts)
      : command(std::move(command)), timeouts(timeouts) {}
  WorkerClient(const WorkerClient &) = delete;
  WorkerClient &operator=(const WorkerClient &) = delete;
  /// A worker that sees its input close ends by itself, wherever it is.
  ~WorkerClient() override {
    if (child)
      child->reap();
  }

  llvm::Error open();

  llvm::Expected<DeviceDescription> describe() override {
    std::lock_guard<std::mutex> lock(mutex);
    return *description;
  }
  llvm::Error probe() override;
  llvm::Expected<EvaluateResult>
  evaluate(const EvaluateRequest &request) override;
  llvm::Expected<std::vector<DummyResult>>
  testStrength(const StrengthRequest &request) override;

private:
  /// A new process that said hello.
  llvm::Error start();
  /// Asks the running worker to prove its health.
  llvm::Error proveHealth();
  /// A worker that can be trusted with the next request.
  llvm::Error makeReady();
  /// Ends the worker; the next request starts and probes another.
  std::string retire();
  /// What has arrived and is not read; waits for what tells a frame from a
  /// text. Not longer than `deadline`.
  std::string peek(Deadline deadline);
  /// True where the running worker has gone, or talks unasked.
  bool hasStirred() const;

  llvm::Error send(const Frame &frame, Deadline deadline);
  llvm::Expected<Frame> receive(Deadline deadline);
  /// Sends `frame` and waits for its "done".
  llvm::Error exchange(const Frame &frame, milliseconds time);
  llvm::Error sendImage(llvm::StringRef image, const std::string &hash);
  llvm::Error sendImages(const EvaluateRequest &request,
                         const WireEvaluate &wire);
  bool hasImage(const std::string &hash) const;

  /// Sends `request` and keeps the deadlines until its final event. `phase`
  /// becomes the last that was started.
  using OnStarted = llvm::function_ref<void(const llvm::json::Object &)>;
  llvm::Expected<Frame> converse(const Frame &request,
                                 llvm::StringRef finalEvent, std::string &phase,
                                 OnStarted onStarted = nullptr,
                                 std::vector<PhaseTime> *times = nullptr);
  /// Nothing where the worker was lost; `loss` says how.
  llvm::Expected<std::optional<std::vector<DummyResult>>>
  tryStrength(const StrengthRequest &request, const WireStrength &wire,
              std::string &loss);
  llvm::Expected<Outcome> tryOnce(const EvaluateRequest &request,
                                  const WireEvaluate &wire);
  llvm::Expected<EvaluateResult> readResult(const Frame &frame,
                                            const EvaluateOptions &options);
  Loss lossFrom(llvm::Error error, std::string phase);

  const std::vector<std::string> command;
  const DeviceTimeouts timeouts;
  std::mutex mutex; ///< One request at a time.
  std::unique_ptr<ChildProcess> child;
  std::optional<DeviceDescription> description;
  /// Hash and size of what this process of the worker keeps, oldest first.
  std::deque<std::pair<std::string, uint64_t>> imagesThere;
  bool probeFirst = false; ///< The last worker failed.
};

} // namespace

/// The worker said itself that it cannot go on; not a loss of the worker.
class PeerError : public llvm::ErrorInfo<PeerError, FsrError> {
public:
  static char ID;
  using ErrorInfo::ErrorInfo;
};
char PeerError::ID = 0;

/// The worker said why it is about to end; a loss, with a reason.
class LastWords : public llvm::ErrorInfo<LastWords, FsrError> {
public:
  static char ID;
  using ErrorInfo::ErrorInfo;
};
char LastWords::ID = 0;

/// The limit of a whole request passed.
class RequestExpired : public llvm::ErrorInfo<RequestExpired, FsrError> {
public:
  static char ID;
  using ErrorInfo::ErrorInfo;
};
char RequestExpired::ID = 0;

static std::string eventOf(const Frame &frame) {
  std::optional<llvm::StringRef> event = frame.header.getString("event");
  return event ? event->str() : std::string();
}

static llvm::Error corrupt(const llvm::Twine &message) {
  return makeError(ErrorKind::Corrupt, message);
}

/// The error that an event of kind "error" carries.
static llvm::Error peerError(const Frame &frame) {
  llvm::StringRef kind = frame.header.getString("kind").value_or("");
  llvm::StringRef message = frame.header.getString("message").value_or("");
  if (message.empty())
    message = "no reason given";
  std::string text = "worker: " + scrubPeerText(message);
  ErrorKind what = parseWireErrorKind(kind);
  // What a device cannot do, a healthy one cannot either.
  if (frame.header.getBoolean("context_lost").value_or(false) &&
      what != ErrorKind::Unsupported)
    return llvm::make_error<LastWords>(ErrorKind::Unavailable, text);
  return llvm::make_error<PeerError>(what, text);
}

static llvm::Error unexpected(const Frame &frame, llvm::StringRef wanted) {
  return corrupt("worker: got event '" + scrubPeerText(eventOf(frame), 64) +
                 "', wanted " + wanted);
}

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

llvm::Error WorkerClient::send(const Frame &frame, Deadline deadline) {
  return writeFrame(child->socket(), frame, deadline);
}

llvm::Expected<Frame> WorkerClient::receive(Deadline deadline) {
  FrameLimits limits;
  limits.blobBytes = 0; // A worker has nothing to send but JSON.
  llvm::Expected<std::optional<Frame>> frame =
      readFrame(child->socket(), deadline, limits);
  if (!frame) {
    llvm::Error error = frame.takeError();
    // It died while it wrote.
    if (error.isA<FrameCutOff>())
      return makeError(ErrorKind::Unavailable,
                       llvm::toString(std::move(error)));
    return std::move(error);
  }
  if (!*frame)
    return makeError(ErrorKind::Unavailable, "the worker closed its end");
  if (eventOf(**frame) == "error")
    return peerError(**frame);
  return std::move(**frame);
}

llvm::Error WorkerClient::exchange(const Frame &frame, milliseconds time) {
  Deadline deadline = Deadline::in(time);
  if (llvm::Error error = send(frame, deadline))
    return error;
  llvm::Expected<Frame> answer = receive(deadline);
  if (!answer)
    return answer.takeError();
  if (eventOf(*answer) != "done")
    return unexpected(*answer, "'done'");
  return llvm::Error::success();
}

std::string WorkerClient::peek(Deadline deadline) {
  constexpr ssize_t enough = 12; // The lengths of a frame.
  char bytes[256];
  bool isClosed = false;
  while (true) {
    ssize_t got =
        recv(child->socket(), bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
    if (got == 0 || got >= enough || isClosed || deadline.passed())
      return std::string(bytes, size_t(std::max<ssize_t>(got, 0)));
    // A few bytes would wake a poll for more of them at once.
    pollfd entry{child->socket(), short(got > 0 ? POLLRDHUP : POLLIN), 0};
    int left = deadline.pollTimeout();
    poll(&entry, 1, got > 0 ? std::min(unsigned(left), 20u) : left);
    isClosed = entry.revents & (POLLRDHUP | POLLHUP);
  }
}

/// What a login script or a banner printed before the first frame; nothing
/// where `first` is the beginning of one.
static llvm::StringRef textBefore(llvm::StringRef first) {
  // The highest byte of a frame's first length is 0, by its cap.
  if (first.size() >= 4 && first[3] == 0)
    return "";
  llvm::StringRef text = first.take_until([](char c) { return c == 0; });
  // The first length of a frame that follows may look like text.
  if (text.size() != first.size() && text.contains('\n'))
    text = text.rsplit('\n').first;
  return text.trim();
}

bool WorkerClient::hasStirred() const {
  pollfd entry{child->socket(), POLLIN, 0};
  return poll(&entry, 1, 0) != 0;
}

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

std::string WorkerClient::retire() {
  if (!child)
    return "it had not started";
  // A worker that closed its end is ending; another must not be waited for.
  char byte;
  ssize_t got = recv(child->socket(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got != 0)
    child->kill();
  std::string how = child->reap();
  child.reset();
  imagesThere.clear();
  probeFirst = true;
  return how;
}

llvm::Error WorkerClient::open() {
  llvm::Error error = start();
  // One that was killed before it spoke gets a second start, as it would later
  // in its life. One that said why it cannot serve does not.
  if (!error || error.isA<PeerError>() ||
      kindOf(error) != ErrorKind::Unavailable)
    return error;
  llvm::consumeError(std::move(error));
  return start();
}

llvm::Error WorkerClient::start() {
  llvm::Expected<std::unique_ptr<ChildProcess>> started =
      ChildProcess::start(command);
  if (!started)
    return started.takeError();
  child = std::move(*started);
  imagesThere.clear();

  Deadline deadline = Deadline::in(timeouts.hello);
  auto failed = [&](llvm::Error error) {
    std::string how = retire();
    return addContext(std::move(error), "worker '" + llvm::join(command, " ") +
                                            "' did not say hello (" + how +
                                            ")");
  };
  Frame hello;
  hello.header["op"] = "hello";
  hello.header["protocol"] = workerProtocolVersion;
  // A worker that ends at once may close before it reads, having said why.
  llvm::Error sent = send(hello, deadline);
  std::string first = peek(deadline);
  llvm::Expected<Frame> answer = receive(deadline);
  if (!answer) {
    if (llvm::StringRef text = textBefore(first); !text.empty()) {
      llvm::consumeError(std::move(sent));
      llvm::consumeError(answer.takeError());
      return failed(corrupt("its standard output begins with '" +
                            scrubPeerText(text, 200) +
                            "', where nothing but the worker's frames may be"));
    }
    if (answer.errorIsA<PeerError>() || !sent) {
      llvm::consumeError(std::move(sent));
      llvm::Error error = answer.takeError();
      if (!error.isA<PeerError>())
        return failed(std::move(error));
      retire();
      return error;
    }
    llvm::consumeError(answer.takeError());
    return failed(std::move(sent));
  }
  llvm::consumeError(std::move(sent));
  if (eventOf(*answer) != "hello")
    return failed(unexpected(*answer, "'hello'"));
  std::optional<int64_t> version = answer->header.getInteger("protocol");
  if (version != workerProtocolVersion)
    return failed(makeError(
        ErrorKind::Unsupported,
        "protocol version: got " +
            (version ? std::to_string(*version) : std::string("none")) +
            ", wanted " + llvm::Twine(workerProtocolVersion)));
  const llvm::json::Value *json = answer->header.get("description");
  DeviceDescription seen;
  llvm::json::Path::Root root("description");
  if (!json || !fromJSON(*json, seen, root))
    return failed(json ? corrupt(llvm::toString(root.getError()))
                       : corrupt("hello has no description"));
  // Times of two devices must never meet in one search.
  if (description &&
      (description->name != seen.name || description->chip != seen.chip))
    return failed(makeError(ErrorKind::Unavailable,
                            "the restarted worker is on another device: got " +
                                seen.name + " (" + seen.chip + "), wanted " +
                                description->name + " (" + description->chip +
                                ")"));
  description = std::move(seen);
  return llvm::Error::success();
}

llvm::Error WorkerClient::proveHealth() {
  Frame frame;
  frame.header["op"] = "probe";
  return exchange(frame, timeouts.probe);
}

llvm::Error WorkerClient::makeReady() {
  if (child && hasStirred())
    retire();
  if (child)
    return llvm::Error::success();
  std::string reasons, last;
  for (unsigned i = 0; i < attempts; ++i) {
    llvm::Error error = start();
    if (!error && probeFirst)
      error = proveHealth();
    if (!error) {
      probeFirst = false;
      return llvm::Error::success();
    }
    if (child)
      retire();
    std::string reason = llvm::toString(std::move(error));
    if (reasons.empty())
      reasons = reason;
    else
      reasons += reason == last ? ", both times" : "; then " + reason;
    last = std::move(reason);
  }
  return makeError(ErrorKind::Unavailable,
                   "no healthy worker after two starts: " + reasons);
}

llvm::Error WorkerClient::probe() {
  std::lock_guard<std::mutex> lock(mutex);
  if (child && !hasStirred()) {
    llvm::Error error = proveHealth();
    if (!error)
      return llvm::Error::success();
    llvm::consumeError(std::move(error)); // Two fresh ones say it again.
  }
  if (child)
    retire();
  return makeReady();
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

static llvm::Error checkImage(llvm::StringRef image) {
  const uint64_t cap = FrameLimits().blobBytes;
  if (!image.empty() && image.size() <= cap)
    return llvm::Error::success();
  return makeError(ErrorKind::BadInput,
                   "an image of " + llvm::Twine(image.size()) +
                       " bytes cannot be sent to a worker; wanted 1 to " +
                       llvm::Twine(cap));
}

bool WorkerClient::hasImage(const std::string &hash) const {
  return llvm::any_of(imagesThere,
                      [&](const auto &image) { return image.first == hash; });
}

llvm::Error WorkerClient::sendImage(llvm::StringRef image,
                                    const std::string &hash) {
  Frame frame;
  frame.header["op"] = "image";
  frame.header["hash"] = hash;
  frame.blob = image.str();
  if (llvm::Error error = exchange(frame, timeouts.image))
    return error;
  imagesThere.emplace_back(hash, image.size());
  uint64_t bytes = 0;
  for (const auto &kept : imagesThere)
    bytes += kept.second;
  // The worker keeps the two latest whatever their size.
  while (imagesThere.size() > 2 &&
         (imagesThere.size() > keptImages || bytes > keptImageBytes)) {
    bytes -= imagesThere.front().second;
    imagesThere.pop_front();
  }
  return llvm::Error::success();
}

llvm::Error WorkerClient::sendImages(const EvaluateRequest &request,
                                     const WireEvaluate &wire) {
  // A worker does without them, so they come before what must stay.
  for (auto [ptx, hash] :
       {std::pair(&request.referencePtx, &wire.referencePtxHash),
        std::pair(&request.candidatePtx, &wire.candidatePtxHash),
        std::pair(&request.cloneImage, &wire.cloneHash)})
    if (!hash->empty() && *hash != wire.referenceHash &&
        *hash != wire.candidateHash && !hasImage(*hash))
      if (llvm::Error error = sendImage(*ptx, *hash))
        return error;
  if (!hasImage(wire.candidateHash))
    if (llvm::Error error =
            sendImage(request.candidateImage, wire.candidateHash))
      return error;
  // Last, since the candidate may have pushed it out; two are always kept, and
  // the candidate is one of the two.
  if (!hasImage(wire.referenceHash)) {
    if (llvm::Error error =
            sendImage(request.referenceImage, wire.referenceHash))
      return error;
    if (!hasImage(wire.candidateHash))
      return sendImage(request.candidateImage, wire.candidateHash);
  }
  return llvm::Error::success();
}

Loss WorkerClient::lossFrom(llvm::Error error, std::string phase) {
  Loss loss;
  bool isExpired = error.isA<RequestExpired>(), isTold = error.isA<LastWords>();
  ErrorKind kind = kindOf(error);
  std::string message = llvm::toString(std::move(error));
  loss.kind = isExpired                     ? Loss::Expired
              : kind == ErrorKind::TimedOut ? Loss::Overran
              : kind == ErrorKind::Corrupt  ? Loss::Broke
                                            : Loss::Died;
  std::string how = retire();
  if (loss.kind == Loss::Overran)
    loss.what = "passed its deadline";
  else if (loss.kind == Loss::Died && !isTold)
    loss.what = "the worker died: " + how;
  else
    loss.what = message;
  loss.what +=
      phase.empty() ? " before any phase" : " in phase '" + phase + "'";
  loss.phase = std::move(phase);
  return loss;
}

llvm::Expected<EvaluateResult>
WorkerClient::readResult(const Frame &frame, const EvaluateOptions &options) {
  EvaluateResult result;
  bool isModel = description && description->isVirtual;
  llvm::json::Path::Root root("result");
  llvm::json::Value json(llvm::json::Object(frame.header));
  if (!fromJSON(json, result, root))
    return corrupt("worker: " + llvm::toString(root.getError()));
  if (Measurement *m = result.measurement ? &*result.measurement : nullptr;
      m && !m->originalUs.empty()) {
    // What the samples say is worked out here, whatever the peer made of them.
    RatioInterval interval = pairedRatio(m->originalUs, m->candidateUs);
    if (isModel) // It has no spread.
      interval.low = interval.high = interval.ratio;
    m->originalMedianUs = median(m->originalUs);
    m->candidateMedianUs = median(m->candidateUs);
    m->speedup = interval.ratio;
    m->speedupLow = interval.low;
    m->speedupHigh = interval.high;
  }
  if (isModel && result.evidence.level == EvidenceLevel::Measured)
    return corrupt("worker: result of a virtual device is told as measured");
  if (result.verdict == Verdict::Accepted) {
    if (!options.measure)
      return corrupt("worker: result is accepted, and was not asked to be "
                     "measured");
    if (!options.full)
      return corrupt("worker: result is accepted after a quick look");
    if (!result.measurement || result.measurement->originalUs.empty())
      return corrupt("worker: result is accepted and has no measurement");
    const Measurement &m = *result.measurement;
    double margin = isModel ? modelMargin : acceptanceMargin(m.noiseFloor);
    if (judge({m.speedup, m.speedupLow, m.speedupHigh}, margin) !=
        Verdict::Accepted)
      return corrupt("worker: result is accepted, but its samples say no gain "
                     "beyond noise");
    for (const Check &check : result.evidence.checks)
      // Float atomics differ from run to run; each run kept to the bound.
      if (!check.passed && check.name != "deterministic")
        return corrupt("worker: result is accepted, but its check '" +
                       check.name + "' failed");
    if (result.evidence.level == EvidenceLevel::Measured &&
        result.evidence.checks.empty())
      return corrupt("worker: result is accepted as measured with no check");
  }
  return result;
}

llvm::Expected<Outcome> WorkerClient::tryOnce(const EvaluateRequest &request,
                                              const WireEvaluate &wire) {
  std::string phase;
  std::vector<PhaseTime> times;
  Outcome outcome;
  // The worker's own error goes to the caller; any other is a loss.
  auto lost = [&](llvm::Error error) -> llvm::Expected<Outcome> {
    if (error.isA<PeerError>())
      return std::move(error);
    outcome.loss = lossFrom(std::move(error), phase);
    return std::move(outcome);
  };
  if (llvm::Error error = sendImages(request, wire))
    return lost(std::move(error));

  Frame frame;
  frame.header = *toJSON(wire).getAsObject();
  llvm::Expected<Frame> answer =
      converse(frame, "result", phase, nullptr, &times);
  if (!answer)
    return lost(answer.takeError());
  llvm::Expected<EvaluateResult> result = readResult(*answer, request.options);
  if (!result)
    return lost(result.takeError());
  result->phases = std::move(times);
  outcome.result = std::move(*result);
  return std::move(outcome);
}

/// Of a list that a peer makes grow as long as it likes.
static void addTime(std::vector<PhaseTime> &times, llvm::StringRef phase,
                    double milliseconds) {
  PhaseTime *entry = nullptr;
  if (!times.empty() && times.back().phase == phase) {
    entry = &times.back();
  } else if (times.size() < mostPhaseTimes) {
    times.push_back({phase.str(), 0});
    entry = &times.back();
  } else {
    auto alike = llvm::find_if(llvm::reverse(times), [&](const PhaseTime &one) {
      return one.phase == phase;
    });
    entry = alike == times.rend() ? &times.back() : &*alike;
  }
  entry->milliseconds += milliseconds;
}

llvm::Expected<Frame> WorkerClient::converse(const Frame &request,
                                             llvm::StringRef finalEvent,
                                             std::string &phase,
                                             OnStarted onStarted,
                                             std::vector<PhaseTime> *times) {
  auto end = Deadline::Clock::now() + timeouts.evaluate;
  bool isLast = false; // What is waited for ends with the request.
  auto within = [&](milliseconds time) {
    auto left =
        std::chrono::duration_cast<milliseconds>(end - Deadline::Clock::now());
    isLast = left < time;
    return Deadline::in(std::clamp(left, milliseconds(0), time));
  };
  auto failed = [&](llvm::Error error) -> llvm::Error {
    if (!isLast || kindOf(error) != ErrorKind::TimedOut ||
        error.isA<PeerError>())
      return error;
    llvm::consumeError(std::move(error));
    return llvm::make_error<RequestExpired>(
        ErrorKind::Unavailable,
        "passed the limit of the whole request, " +
            std::to_string(timeouts.evaluate.count() / 1000) + " s,");
  };
  Deadline deadline = within(timeouts.firstPhase);
  if (llvm::Error error = send(request, deadline))
    return failed(std::move(error));
  Deadline::Clock::time_point since = Deadline::Clock::now();
  for (unsigned events = 0;; ++events) {
    llvm::Expected<Frame> answer = receive(deadline);
    if (!answer)
      return failed(answer.takeError());
    if (times) {
      Deadline::Clock::time_point now = Deadline::Clock::now();
      addTime(*times, phase.empty() ? llvm::StringRef("request") : phase,
              std::chrono::duration<double, std::milli>(now - since).count());
      since = now;
    }
    std::string event = eventOf(*answer);
    if (event == finalEvent)
      return answer;
    if (event != "started")
      return unexpected(*answer, ("'started' or '" + finalEvent + "'").str());
    if (events == mostWireEvents)
      return corrupt("worker: more than " + llvm::Twine(mostWireEvents) +
                     " events of one request");
    std::optional<llvm::StringRef> name = answer->header.getString("phase");
    std::optional<int64_t> time = answer->header.getInteger("deadline_ms");
    if (!name || name->empty() || !time || *time < 1 ||
        *time > maxWireDeadlineMs)
      return corrupt("worker: 'started' has no phase, or no deadline from 1 "
                     "to " +
                     llvm::Twine(maxWireDeadlineMs) + " ms");
    phase = scrubPeerText(*name, 64);
    deadline = within(milliseconds(*time));
    if (onStarted)
      onStarted(answer->header);
  }
}

llvm::Expected<std::optional<std::vector<DummyResult>>>
WorkerClient::tryStrength(const StrengthRequest &request,
                          const WireStrength &wire, std::string &loss) {
  std::string phase;
  auto lost = [&](llvm::Error error)
      -> llvm::Expected<std::optional<std::vector<DummyResult>>> {
    if (error.isA<PeerError>())
      return std::move(error);
    loss = lossFrom(std::move(error), phase).what;
    return std::nullopt;
  };
  if (!hasImage(wire.referenceHash))
    if (llvm::Error error =
            sendImage(request.referenceImage, wire.referenceHash))
      return lost(std::move(error));
  Frame frame;
  frame.header = *toJSON(wire).getAsObject();
  llvm::Expected<Frame> answer = converse(
      frame, "strength", phase, [&](const llvm::json::Object &started) {
        std::optional<int64_t> done = started.getInteger("done");
        std::optional<int64_t> of = started.getInteger("of");
        double seconds = started.getNumber("seconds_left").value_or(0);
        if (!request.progress || !done || !of || *done < 0 || *done > *of ||
            *of > int64_t(TaskStrength::maxDummies))
          return;
        request.progress(
            {unsigned(*done), unsigned(*of), std::clamp(seconds, 0.0, 1e6)});
      });
  if (!answer)
    return lost(answer.takeError());
  WireDummies told;
  llvm::json::Path::Root root("strength");
  if (!fromJSON(llvm::json::Value(llvm::json::Object(answer->header)), told,
                root))
    return lost(corrupt("worker: " + llvm::toString(root.getError())));
  return std::optional(std::move(told.dummies));
}

/// What ended a worker, and then the next one.
static std::string twice(const std::string &first, const std::string &second) {
  return first + "; repeated on a healthy worker: " +
         (second == first ? "the same" : second);
}

llvm::Expected<std::vector<DummyResult>>
WorkerClient::testStrength(const StrengthRequest &request) {
  std::lock_guard<std::mutex> lock(mutex);
  if (llvm::Error error = checkImage(request.referenceImage))
    return std::move(error);
  WireStrength wire;
  wire.task = *request.task;
  wire.referenceHash = sha256(request.referenceImage);
  wire.seed = request.seed;
  // Nothing of a candidate runs: whatever goes wrong twice is the tool's, or
  // the original's.
  std::string first, second;
  for (std::string *loss : {&first, &second}) {
    if (llvm::Error error = makeReady())
      return std::move(error);
    auto told = tryStrength(request, wire, *loss);
    if (!told)
      return told.takeError();
    if (*told)
      return std::move(**told);
  }
  return makeError(ErrorKind::Unavailable, "testing the task on " +
                                               description->name + ": " +
                                               twice(first, second));
}

llvm::Expected<EvaluateResult>
WorkerClient::evaluate(const EvaluateRequest &request) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const std::string *image :
       {&request.referenceImage, &request.candidateImage})
    if (llvm::Error error = checkImage(*image))
      return std::move(error);
  WireEvaluate wire;
  wire.task = *request.task;
  wire.referenceHash = sha256(request.referenceImage);
  wire.candidateHash = sha256(request.candidateImage);
  if (!request.referencePtx.empty() && request.referencePtx.size() <= mostPtx)
    wire.referencePtxHash = sha256(request.referencePtx);
  if (!request.candidatePtx.empty() && request.candidatePtx.size() <= mostPtx)
    wire.candidatePtxHash = sha256(request.candidatePtx);
  if (!request.cloneImage.empty() && request.cloneImage.size() <= mostPtx)
    wire.cloneHash = sha256(request.cloneImage);
  wire.plan = request.plan;
  wire.options = request.options;
  wire.referenceResources = request.referenceResources;
  wire.candidateResources = request.candidateResources;

  // What earlier candidates left in a process has no part in what is told.
  if (wire.options.confirm && child)
    retire();

  std::vector<Loss> losses;
  // A worker may end after its last answer, as one whose context is dead does.
  // Then the request that meets its end is simply repeated, once.
  bool mayBeStale = child != nullptr;
  while (losses.size() < attempts) {
    if (llvm::Error error = makeReady())
      return std::move(error);
    llvm::Expected<Outcome> outcome = tryOnce(request, wire);
    if (!outcome)
      return outcome.takeError();
    if (outcome->result) {
      // Nothing heals a context: that worker is about to end.
      if (outcome->result->verdict == Verdict::Crashed)
        retire();
      return std::move(*outcome->result);
    }
    bool stale = mayBeStale && outcome->loss->kind == Loss::Died &&
                 outcome->loss->phase.empty();
    mayBeStale = false;
    if (!stale)
      losses.push_back(std::move(*outcome->loss));
  }

  std::string story = twice(losses[0].what, losses[1].what);
  // Once is chance: somebody killed the worker, the device fell over.
  if (!losses[0].mayBeTheCandidate() || !losses[1].mayBeTheCandidate())
    return makeError(losses[1].kind == Loss::Broke ? ErrorKind::Corrupt
                                                   : ErrorKind::Unavailable,
                     "on " + description->name + ": " + story);
  EvaluateResult result;
  result.verdict =
      losses[1].kind == Loss::Overran ? Verdict::TimedOut : Verdict::Crashed;
  result.message = std::move(story);
  result.evidence.device = description->name;
  result.evidence.driver = description->driver;
  return result;
}

llvm::Expected<std::unique_ptr<Device>>
fsr::openWorkerDevice(std::vector<std::string> command,
                      const DeviceTimeouts &timeouts) {
  auto client = std::make_unique<WorkerClient>(std::move(command), timeouts);
  if (llvm::Error error = client->open())
    return std::move(error);
  return std::move(client);
}
