// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Faults between a client and a device worker, for tests: starts the worker,
// hands every frame on in both directions, and at a named moment breaks
// something. What it does not break is the worker's own.
//
//   fsr-worker-fault [--lives=FILE] [--log=FILE] [FAULT…] [--then FAULT…]…
//                    -- WORKER…
//
// A fault is MOMENT:STEP[;STEP]…, or `none`; one an evaluate request, in order,
// and the last repeats. Those of `hello`, `probe` and `strength` hold for the
// whole life.
// With --lives each start of the program adds a byte to FILE and takes the list
// of its turn (lists are split by --then; the last repeats). --log adds a line
// for each request: op, then hashes and sizes.
//
// Moments: the answer to `hello`, `probe` or `strength`; a request `evaluate`,
// before the worker gets it; its `result`; else the first `started` whose phase
// begins so. Steps, with the frame at hand, which goes on last unless a step
// said when:
//
// clang-format off
//   PATH=VALUE    sets a field (evidence.checks.0.passed=false); JSON, or text
//   send          hands the frame on
//   die, exit=N   SIGKILL, or an end with that status; the worker ends too
//   doom=MS       dies at a random moment within so many milliseconds, 1 or more
//   hang          hands nothing on for ever
//   line          prints a line that is no frame
//   half          hands on the first half of the frame, and dies
//   bytes=AT:HEX  hands on the frame with other bytes there
//   pad=N         adds a field of so many bytes, which takes time to be read
//   flood=N       hands the frame on so many times
//   names=N       likewise, each time with another `phase`
// clang-format on
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Error.h"
#include "fsr/Support/Frame.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <random>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace fsr;

namespace {

struct Fault {
  std::string moment;
  std::vector<std::string> steps;
};

struct Life {
  std::vector<Fault> standing; ///< Of hello and probe.
  std::vector<Fault> requests;
};

[[noreturn]] void fail(const llvm::Twine &what) {
  llvm::errs() << "fsr-worker-fault: " << what << '\n';
  _exit(2);
}

[[noreturn]] void die() {
  raise(SIGKILL);
  _exit(9);
}

/// Until the client goes.
[[noreturn]] void hang() {
  pollfd client{STDIN_FILENO, POLLRDHUP, 0};
  poll(&client, 1, -1);
  _exit(0);
}

int64_t numberOf(llvm::StringRef text) {
  int64_t number = 0;
  if (text.getAsInteger(10, number) || number < 0)
    fail("got '" + text + "', wanted a number");
  return number;
}

Fault parseFault(llvm::StringRef text) {
  auto [moment, rest] = text.split(':');
  if (rest.empty() && text != "none")
    fail("got '" + text + "', wanted MOMENT:STEP or none");
  Fault fault;
  fault.moment = moment.str();
  llvm::SmallVector<llvm::StringRef> steps;
  rest.split(steps, ';', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef step : steps)
    fault.steps.push_back(step.str());
  return fault;
}

void append(const std::string &path, llvm::StringRef text, int64_t &size) {
  int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0644);
  struct stat info{};
  if (fd < 0 || write(fd, text.data(), text.size()) != ssize_t(text.size()) ||
      fstat(fd, &info) != 0)
    fail("cannot write " + path);
  size = info.st_size;
  close(fd);
}

void sendBytes(llvm::StringRef bytes) {
  while (!bytes.empty()) {
    ssize_t sent =
        send(STDOUT_FILENO, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent < 0)
      _exit(1); // The client is gone.
    bytes = bytes.drop_front(size_t(sent));
  }
}

std::string bytesOf(const Frame &frame) {
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::json::Value(llvm::json::Object(frame.header));
  std::string bytes(12, '\0');
  llvm::support::endian::write32le(bytes.data(), uint32_t(text.size()));
  return bytes + text;
}

