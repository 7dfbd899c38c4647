// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Progress.h. The live line is cut to the width of the terminal, since one
// that wraps cannot be drawn over.
//
//===----------------------------------------------------------------------===//

#include "Progress.h"

#include "Text.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"

#include <cstdlib>

using namespace fsr;
using Kind = SearchEvent::Kind;

ProgressKind fsr::progressKindOfTerminal() {
  const char *term = std::getenv("TERM");
  bool isDumb = !term || !*term || llvm::StringRef(term) == "dumb";
  return !isDumb && llvm::sys::Process::StandardErrIsDisplayed()
             ? ProgressKind::Live
             : ProgressKind::Lines;
}

Progress::Progress(llvm::raw_ostream &os, ProgressKind kind, std::string kernel,
                   unsigned rounds, unsigned width)
    : os(os), kind(kind), kernel(printable(kernel)), rounds(rounds),
      width(width), start(std::chrono::steady_clock::now()) {
  if (kind != ProgressKind::Live)
    return;
  clock = std::thread([this] {
    std::unique_lock<std::mutex> held(lock);
    while (!isOver) {
      draw();
      ended.wait_for(held, std::chrono::seconds(1), [this] { return isOver; });
    }
  });
}

Progress::~Progress() {
  end();
  if (clock.joinable())
    clock.join();
}

void Progress::end() {
  std::lock_guard<std::mutex> held(lock);
  if (isOver)
    return;
  isOver = true;
  if (kind == ProgressKind::Live) {
    os << "\r\x1b[K";
    os.flush();
  }
  ended.notify_all();
}

void Progress::say(const std::string &line) {
  std::lock_guard<std::mutex> held(lock);
  os << (kind == ProgressKind::Live ? "\r\x1b[K" : "") + line + "\n";
  os.flush();
}

void Progress::event(const SearchEvent &event, double spentUsd) {
  std::lock_guard<std::mutex> held(lock);
  usd = spentUsd;
  if (isOver || kind == ProgressKind::None)
    return;
  round = event.round;
  switch (event.kind) {
  case Kind::Asked:
    ++waiting;
    break;
  case Kind::Answered:
    waiting -= waiting > 0;
    break;
  case Kind::Pending:
    waiting -= waiting > 0;
    ++pending;
    break;
  case Kind::Finished:
    ++verdicts[event.trial->verdict];
    break;
  case Kind::RoundEnded:
    waiting = 0;
    break;
  }
  if (event.best && event.best->measurement)
    best = gainText(*event.best->measurement);
  if (kind == ProgressKind::Live)
    draw();
  else
    print(event);
}

void Progress::print(const SearchEvent &event) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << kernel << " r" << event.round;
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
    out << "round ended, best " << (best.empty() ? "none yet" : best);
    break;
  case Kind::Finished:
    out << nameOf(event.trial->verdict);
    if (!event.trial->parameters.empty())
      out << " " << parametersText(event.trial->parameters);
    if (event.trial->measurement)
      out << llvm::formatv(" {0:f1} us ",
                           event.trial->measurement->candidateMedianUs)
          << gainText(*event.trial->measurement);
    break;
  }
  os << text + "\n";
  os.flush();
}

std::string Progress::line() const {
  std::string text =
      llvm::formatv("{0}  round {1}/{2}", kernel, round, rounds).str();
  unsigned count = 0;
  std::string counts;
  for (auto [verdict, number] : verdicts) {
    count += number;
    counts += llvm::formatv("{0} {1} {2}", counts.empty() ? "" : ",", number,
                            nameOf(verdict))
                  .str();
  }
  if (waiting)
    text += llvm::formatv("  {0} of {1} asked", waiting, width).str();
  if (pending)
    text += llvm::formatv("  {0} pending", pending).str();
  if (count)
    text += llvm::formatv("  {0} tried:{1}", count, counts).str();
  if (!best.empty())
    text += "  best " + best;
  if (usd > 0)
    text += llvm::formatv("  ${0:f2}", usd).str();
  auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
                     std::chrono::steady_clock::now() - start)
                     .count();
  return text + llvm::formatv("  {0}:{1:02}", seconds / 60, seconds % 60).str();
}

void Progress::draw() {
  unsigned columns = llvm::sys::Process::StandardErrColumns();
  // In one piece: standard error is not buffered.
  os << "\r" + oneLine(line(), columns > 1 ? columns - 1 : 79) + "\x1b[K";
  os.flush();
}
