// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Can the times be trusted? Puts kernels of known times through the worker's
// own evaluation and counts verdicts: equal kernels, of which none must be told
// faster, and originals slowed by 2 % and by 5 %, of which most must be told.
// `--help` says what else it does.
//
// The kernels are made here and fitted to the device first: their number of
// iterations to the wanted time, and the slowed ones by a slowdown of a fifth,
// which is known far better than one of a fiftieth.
//
//===----------------------------------------------------------------------===//

#include "Peer.h"
#include "Results.h"

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Core/Statistics.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

#include <chrono>
#include <cmath>

using namespace fsr;
using namespace fsr::study;

namespace {

using Clock = std::chrono::steady_clock;

/// Of a kernel that other harnesses time too. No block is copied twice: what L2
/// still has of the first pass is another matter in every harness.
constexpr int64_t mostPeerBlocks = int64_t(1) << 28;

constexpr const char *usage =
    R"(usage: measure-study [OPTION]...
  --device=DEVICE   as in device=; default auto. On a virtual device the kernels
                    are checked and nothing is timed
  --minutes=N       stop after so long; default 6. What is asked takes turns
  --runs=N          evaluations of each kernel and question; default 100
  --only=WORD       long: from 50 us; short: below; default all
  --out=FILE        a line an evaluation; default measure-study.tsv
  --samples=FILE    all pairs as JSON lines
  --peers=FILE      writes kernels for peers.py to time, and nothing else
  --time=FILE       times the kernels of such a file once, and prints a JSON line
)";

struct Options {
  std::string device = "auto", out = "measure-study.tsv", samples, peers, time,
              only;
  double minutes = 6;
  unsigned runs = 100;
};

class Study {
public:
  Study(Peer &peer, const Options &options) : peer(peer), options(options) {}
  llvm::Error run();
  llvm::Error check();
  llvm::Error timePeers();

private:
  llvm::Expected<EvaluateResult> race(const Kernel &original,
                                      const Kernel &candidate, int64_t pairs);
  llvm::Expected<double> timeOf(const Kernel &kernel);
  llvm::Expected<Kernel> fit(Kind kind, double targetUs, bool inPlace);
  llvm::Expected<Kernel> slowed(const Kernel &kernel, double by, double slope);
  llvm::Expected<double> slopeOf(const Kernel &kernel);
  llvm::Error fitAll();
  llvm::Error takeTurns();
  llvm::Error quickLooks();
  llvm::Error confirmations();
  llvm::Error writePeers();
  bool isOver() const { return Clock::now() > end; }

  Peer &peer;
  const Options &options;
  std::vector<Cell> cells;
  Clock::time_point end;
  std::unique_ptr<llvm::raw_fd_ostream> out, samples;
  uint64_t seed = 1;
};

llvm::Expected<EvaluateResult>
Study::race(const Kernel &original, const Kernel &candidate, int64_t pairs) {
  EvaluateOptions how;
  how.seed = seed++;
  how.maxPairs = pairs;
  how.raceOnly = true;
  return peer.evaluate(original, candidate, how);
}

llvm::Expected<double> Study::timeOf(const Kernel &kernel) {
  auto result = race(kernel, kernel, 8);
  if (!result)
    return result.takeError();
  if (!result->measurement || result->measurement->originalUs.empty())
    return makeError(ErrorKind::Unavailable,
                     "a " + study::nameOf(kernel.kind) +
                         " kernel cannot be timed: " + result->message);
  return result->measurement->originalMedianUs;
}

llvm::Expected<Kernel> Study::fit(Kind kind, double targetUs, bool inPlace) {
  Kernel kernel;
  kernel.kind = kind;
  kernel.inPlace = inPlace;
  kernel.multiprocessors = peer.device().multiprocessors;
  if (!options.peers.empty())
    kernel.mostBlocks = mostPeerBlocks;
  auto set = [&](double iterations) {
    kernel.iterations = kernel.sizedFor =
        std::llround(std::clamp(iterations, 64.0, 4e9));
  };
  // About right on a large GPU; a wrong guess costs a round more.
  set(kind == Kind::Compute ? targetUs * 100 : targetUs * 120000);
  for (unsigned round = 0; round < 6; ++round) {
    auto time = timeOf(kernel);
    if (!time)
      return time.takeError();
    if (std::fabs(*time - targetUs) <= 0.05 * targetUs)
      break;
    // What a launch takes in any case is no part of what grows.
    double fixed = std::min(2.0, 0.5 * std::min(*time, targetUs));
    set(double(kernel.iterations) * (targetUs - fixed) / (*time - fixed));
  }
  return kernel;
}