/// Sets the field at `path`, which is there, or new in an object that is.
void edit(llvm::json::Object &header, llvm::StringRef path,
          llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(text);
  llvm::json::Value value = json ? std::move(*json) : text.str();
  if (!json)
    llvm::consumeError(json.takeError());
  llvm::json::Object *object = &header;
  llvm::json::Array *array = nullptr;
  while (true) {
    auto [name, rest] = path.split('.');
    llvm::json::Value *next = nullptr;
    if (array && size_t(numberOf(name)) < array->size())
      next = &(*array)[size_t(numberOf(name))];
    else if (object)
      next = rest.empty() ? &(*object)[name] : object->get(name);
    if (!next)
      fail("the frame has no '" + name + "'");
    if (rest.empty()) {
      *next = std::move(value);
      return;
    }
    object = next->getAsObject();
    array = next->getAsArray();
    path = rest;
  }
}

class Injector {
public:
  Injector(Life life, std::string logFile)
      : life(std::move(life)), logFile(std::move(logFile)) {}
  void start(llvm::MutableArrayRef<char *> command);
  int run();

private:
  void request(const Frame &frame);
  void answer(Frame frame);
  /// Performs the steps; true where they said what becomes of the frame.
  bool perform(const Fault &fault, Frame &frame);
  /// Those of its moments that have come are over.
  const Fault *faultAt(llvm::StringRef moment, bool isPhase);
  [[noreturn]] void endAsTheWorker();

  Life life;
  std::string logFile;
  pid_t child = -1;
  int worker = -1;
  std::string op;
  std::optional<Fault> pending; ///< Of the request in progress.
  size_t requests = 0;
};

void Injector::start(llvm::MutableArrayRef<char *> command) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    fail("no socket");
  child = fork();
  if (child == 0) {
    // In the group of this process, which a client kills as a whole.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    execvp(command[0], command.data());
    fail(llvm::Twine("cannot start ") + command[0]);
  }
  close(ends[1]);
  worker = ends[0];
}

void Injector::endAsTheWorker() {
  int status = 0;
  if (waitpid(child, &status, 0) != child)
    fail("the worker is no child");
  if (WIFSIGNALED(status))
    raise(WTERMSIG(status));
  _exit(WEXITSTATUS(status));
}

