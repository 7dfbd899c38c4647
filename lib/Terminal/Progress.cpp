// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The live line is kept below the width of the terminal, since one that wraps
// cannot be drawn over. Who has the terminal is known to the whole process, as
// the terminal is the process's.
//
//===----------------------------------------------------------------------===//

#include "fsr/Terminal/Progress.h"

#include "fsr/Search/Strength.h"
#include "fsr/Terminal/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

using namespace fsr;
using Kind = SearchEvent::Kind;

namespace {

/// Every Progress of the process, and which one draws. Locked before the lock
/// of any of them.
struct Shown {
  std::mutex lock;
  std::vector<Progress *> all;
  Progress *drawing = nullptr;
};

/// Never destroyed: an interrupt may come after the end of main.
Shown &shown() {
  static auto *one = new Shown;
  return *one;
}

} // namespace

ProgressKind fsr::progressKindOfTerminal() {
  const char *term = std::getenv("TERM");
  bool isDumb = !term || !*term || llvm::StringRef(term) == "dumb";
  return !isDumb && llvm::sys::Process::StandardErrIsDisplayed()
             ? ProgressKind::Live
             : ProgressKind::Lines;
}

/// Asked each time, since a window changes its size. LLVM only knows COLUMNS,
/// which shells do not hand on.
static size_t columnsOfTerminal() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return size.ws_col;
  unsigned columns = llvm::sys::Process::StandardErrColumns();
  return columns ? columns : 80;
}

ProgressSubject fsr::progressSubject(llvm::StringRef kernel,
                                     const SearchOptions &options,
                                     double capUsd) {
  bool isControl = options.kind == SearchKind::BestOfN;
  ProgressSubject subject;
  subject.kernel = printable(kernel);
  subject.rounds = isControl ? 1 : options.rounds;
  subject.width = isControl ? options.width * options.rounds : options.width;
  subject.capUsd = capUsd;
  return subject;
}

//===----------------------------------------------------------------------===//
// The line
//===----------------------------------------------------------------------===//

namespace {

/// How much of the line is left out; each step leaves out more than the one
/// before it.
enum Brevity : unsigned {
  Whole,
  AcceptedOnly, ///< Of the verdicts.
  NoCap,        ///< Of the money.
  ShortWords,
  CountOnly, ///< Of what was tried.
  NoCounts,
  ShortKernel,
  NoMoney,
  NoElapsed, ///< Where the time left is there.
  NoWaiting,
  NoBest,
  Shortest = NoBest
};

} // namespace

static std::string triedText(const ProgressState &state, unsigned brevity) {
  unsigned count = 0;
  for (auto [verdict, number] : state.verdicts)
    count += number;
  if (!count || brevity >= NoCounts)
    return "";
  std::string text = llvm::formatv("{0} tried", count);
  if (brevity >= CountOnly)
    return text;
  const char *separator = ": ";
  for (auto [verdict, number] : state.verdicts) {
    if (brevity >= AcceptedOnly && verdict != Verdict::Accepted)
      continue;
    text += llvm::formatv("{0}{1} {2}", separator, number, nameOf(verdict));
    separator = ", ";
  }
  return text;
}

static std::string waitingText(const ProgressState &state, unsigned brevity) {
  std::string text;
  if (brevity >= NoWaiting)
    return text;
  bool isShort = brevity >= ShortWords;
  if (state.waiting)
    text = isShort ? llvm::formatv("waits for {0}", state.waiting).str()
                   : llvm::formatv("waiting for {0} of {1} answers",
                                   state.waiting, state.subject.width)
                         .str();
  else if (state.isChecking && state.testedDummies >= 0 && !isShort)
    text = llvm::formatv("testing the task, {0} of {1}", state.testedDummies,
                         state.allDummies);
  else if (state.isChecking)
    text = isShort ? "original" : "checking the original";
  else if (state.isTrying && (state.verdicts.empty() || brevity < AcceptedOnly))
    text = isShort ? "trying" : "trying answers";
  if (state.pending)
    text += llvm::formatv("{0}{1} pending", text.empty() ? "" : ", ",
                          state.pending);
  return text;
}

static std::string kernelText(const ProgressState &state, unsigned brevity) {
  const ProgressSubject &subject = state.subject;
  if (brevity >= ShortKernel)
    return oneLine(subject.kernel, 12);
  std::string text = oneLine(subject.kernel, 32);
  if (subject.of > 1)
    text += llvm::formatv(" ({0} of {1})", subject.number, subject.of);
  return text;
}

