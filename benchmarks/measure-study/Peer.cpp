// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Frames to and from the worker's thread.
//
//===----------------------------------------------------------------------===//

#include "Peer.h"

#include "fsr/Support/Frame.h"
#include "fsr/Support/Hash.h"
#include "fsr/Worker/Worker.h"

#include <sys/socket.h>
#include <unistd.h>

namespace fsr::study {

llvm::Expected<std::unique_ptr<Peer>> Peer::start(Backend &backend) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
    return makeError(ErrorKind::Unavailable, "no socket pair");
  std::unique_ptr<Peer> peer(new Peer);
  peer->fd = pair[0];
  peer->worker = std::thread([&backend, end = pair[1]] {
    // Its absence shows in the first request.
    if (!backend.virtualDevice())
      llvm::consumeError(backend.makeCurrent());
    serveDevice(backend, end, end);
    close(end);
  });
  auto hello = peer->ask(
      llvm::json::Object{{"op", "hello"}, {"protocol", workerProtocolVersion}},
      "", "hello");
  if (!hello)
    return hello.takeError();
  llvm::json::Path::Root root("description");
  const llvm::json::Value *json = hello->get("description");
  if (!json || !fromJSON(*json, peer->description, root))
    return makeError(ErrorKind::Corrupt, "the worker does not say what it is");
  return std::move(peer);
}

Peer::~Peer() {
  shutdown(fd, SHUT_WR);
  worker.join();
  close(fd);
}

llvm::Expected<llvm::json::Object>
Peer::ask(llvm::json::Object header, std::string blob, llvm::StringRef wanted) {
  Frame frame;
  frame.header = std::move(header);
  frame.blob = std::move(blob);
  if (llvm::Error error = writeFrame(fd, frame))
    return std::move(error);
  while (true) {
    auto answer = readFrame(fd, Deadline::in(std::chrono::seconds(120)));
    if (!answer)
      return answer.takeError();
    if (!*answer)
      return makeError(ErrorKind::Unavailable, "the worker is gone");
    llvm::json::Object event = std::move((*answer)->header);
    llvm::StringRef name = event.getString("event").value_or("");
    if (name == wanted)
      return std::move(event);
    if (name != "started")
      return makeError(ErrorKind::Unavailable,
                       event.getString("message").value_or("no answer"));
  }
}

llvm::Expected<EvaluateResult> Peer::evaluate(const Kernel &original,
                                              const Kernel &candidate,
                                              const EvaluateOptions &options) {
  WireEvaluate request;
  request.task = original.task();
  request.plan = candidate.plan();
  request.options = options;
  std::string images[2] = {original.ptx(), candidate.ptx()};
  request.referenceHash = sha256(images[0]);
  request.candidateHash = sha256(images[1]);
  for (const std::string &image : images) {
    auto done =
        ask(llvm::json::Object{{"op", "image"}, {"hash", sha256(image)}}, image,
            "done");
    if (!done)
      return done.takeError();
  }
  auto answer = ask(*toJSON(request).getAsObject(), "", "result");
  if (!answer)
    return answer.takeError();
  EvaluateResult result;
  llvm::json::Path::Root root("result");
  if (!fromJSON(llvm::json::Value(std::move(*answer)), result, root))
    return root.getError();
  return std::move(result);
}

} // namespace fsr::study
