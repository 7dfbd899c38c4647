// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How long validation takes, stage by stage: the quick and the full ladder for
// small kernels, and on a GPU for a larger one, without the race.
//
//   validation-time [--device=auto|virtual|cuda|...] [--checks]
//
// A worker serves on a thread, as it does in a process of its own; what passes
// between two of its messages belongs to the phase that the first one told.
// Images are PTX, so a GPU's driver compiles them: that is in the phases
// "original-load" and "candidate-load". Each ladder runs twice, the second one
// is printed.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Device/Protocol.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Hash.h"
#include "fsr/Worker/Worker.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <ctime>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace fsr;

namespace {

using Clock = std::chrono::steady_clock;

struct Subject {
  const char *name, *candidate, *task;
  LaunchShape shape;
  bool isLarge = false; ///< Not for a virtual device.
};

const Subject subjects[] = {
    {"layer_norm",
     "layer_norm",
     "96265d6cd7aff9254a905e91da796873974ec10476eb516fd2ab59561907d4df",
     {{32, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0}},
    {"matmul",
     "matmul",
     "318d227369af310eecf2bf09721b589d533c75aca3eedcd13f2fcecba85813d4",
     {{5, 6, 1}, {16, 16, 1}, {1, 1, 1}, 0}},
    {"softmax",
     "softmax",
     "bac4a44753e4f685e21df2b0231e8ed4c3adf7a6cf28eb19458e96f8a22832cb",
     {{32, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0}},
    {"layer_norm of 65536 rows",
     "layer_norm",
     "1e2df8d780ed4b1c0d3f06cdf6b2bb7425f50fb14d43d9caa109d8844849136a",
     {{8192, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0},
     true},
};

llvm::ExitOnError check("validation-time: error: ");

class Peer {
public:
  explicit Peer(Backend &backend) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
      check(makeError(ErrorKind::Unavailable, "no socket pair"));
    fd = pair[0];
    worker = std::thread([&backend, end = pair[1]] {
      if (!backend.virtualDevice())
        check(backend.makeCurrent());
      serveDevice(backend, end, end);
      close(end);
    });
  }
  ~Peer() {
    shutdown(fd, SHUT_WR);
    worker.join();
    close(fd);
  }
  void send(llvm::json::Object header, std::string blob = "") {
    Frame frame;
    frame.header = std::move(header);
    frame.blob = std::move(blob);
    check(writeFrame(fd, frame));
  }
  llvm::json::Object receive() {
    auto frame = check(readFrame(fd, Deadline::in(std::chrono::seconds(600))));
    if (!frame)
      check(makeError(ErrorKind::Unavailable, "the worker is gone"));
    return frame->header;
  }

private:
  int fd = -1;
  std::thread worker;
};

/// Milliseconds: passed, and of the processor. On a busy machine the second
/// tells more.
struct Phase {
  std::string name;
  double wall = 0, processor = 0;
};
/// In the order in which they first come.
using Times = std::vector<Phase>;

double processorMs() { return 1000.0 * double(std::clock()) / CLOCKS_PER_SEC; }

Times runLadder(Peer &peer, const WireEvaluate &request, EvaluateResult &to) {
  Times times;
  auto phaseOf = [&](const std::string &name) -> Phase & {
    for (Phase &one : times)
      if (one.name == name)
        return one;
    times.push_back({name});
    return times.back();
  };
  std::string phase = "request";
  Clock::time_point since = Clock::now();
  double processorSince = processorMs();
  peer.send(*toJSON(request).getAsObject());
  while (true) {
    llvm::json::Object event = peer.receive();
    Clock::time_point now = Clock::now();
    Phase &current = phaseOf(phase);
    current.wall +=
        std::chrono::duration<double, std::milli>(now - since).count();
    current.processor += processorMs() - processorSince;
    since = now;
    processorSince = processorMs();
    llvm::StringRef name = event.getString("event").value_or("");
    if (name == "started") {
      phase = event.getString("phase").value_or("").str();
      continue;
    }
    if (name != "result")
      check(makeError(ErrorKind::Unavailable,
                      event.getString("message").value_or("no result")));
    llvm::json::Path::Root root("result");
    if (!fromJSON(llvm::json::Value(std::move(event)), to, root))
      check(root.getError());
    return times;
  }
}

void measure(Peer &peer, const Subject &subject, bool showChecks) {
  std::string folder = FSR_BENCHMARKS;
  auto text = check(
      readFile(folder + "/store/tasks/" + subject.task + ".json", 1 << 20));
  KernelTask task = check(parseTask(text));
  auto candidate = check(readFile(
      folder + "/validation-time/" + subject.candidate + ".ptx", 1 << 20));
  WireEvaluate request;
  request.task = task;
  request.referenceHash = request.referencePtxHash = sha256(task.reference.ptx);
  request.candidateHash = request.candidatePtxHash = sha256(candidate);
  ResolvedLaunch launch;
  launch.kernel = "fast";
  for (const Argument &argument : task.arguments)
    launch.args.push_back(argument.name);
  launch.shape = subject.shape;
  request.plan.launches = {launch};
  request.options.measure = false;
  for (const std::string &image : {task.reference.ptx, candidate}) {
    peer.send(llvm::json::Object{{"op", "image"}, {"hash", sha256(image)}},
              image);
    peer.receive();
  }
  for (bool full : {false, true}) {
    request.options.full = full;
    EvaluateResult result;
    Times times;
    for (unsigned turn = 0; turn < 2; ++turn) {
      request.options.seed = turn;
      times = runLadder(peer, request, result);
    }
    Phase sum;
    for (const Phase &one : times) {
      sum.wall += one.wall;
      sum.processor += one.processor;
    }
    llvm::outs() << llvm::formatv(
        "{0}, {1} ladder: {2:f1} ms, {3:f1} ms of processors, {4}\n",
        subject.name, full ? "full" : "quick", sum.wall, sum.processor,
        nameOf(result.verdict));
    if (result.verdict != Verdict::Undecided)
      llvm::outs() << "  " << result.message << '\n';
    for (const Phase &one : times)
      llvm::outs() << llvm::formatv("  {0,-20} {1,8:f1} ms {2,8:f1} ms\n",
                                    one.name, one.wall, one.processor);
    for (const Check &one : result.evidence.checks)
      if (showChecks)
        llvm::outs() << "  " << (one.passed ? "passed " : "FAILED ") << one.name
                     << ": " << one.rule << "; " << one.detail << '\n';
  }
}

} // namespace

int main(int argc, char **argv) {
  std::string device = "auto";
  bool showChecks = false;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef word = argv[i];
    if (word.consume_front("--device=")) {
      device = word.str();
    } else if (word == "--checks") {
      showChecks = true;
    } else {
      bool isHelp = word == "--help" || word == "-h";
      (isHelp ? llvm::outs() : llvm::errs())
          << "usage: validation-time [--device=DEVICE] [--checks]\n";
      return isHelp ? 0 : 2;
    }
  }
  auto backend = check(openBackend(device));
  Peer peer(*backend);
  for (const Subject &subject : subjects)
    if (!subject.isLarge || !backend->virtualDevice())
      measure(peer, subject, showChecks);
  return 0;
}