/// By how much the time grows, relative, for a relative growth of iterations.
llvm::Expected<double> Study::slopeOf(const Kernel &kernel) {
  constexpr double much = 0.2;
  Kernel slow = kernel;
  slow.iterations = std::llround(double(kernel.iterations) * (1 + much));
  std::vector<double> ratios;
  for (unsigned i = 0; i < 3; ++i) {
    auto result = race(slow, kernel, 16);
    if (!result)
      return result.takeError();
    if (result->measurement && !result->measurement->originalUs.empty())
      ratios.push_back(result->measurement->speedup);
  }
  if (ratios.empty() || median(ratios) <= 1)
    return makeError(ErrorKind::Unavailable,
                     "a fifth more work takes no more time");
  return (median(ratios) - 1) / much;
}

llvm::Expected<Kernel> Study::slowed(const Kernel &kernel, double by,
                                     double slope) {
  Kernel slow = kernel;
  slow.iterations =
      kernel.iterations +
      std::max<int64_t>(1,
                        std::llround(double(kernel.iterations) * by / slope));
  return slow;
}

llvm::Error Study::fitAll() {
  for (double target : {50.0, 100.0, 200.0, 500.0, 2000.0, 20.0, 10.0, 5.0}) {
    bool isShort = target < 50;
    if (options.only == (isShort ? "long" : "short"))
      continue;
    for (Kind kind : {Kind::Compute, Kind::Memory})
      for (bool inPlace : {false, true}) {
        if (inPlace && !isShort)
          continue;
        auto kernel = fit(kind, target, inPlace);
        if (!kernel)
          return kernel.takeError();
        double slope = 1;
        if (options.peers.empty()) {
          auto found = slopeOf(*kernel);
          if (!found)
            return found.takeError();
          slope = *found;
        }
        for (double slower : {0.0, 0.02, 0.05}) {
          Cell cell;
          cell.kind = kind;
          cell.targetUs = target;
          cell.inPlace = inPlace;
          cell.slower = slower;
          cell.original = cell.candidate = *kernel;
          if (slower > 0) {
            auto slow = slowed(*kernel, slower, slope);
            if (!slow)
              return slow.takeError();
            cell.original = *slow;
          }
          cells.push_back(std::move(cell));
        }
      }
  }
  return llvm::Error::success();
}

llvm::json::Value samplesOf(const Cell &cell, const Measurement &m) {
  return llvm::json::Object{{"kind", study::nameOf(cell.kind)},
                            {"target_us", cell.targetUs},
                            {"in_place", cell.inPlace},
                            {"slower", cell.slower},
                            {"measurement", toJSON(m)}};
}

llvm::Error Study::takeTurns() {
  for (unsigned run = 0; run < options.runs; ++run)
    for (Cell &cell : cells) {
      if (isOver())
        return llvm::Error::success();
      Clock::time_point start = Clock::now();
      auto result = race(cell.original, cell.candidate, 128);
      if (!result)
        return result.takeError();
      double wall =
          std::chrono::duration<double, std::milli>(Clock::now() - start)
              .count();
      cell.add(*result, wall);
      writeLine(*out, cell, *result, wall);
      if (samples && result->measurement)
        *samples << samplesOf(cell, *result->measurement) << '\n';
    }
  return llvm::Error::success();
}

/// As a search looks at each set of parameters.
llvm::Error Study::quickLooks() {
  for (const Cell &cell : cells) {
    if (cell.slower != 0.02 || cell.inPlace || cell.targetUs > 500)
      continue;
    Clock::time_point start = Clock::now();
    unsigned count = 0;
    double passed = 0;
    while (passed < 0.5) {
      EvaluateOptions how;
      how.seed = seed++;
      how.full = false;
      auto result = peer.evaluate(cell.original, cell.candidate, how);
      if (!result)
        return result.takeError();
      ++count;
      passed = std::chrono::duration<double>(Clock::now() - start).count();
    }
    llvm::outs() << llvm::formatv("quick looks, {0}: {1:f1} a second\n",
                                  cell.name(), count / passed);
  }
  return llvm::Error::success();
}

