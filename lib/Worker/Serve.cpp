// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The request loop of a device worker. A request that cannot be served is
// answered by an error event and the loop goes on; only a peer that is gone, a
// stream that is no frames, and a dead context end it.
//
//===----------------------------------------------------------------------===//

#include "fsr/Worker/Worker.h"

#include "Evaluation.h"
#include "Serve.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Hash.h"

#include "llvm/Support/raw_ostream.h"

#include <deque>

namespace fsr {

namespace {

constexpr uint64_t mostImageBytes = uint64_t(256) << 20;
constexpr size_t mostImages = 256;

/// Images by hash, the oldest dropped where they are too many.
class ImageCache {
public:
  /// The two latest always stay: they are the pair that is evaluated next.
  void add(std::string hash, std::string image) {
    for (auto known = images.begin(); known != images.end(); ++known) {
      if (known->first != hash)
        continue;
      // Not the other way round: adding invalidates the iterator.
      std::pair<std::string, std::string> kept = std::move(*known);
      images.erase(known);
      images.push_back(std::move(kept));
      return;
    }
    bytes += image.size();
    images.push_back({std::move(hash), std::move(image)});
    while (images.size() > 2 &&
           (images.size() > mostImages || bytes > mostImageBytes)) {
      bytes -= images.front().second.size();
      images.pop_front();
    }
  }
  const std::string *find(llvm::StringRef hash) const {
    for (const auto &image : images)
      if (image.first == hash)
        return &image.second;
    return nullptr;
  }

private:
  std::deque<std::pair<std::string, std::string>> images;
  uint64_t bytes = 0;
};

class Server {
public:
  Server(Backend &backend, int in, int out, const SanitizerSetup *sanitizer,
         bool asGpu)
      : backend(backend), in(in), out(out), sanitizer(sanitizer), asGpu(asGpu) {
  }
  int run();

private:
  llvm::Error send(llvm::json::Object header);
  llvm::Error answerError(llvm::Error error);
  llvm::Error needHelpers();
  /// An error: the request was not served. `broken` is set where the peer is
  /// gone, `dead` where the context is.
  llvm::Error serve(Frame frame);
  llvm::Error hello(const llvm::json::Object &header);
  llvm::Error probe();
  llvm::Error image(Frame frame);
  llvm::Error evaluate(const llvm::json::Object &header);
  llvm::Error strength(const llvm::json::Object &header);