int Injector::run() {
  while (true) {
    pollfd ready[2] = {{worker, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0)
      fail("poll");
    bool fromWorker = ready[0].revents != 0;
    auto frame = readFrame(fromWorker ? worker : STDIN_FILENO);
    if (!frame)
      fail(llvm::toString(frame.takeError()));
    if (fromWorker) {
      if (!*frame)
        endAsTheWorker();
      answer(std::move(**frame));
    } else {
      if (!*frame)
        return 0;
      request(**frame);
    }
  }
}

const Fault *Injector::faultAt(llvm::StringRef moment, bool isPhase) {
  for (const Fault &fault : life.standing)
    if (fault.moment == moment && !isPhase)
      return &fault;
  if (pending && (isPhase ? moment.starts_with(pending->moment)
                          : moment == pending->moment))
    return &*pending;
  return nullptr;
}

bool Injector::perform(const Fault &fault, Frame &frame) {
  bool sent = false;
  for (llvm::StringRef step : fault.steps) {
    auto [verb, argument] = step.split('=');
    if (step == "send") {
      sendBytes(bytesOf(frame));
      sent = true;
    } else if (step == "die") {
      die();
    } else if (verb == "exit") {
      _exit(int(numberOf(argument)));
    } else if (verb == "doom") {
      std::random_device entropy;
      int64_t most = numberOf(argument);
      if (!most)
        fail("got doom=0, wanted 1 millisecond or more");
      int64_t pause = int64_t(entropy()) % (1000 * most);
      std::thread([pause] {
        std::this_thread::sleep_for(std::chrono::microseconds(pause));
        die();
      }).detach();
    } else if (step == "hang") {
      hang();
    } else if (step == "line") {
      sendBytes("Welcome to gpu7. Unauthorised use is forbidden.\n");
    } else if (step == "half") {
      std::string bytes = bytesOf(frame);
      sendBytes(llvm::StringRef(bytes).take_front(bytes.size() / 2));
      die();
    } else if (verb == "bytes") {
      auto [at, hex] = argument.split(':');
      std::string bytes = bytesOf(frame), other;
      if (!llvm::tryGetFromHex(hex, other))
        fail("got '" + hex + "', wanted hex digits");
      sendBytes(bytes.replace(size_t(numberOf(at)), other.size(), other));
      sent = true;
    } else if (verb == "pad") {
      frame.header["pad"] = std::string(size_t(numberOf(argument)), 'x');
    } else if (verb == "flood") {
      std::string bytes = bytesOf(frame);
      for (int64_t i = numberOf(argument); i > 0; --i)
        sendBytes(bytes);
      sent = true;
    } else if (verb == "names") {
      for (int64_t i = numberOf(argument); i > 0; --i) {
        frame.header["phase"] = "candidate-" + std::to_string(i);
        sendBytes(bytesOf(frame));
      }
      sent = true;
    } else if (step.contains('=')) {
      edit(frame.header, verb, argument);
    } else {
      fail("no step is called '" + step + "'");
    }
  }
  return sent;
}

void Injector::request(const Frame &frame) {
  auto text = [&](llvm::StringRef name) {
    return frame.header.getString(name).value_or("");
  };
  op = text("op").str();
  std::string line = op;
  if (op == "image")
    line += (" " + text("hash") + " " + llvm::Twine(frame.blob.size())).str();
  if (op == "evaluate")
    line += (" " + text("reference") + " " + text("candidate")).str();
  int64_t size = 0;
  if (!logFile.empty())
    append(logFile, line + "\n", size);
  if (op == "evaluate") {
    pending.reset();
    if (!life.requests.empty())
      pending = life.requests[std::min(requests, life.requests.size() - 1)];
    ++requests;
    Frame nothing; // Goes to the worker, so there is nothing to change.
    if (const Fault *fault = faultAt("evaluate", /*isPhase=*/false))
      perform(*fault, nothing);
  }
  if (llvm::Error error = writeFrame(worker, frame)) {
    llvm::consumeError(std::move(error));
    endAsTheWorker();
  }
}

void Injector::answer(Frame frame) {
  llvm::StringRef event = frame.header.getString("event").value_or("");
  llvm::StringRef phase = frame.header.getString("phase").value_or("");
  bool isPhase = event == "started";
  const Fault *fault = faultAt(isPhase                            ? phase
                               : op == "probe" && event == "done" ? "probe"
                                                                  : event,
                               isPhase);
  bool sent = fault && perform(*fault, frame);
  if (isPhase && fault)
    pending.reset();
  if (!sent)
    sendBytes(bytesOf(frame));
}

} // namespace

int main(int argc, char **argv) {
  std::string lives, log;
  std::vector<Life> lists(1);
  int next = 1;
  for (; next < argc && llvm::StringRef(argv[next]) != "--"; ++next) {
    llvm::StringRef arg = argv[next];
    if (arg.consume_front("--lives=")) {
      lives = arg.str();
    } else if (arg.consume_front("--log=")) {
      log = arg.str();
    } else if (arg == "--then") {
      lists.emplace_back();
    } else {
      Fault fault = parseFault(arg);
      bool stands = fault.moment == "hello" || fault.moment == "probe" ||
                    fault.moment == "strength";
      (stands ? lists.back().standing : lists.back().requests)
          .push_back(std::move(fault));
    }
  }
  if (next + 1 >= argc)
    fail("no worker: give one after --");
  size_t life = 0;
  if (!lives.empty()) {
    int64_t size = 0;
    append(lives, "+", size);
    life = size_t(size) - 1;
  }
  Injector injector(lists[std::min(life, lists.size() - 1)], log);
  // A null pointer ends argv.
  injector.start(
      llvm::MutableArrayRef<char *>(argv + next + 1, size_t(argc - next)));
  return injector.run();
}