static std::string compose(const ProgressState &state, unsigned brevity) {
  std::vector<std::string> parts;
  parts.push_back(kernelText(state, brevity));
  parts.push_back(llvm::formatv("{0}{1}/{2}",
                                brevity >= ShortWords ? "r" : "round ",
                                state.round, state.subject.rounds));
  parts.push_back(waitingText(state, brevity));
  parts.push_back(triedText(state, brevity));
  if (!state.best.empty() && brevity < NoBest)
    parts.push_back((brevity >= ShortKernel ? "" : "best ") + state.best);
  if (state.usd > 0 && brevity < NoMoney) {
    std::string spent = llvm::formatv("${0:f2}", state.usd);
    if (state.subject.capUsd > 0 && brevity < NoCap)
      spent += llvm::formatv(" of ${0:f2}", state.subject.capUsd);
    parts.push_back(spent);
  }
  if (state.left) {
    llvm::StringRef left = "";
    std::string text = timeLeftText(*state.left);
    left = text;
    if (brevity >= ShortWords) {
      // "about 4 min left" as "~4 min".
      if (left.consume_front("about "))
        text = ("~" + left.drop_back(llvm::StringRef(" left").size())).str();
      else
        text = "<1 min";
    }
    parts.push_back(text);
  }
  if (!state.left || brevity < NoElapsed) {
    auto seconds = state.elapsed.count();
    parts.push_back(llvm::formatv("{0}:{1:02}", seconds / 60, seconds % 60));
  }
  llvm::erase_if(parts, [](const std::string &part) { return part.empty(); });
  return llvm::join(parts, brevity >= ShortKernel ? " " : "  ");
}