llvm::Error Study::confirmations() {
  llvm::outs()
      << "\nconfirmations (of equal kernels and of 5 %, in this process)\n";
  for (const Cell &cell : cells) {
    if (cell.slower == 0.02 || (cell.targetUs != 100 && cell.targetUs != 10))
      continue;
    EvaluateOptions how;
    how.seed = seed++;
    how.confirm = true;
    Clock::time_point start = Clock::now();
    auto result = peer.evaluate(cell.original, cell.candidate, how);
    if (!result)
      return result.takeError();
    double passed =
        std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    llvm::outs() << llvm::formatv("{0}, {1:f0} %: {2}, {3:f0} ms\n",
                                  cell.name(), 100 * cell.slower,
                                  fsr::nameOf(result->verdict), passed);
    for (const Check &one : result->evidence.checks)
      if (one.name == "confirmed" || one.name == "conditions")
        llvm::outs() << "  " << one.name << ": " << one.detail << '\n';
  }
  return llvm::Error::success();
}

llvm::Error Study::writePeers() {
  llvm::json::Array kernels;
  auto add = [&](llvm::StringRef name, const Kernel &kernel) {
    kernels.push_back(llvm::json::Object{{"name", name.str()},
                                         {"kind", study::nameOf(kernel.kind)},
                                         {"iterations", kernel.iterations},
                                         {"sized_for", kernel.sizedFor},
                                         {"entry", "k"},
                                         {"grid", kernel.blocks()},
                                         {"block", threadsPerBlock},
                                         {"buffers", kernel.inPlace ? 1 : 2},
                                         {"bytes", kernel.elements() * 4},
                                         {"ptx", kernel.ptx()}});
  };
  // In place, so that it is launched singly here as well.
  Kernel empty;
  empty.kind = Kind::Empty;
  empty.inPlace = true;
  empty.multiprocessors = peer.device().multiprocessors;
  add(study::nameOf(empty.kind), empty);
  for (const Cell &cell : cells)
    if (cell.slower == 0 && !cell.inPlace)
      add(cell.name(), cell.original);
  std::error_code code;
  llvm::raw_fd_ostream file(options.peers, code);
  if (code)
    return makeError(ErrorKind::Unavailable,
                     "cannot write " + options.peers + ": " + code.message());
  file << llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object{
                                       {"device", peer.device().name},
                                       {"l2_bytes", peer.device().l2Bytes},
                                       {"kernels", std::move(kernels)}}));
  return llvm::Error::success();
}

/// Times what writePeers() wrote: an object with times in us by name, and one
/// with the number of launches in a sample.
llvm::Error Study::timePeers() {
  auto text = llvm::MemoryBuffer::getFile(options.time);
  if (!text)
    return makeError(ErrorKind::BadInput, "cannot read " + options.time + ": " +
                                              text.getError().message());
  auto json = llvm::json::parse((*text)->getBuffer());
  if (!json)
    return addContext(json.takeError(), options.time);
  const llvm::json::Object *file = json->getAsObject();
  const llvm::json::Array *kernels = file ? file->getArray("kernels") : nullptr;
  if (!kernels)
    return makeError(ErrorKind::BadInput,
                     options.time + ": no kernels, as --peers writes them");
  llvm::json::Object times, batches;
  for (const llvm::json::Value &each : *kernels) {
    const llvm::json::Object *entry = each.getAsObject();
    auto name = entry ? entry->getString("name") : std::nullopt;
    auto kind = entry ? entry->getString("kind") : std::nullopt;
    auto iterations = entry ? entry->getInteger("iterations") : std::nullopt;
    auto sizedFor = entry ? entry->getInteger("sized_for") : std::nullopt;
    auto buffers = entry ? entry->getInteger("buffers") : std::nullopt;
    if (!name || !kind || !iterations || !sizedFor || !buffers)
      return makeError(ErrorKind::BadInput,
                       options.time + ": a kernel wants name, kind, "
                                      "iterations, sized_for and buffers");
    Kernel kernel;
    for (Kind one : {Kind::Compute, Kind::Memory, Kind::Empty})
      if (study::nameOf(one) == *kind)
        kernel.kind = one;
    kernel.inPlace = *buffers == 1;
    kernel.iterations = *iterations;
    kernel.sizedFor = *sizedFor;
    kernel.mostBlocks = mostPeerBlocks;
    kernel.multiprocessors = peer.device().multiprocessors;
    if (entry->getString("ptx") != llvm::StringRef(kernel.ptx()))
      return makeError(ErrorKind::BadInput,
                       options.time + ": " + *name +
                           " is of another GPU or another version");
    auto result = race(kernel, kernel, 64);
    if (!result)
      return result.takeError();
    if (!result->measurement || result->measurement->originalUs.empty())
      return makeError(ErrorKind::Unavailable,
                       *name + " cannot be timed: " + result->message);
    const Measurement &m = *result->measurement;
    std::vector<double> all = m.originalUs;
    all.insert(all.end(), m.candidateUs.begin(), m.candidateUs.end());
    times[*name] = median(all);
    batches[*name] = m.batch;
  }
  llvm::outs() << llvm::json::Value(llvm::json::Object{
                      {"us", std::move(times)}, {"batch", std::move(batches)}})
               << '\n';
  return llvm::Error::success();
}