  Backend &backend;
  int in, out;
  const SanitizerSetup *sanitizer;
  bool asGpu;
  std::unique_ptr<Helpers> helpers;
  ImageCache images;
  bool broken = false, dead = false;
};

llvm::Error Server::send(llvm::json::Object header) {
  Frame frame;
  frame.header = std::move(header);
  llvm::Error error = writeFrame(out, frame);
  if (error)
    broken = true;
  return error;
}

llvm::Error Server::answerError(llvm::Error error) {
  return send(errorEvent(std::move(error), dead));
}

llvm::Error Server::needHelpers() {
  if (helpers)
    return llvm::Error::success();
  auto made = Helpers::create(backend);
  if (!made)
    return made.takeError();
  helpers = std::move(*made);
  return llvm::Error::success();
}

llvm::Error Server::hello(const llvm::json::Object &header) {
  auto version = header.getInteger("protocol");
  if (!version || *version != workerProtocolVersion)
    return makeError(ErrorKind::Unsupported,
                     "this worker speaks protocol " +
                         llvm::Twine(workerProtocolVersion) + ", got " +
                         (version ? llvm::Twine(*version) : "none"));
  auto facts = backend.properties();
  if (!facts)
    return facts.takeError();
  return send(
      llvm::json::Object{{"event", "hello"},
                         {"protocol", workerProtocolVersion},
                         {"description", toJSON(describeDevice(*facts))}});
}

/// A small trip through all that an evaluation needs.
llvm::Error Server::probe() {
  if (llvm::Error error = needHelpers())
    return error;
  auto memory = backend.allocate(4096);
  if (!memory)
    return memory.takeError();
  llvm::Error error = [&]() -> llvm::Error {
    if (llvm::Error failed = helpers->poison(*memory, 1024, 4, 0x12345678))
      return failed;
    uint32_t words[1024] = {};
    if (llvm::Error failed =
            backend.copyToHost(words, *memory, 4096, helpers->stream()))
      return failed;
    if (llvm::Error failed = helpers->synchronize())
      return failed;
    for (uint32_t word : words)
      if (word != 0x12345678)
        return makeError(ErrorKind::Unavailable,
                         "the device does not compute: a filled buffer reads "
                         "back otherwise");
    return llvm::Error::success();
  }();
  error = llvm::joinErrors(std::move(error), backend.release(*memory));
  if (error)
    return error;
  return send(llvm::json::Object{{"event", "done"}});
}

llvm::Error Server::image(Frame frame) {
  auto hash = frame.header.getString("hash");
  if (!hash)
    return makeError(ErrorKind::BadInput, "image: expected a hash");
  std::string actual = sha256(frame.blob);
  if (*hash != actual)
    return makeError(ErrorKind::Corrupt,
                     "image " + *hash + ": the bytes have the hash " + actual);
  images.add(actual, std::move(frame.blob));
  return send(llvm::json::Object{{"event", "done"}});
}

llvm::Error Server::evaluate(const llvm::json::Object &header) {
  WireEvaluate request;
  llvm::json::Path::Root root("evaluate");
  llvm::json::Value json = llvm::json::Object(header);
  if (!fromJSON(json, request, root))
    return makeError(ErrorKind::BadInput, llvm::toString(root.getError()));
  const std::string *reference = images.find(request.referenceHash);
  const std::string *candidate = images.find(request.candidateHash);
  if (!reference || !candidate)
    return makeError(
        ErrorKind::BadInput,
        "evaluate: no image with the hash " +
            (reference ? request.candidateHash : request.referenceHash) +
            " was sent");
  if (llvm::Error error = needHelpers())
    return error;
  // An image that is PTX itself is not sent twice; one that was pushed out
  // since is not known.
  auto ptxOf = [&](llvm::StringRef hash) -> llvm::StringRef {
    const std::string *text = images.find(hash);
    return text ? *text : llvm::StringRef();
  };
  auto emit = [&](llvm::json::Object event) { return send(std::move(event)); };
  std::optional<EvaluateResult> result;
  llvm::Error failure = llvm::Error::success();
  {
    Evaluation::Images pair{
        *reference, *candidate, ptxOf(request.referencePtxHash),
        ptxOf(request.candidatePtxHash), ptxOf(request.cloneHash)};
    Evaluation evaluation(*helpers, request, pair, emit, sanitizer, asGpu);
    auto outcome = evaluation.run();
    dead = dead || evaluation.contextDead();
    if (outcome)
      result = std::move(*outcome);
    else
      failure = llvm::joinErrors(std::move(failure), outcome.takeError());
    // The answer goes out before the memory: in a dead context the driver may
    // take its time.
    if (result) {
      llvm::json::Value answer = toJSON(*result);
      llvm::json::Object *object = answer.getAsObject();
      (*object)["event"] = "result";
      failure = llvm::joinErrors(std::move(failure), send(std::move(*object)));
    }
  }
  return failure;
}

llvm::Error Server::strength(const llvm::json::Object &header) {
  WireStrength asked;
  llvm::json::Path::Root root("strength");
  llvm::json::Value json = llvm::json::Object(header);
  if (!fromJSON(json, asked, root))
    return makeError(ErrorKind::BadInput, llvm::toString(root.getError()));
  const std::string *reference = images.find(asked.referenceHash);
  if (!reference)
    return makeError(ErrorKind::BadInput, "strength: no image with the hash " +
                                              asked.referenceHash +
                                              " was sent");
  if (llvm::Error error = needHelpers())
    return error;
  WireEvaluate request;
  request.task = std::move(asked.task);
  request.options.seed = asked.seed;
  auto emit = [&](llvm::json::Object event) { return send(std::move(event)); };
  Evaluation evaluation(*helpers, request, {*reference, "", "", "", ""}, emit);
  auto dummies = evaluation.testStrength(request);
  dead = dead || evaluation.contextDead();
  if (!dummies)
    return dummies.takeError();
  llvm::json::Value answer = toJSON(WireDummies{std::move(*dummies)});
  return send(std::move(*answer.getAsObject()));
}

llvm::Error Server::serve(Frame frame) {
  auto op = frame.header.getString("op");
  if (!op)
    return makeError(ErrorKind::BadInput, "expected a request with an op");
  if (*op == "hello")
    return hello(frame.header);
  if (*op == "probe")
    return probe();
  if (*op == "image")
    return image(std::move(frame));
  if (*op == "evaluate")
    return evaluate(frame.header);
  if (*op == "strength")
    return strength(frame.header);
  return makeError(
      ErrorKind::Unsupported,
      "unknown request '" + *op +
          "'; known are hello, probe, image, evaluate and strength");
}

int Server::run() {
  while (true) {
    auto frame = readFrame(in);
    if (!frame) {
      llvm::consumeError(answerError(frame.takeError()));
      return 1;
    }
    if (!*frame)
      return 0;
    if (llvm::Error error = serve(std::move(**frame))) {
      if (broken) {
        llvm::consumeError(std::move(error));
        return 1;
      }
      if (llvm::Error gone = answerError(std::move(error))) {
        llvm::consumeError(std::move(gone));
        return 1;
      }
    }
    if (dead)
      return 3;
  }
}

} // namespace

llvm::json::Object errorEvent(llvm::Error error, bool &dead) {
  std::string message;
  std::optional<ErrorKind> kind;
  auto add = [&](ErrorKind ofThis, const std::string &what) {
    if (!kind)
      kind = ofThis;
    message += (message.empty() ? "" : "; then: ") + what;
  };
  llvm::handleAllErrors(
      std::move(error),
      [&](const BackendError &failure) {
        dead = dead || failure.isSticky();
        add(ErrorKind::Unavailable, failure.message());
      },
      [&](const FsrError &failure) { add(failure.kind, failure.message); },
      [&](const llvm::ErrorInfoBase &failure) {
        add(ErrorKind::Unavailable, failure.message());
      });
  return llvm::json::Object{
      {"event", "error"},
      {"kind", wireName(kind.value_or(ErrorKind::Unavailable))},
      {"message", llvm::json::fixUTF8(message)},
      {"context_lost", dead}};
}

int serveDevice(Backend &backend, int in, int out,
                const SanitizerSetup *sanitizer, bool asGpu) {
  return Server(backend, in, out, sanitizer, asGpu).run();
}

} // namespace fsr