std::string fsr::progressLine(const ProgressState &state, size_t columns) {
  for (unsigned brevity = Whole; brevity < Shortest; ++brevity) {
    std::string text = compose(state, brevity);
    if (columnsOf(text) <= columns)
      return text;
  }
  return oneLine(compose(state, Shortest), columns);
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

Progress::Progress(llvm::raw_ostream &os, ProgressKind kind, std::string prefix,
                   std::string store)
    : os(os), kind(kind), prefix(std::move(prefix)), store(std::move(store)) {
  std::lock_guard<std::mutex> held(shown().lock);
  shown().all.push_back(this);
}

Progress::~Progress() {
  end();
  std::lock_guard<std::mutex> held(shown().lock);
  llvm::erase(shown().all, this);
}

void Progress::begin(ProgressSubject subject) {
  end();
  std::lock_guard<std::mutex> heldAll(shown().lock);
  std::lock_guard<std::mutex> held(lock);
  state = ProgressState();
  state.subject = std::move(subject);
  start = TimeLeft::Clock::now();
  timeLeft.emplace(state.subject.rounds, state.subject.width, start);
  isOn = true;
  draws = kind == ProgressKind::Live && !shown().drawing;
  if (!draws)
    return;
  shown().drawing = this;
  draw();
  clock = std::thread([this] {
    std::unique_lock<std::mutex> held(lock);
    while (!ended.wait_for(held, std::chrono::seconds(1),
                           [this] { return !draws; }))
      draw();
  });
}

void Progress::erase() {
  if (!draws)
    return;
  draws = false;
  os << "\r\x1b[K";
  os.flush();
  ended.notify_all();
}

void Progress::end() {
  {
    std::lock_guard<std::mutex> heldAll(shown().lock);
    std::lock_guard<std::mutex> held(lock);
    isOn = false;
    erase();
    if (shown().drawing == this)
      shown().drawing = nullptr;
  }
  if (clock.joinable())
    clock.join();
}

void fsr::sayInterrupted(llvm::StringRef program) {
  std::string text = (program + ": interrupted").str();
  // For good: nobody begins another line, and nobody ends.
  shown().lock.lock();
  for (Progress *one : shown().all) {
    one->lock.lock();
    one->erase();
    if (text.back() != '\'')
      text += "; what was finished is in '" + printable(one->store) + "'";
  }
  if (!shown().all.empty())
    text += ", and the same command goes on from there";
  llvm::errs() << text + "\n";
}

/// What takes long is said once, and then how far it is.
void Progress::tellTest(const StrengthProgress &progress) {
  std::string text = longTestText(progress);
  if (state.testedDummies < 0 && text.empty())
    return;
  bool isFirst = state.testedDummies < 0;
  if (!isFirst && state.testedDummies == int64_t(progress.done))
    return;
  state.testedDummies = progress.done;
  state.allDummies = progress.of;
  if (kind == ProgressKind::Lines) {
    if (!isFirst)
      text = llvm::formatv("tested {0} of {1} dummies, about {2} s to go",
                           progress.done, progress.of,
                           std::lround(progress.secondsLeft));
    os << prefix + state.subject.kernel + ": " + text + "\n";
    os.flush();
  } else if (draws) {
    if (isFirst) {
      erase();
      os << prefix + state.subject.kernel + ": " + text + "\n";
    }
    draw();
  }
}

void Progress::event(const SearchEvent &event, double spentUsd) {
  std::lock_guard<std::mutex> held(lock);
  if (!isOn || kind == ProgressKind::None)
    return;
  if (event.kind == Kind::Checking && event.progress) {
    tellTest(*event.progress);
    return;
  }
  if (event.kind == Kind::Checking) {
    state.isChecking = true;
    if (draws) {
      draw();
    } else if (kind == ProgressKind::Lines) {
      os << prefix + state.subject.kernel + ": checking the original\n";
      os.flush();
    }
    return;
  }
  if (event.kind == Kind::Tested) {
    state.isChecking = false;
    if (kind == ProgressKind::Lines) {
      os << prefix + state.subject.kernel +
                ": task strength: " + printable(event.strength->summary()) +
                "\n";
      os.flush();
    }
    return;
  }
  timeLeft->event(event, TimeLeft::Clock::now());
  state.usd = spentUsd;
  state.round = event.round;
  switch (event.kind) {
  case Kind::Asked:
    ++state.waiting;
    break;
  case Kind::Answered:
    state.waiting -= state.waiting > 0;
    state.isTrying = !state.waiting;
    break;
  case Kind::Pending:
    state.waiting -= state.waiting > 0;
    ++state.pending;
    break;
  case Kind::Finished:
    state.isTrying = true;
    state.isChecking = false;
    ++state.verdicts[event.trial->verdict];
    break;
  case Kind::RoundEnded:
    state.waiting = 0;
    state.isTrying = state.isChecking = false;
    break;
  case Kind::Checking:
  case Kind::Tested:
    break;
  }
  if (event.best && event.best->measurement)
    state.best = gainText(*event.best);
  if (draws)
    draw();
  else if (kind == ProgressKind::Lines)
    print(event);
}

void Progress::say(llvm::StringRef line) {
  std::lock_guard<std::mutex> held(lock);
  os << (draws ? "\r\x1b[K" : "") + prefix + printable(line) + "\n";
  os.flush();
  if (draws)
    draw();
}

void Progress::print(const SearchEvent &event) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << prefix << state.subject.kernel << " r" << event.round;
  if (event.kind != Kind::RoundEnded)
    out << "-s" << event.slot;
  out << ": ";
  switch (event.kind) {
  case Kind::Asked:
    out << "asking";
    break;
  case Kind::Answered:
    out << "answered";
    break;
  case Kind::Pending:
    out << "answer pending";
    break;
  case Kind::RoundEnded:
    out << (event.summary->pending ? "waits" : "done");
    for (const auto &[verdict, count] : event.summary->verdicts)
      out << ", " << count << " " << nameOf(verdict);
    out << "; best " << (state.best.empty() ? "none yet" : state.best);
    break;
  case Kind::Checking:
  case Kind::Tested:
    break;
  case Kind::Finished:
    out << nameOf(event.trial->verdict);
    if (!event.trial->parameters.empty())
      out << " " << parametersText(event.trial->parameters);
    if (event.trial->measurement)
      out << llvm::formatv(" {0:f1} us ",
                           event.trial->measurement->candidateMedianUs)
          << gainText(*event.trial);
    else if ((event.trial->verdict == Verdict::Rejected ||
              event.trial->verdict == Verdict::CompileFailed) &&
             !store.empty())
      out << "; see fsr-store show " << printable(store) << " "
          << llvm::StringRef(event.trial->taskKey).take_front(12);
    break;
  }
  // In one piece: other writers share the stream, which has no buffer.
  os << text + "\n";
  os.flush();
}

void Progress::draw() {
  auto now = TimeLeft::Clock::now();
  state.left = timeLeft->at(now);
  state.elapsed = std::chrono::duration_cast<std::chrono::seconds>(now - start);
  size_t columns = columnsOfTerminal();
  // One column stays free: some terminals wrap once the last one is written.
  os << "\r" + progressLine(state, columns > 1 ? columns - 1 : 1) + "\x1b[K";
  os.flush();
}