/// An error where a kernel does not compute what it should: on a device without
/// times.
llvm::Error Study::check() {
  unsigned wrong = 0;
  for (Kind kind : {Kind::Compute, Kind::Memory})
    for (bool inPlace : {false, true}) {
      Kernel kernel;
      kernel.kind = kind;
      kernel.inPlace = inPlace;
      kernel.multiprocessors = 2;
      kernel.iterations = kernel.sizedFor = 3000;
      Kernel slow = kernel;
      slow.iterations += 61;
      EvaluateOptions how;
      how.seed = seed++;
      how.measure = false;
      how.full = false;
      auto result = peer.evaluate(slow, kernel, how);
      if (!result)
        return result.takeError();
      llvm::outs() << study::nameOf(kind) << (inPlace ? ", in place" : "")
                   << ": " << fsr::nameOf(result->verdict) << ": "
                   << result->message << '\n';
      // A model may find them equally fast.
      wrong += result->verdict != Verdict::Undecided &&
               result->verdict != Verdict::NotFaster;
    }
  if (wrong)
    return makeError(ErrorKind::BadInput, llvm::Twine(wrong) +
                                              " of 4 pairs of kernels do not "
                                              "compute the same");
  return llvm::Error::success();
}

llvm::Error Study::run() {
  std::error_code code;
  out = std::make_unique<llvm::raw_fd_ostream>(options.out, code);
  if (!code && !options.samples.empty())
    samples = std::make_unique<llvm::raw_fd_ostream>(options.samples, code);
  if (code)
    return makeError(ErrorKind::Unavailable,
                     "cannot write the results: " + code.message());
  writeHead(*out);
  Clock::time_point start = Clock::now();
  end = start + std::chrono::milliseconds(int64_t(options.minutes * 60e3));
  auto seconds = [&] {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  if (llvm::Error error = fitAll())
    return error;
  llvm::outs() << llvm::formatv("{0}: {1} kernels fitted in {2:f1} s\n",
                                peer.device().name, cells.size(), seconds());
  if (!options.peers.empty())
    return writePeers();
  if (llvm::Error error = quickLooks())
    return error;
  if (llvm::Error error = confirmations())
    return error;
  if (llvm::Error error = takeTurns())
    return error;
  std::vector<const Cell *> all, equal, two, five;
  for (const Cell &cell : cells) {
    all.push_back(&cell);
    (cell.slower == 0      ? equal
     : cell.slower == 0.02 ? two
                           : five)
        .push_back(&cell);
  }
  printTable(llvm::outs(), "equal kernels", equal);
  printTable(llvm::outs(), "original slower by 2 %", two);
  printTable(llvm::outs(), "original slower by 5 %", five);
  printBars(llvm::outs(), all);
  llvm::outs() << llvm::formatv("{0:f1} s in all\n", seconds());
  return llvm::Error::success();
}

} // namespace

int main(int argc, char **argv) {
  llvm::ExitOnError check("measure-study: error: ");
  Options options;
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef word = argv[i];
    bool bad = false;
    if (word.consume_front("--device="))
      options.device = word.str();
    else if (word.consume_front("--minutes="))
      bad = word.getAsDouble(options.minutes) || options.minutes <= 0;
    else if (word.consume_front("--runs="))
      bad = word.getAsInteger(10, options.runs);
    else if (word.consume_front("--only="))
      bad = (options.only = word.str()) != "long" && options.only != "short";
    else if (word.consume_front("--out="))
      options.out = word.str();
    else if (word.consume_front("--samples="))
      options.samples = word.str();
    else if (word.consume_front("--peers="))
      options.peers = word.str();
    else if (word.consume_front("--time="))
      options.time = word.str();
    else
      bad = true;
    if (word == "--help") {
      llvm::outs() << usage;
      return 0;
    }
    if (bad) {
      llvm::errs() << usage;
      return 2;
    }
  }
  auto backend = check(openBackend(options.device));
  auto peer = check(Peer::start(*backend));
  Study study(*peer, options);
  check(backend->virtualDevice() ? study.check()
        : options.time.empty()   ? study.run()
                                 : study.timePeers());
  return 0;
}
