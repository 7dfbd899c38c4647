// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Counting, and printing what was counted.
//
//===----------------------------------------------------------------------===//

#include "Results.h"

#include "fsr/Core/Statistics.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

namespace fsr::study {

namespace {

double middle(llvm::ArrayRef<double> values) {
  return values.empty() ? 0 : median(values);
}

double share(unsigned part, unsigned whole) {
  return whole ? 100.0 * part / whole : 0;
}

} // namespace

double spreadOf(const Measurement &m) {
  std::vector<double> logs;
  for (auto [original, candidate] : llvm::zip(m.originalUs, m.candidateUs))
    logs.push_back(std::log(original / candidate));
  double centre = median(logs);
  for (double &each : logs)
    each = std::fabs(each - centre);
  return 1.4826 * median(logs);
}

std::string Cell::name() const {
  return llvm::formatv("{0} {1:f0} us{2}", nameOf(kind), targetUs,
                       inPlace ? ", in place" : "");
}

void Cell::add(const EvaluateResult &result, double wall) {
  ++runs;
  wallMs.push_back(wall);
  switch (result.verdict) {
  case Verdict::Accepted:
    ++accepted;
    break;
  case Verdict::NotFaster:
    ++notFaster;
    break;
  case Verdict::Undecided:
    ++undecided;
    break;
  default:
    ++other;
  }
  if (!result.measurement || result.measurement->originalUs.empty())
    return;
  const Measurement &m = *result.measurement;
  speedups.push_back(m.speedup);
  pairs.push_back(double(m.originalUs.size()));
  spreads.push_back(spreadOf(m));
  noises.push_back(m.noiseFloor);
  times.push_back(m.candidateMedianUs);
}

void writeHead(llvm::raw_ostream &to) {
  to << "kind\ttarget_us\tin_place\tslower\tverdict\tspeedup\tlow\thigh\tpairs"
        "\tdropped\tnoise\tspread\tbatch\toriginal_us\tcandidate_us\tclock_mhz"
        "\twall_ms\tmessage\n";
}

void writeLine(llvm::raw_ostream &to, const Cell &cell,
               const EvaluateResult &result, double wall) {
  Measurement m = result.measurement.value_or(Measurement());
  to << llvm::formatv(
      "{0}\t{1}\t{2}\t{3}\t{4}\t{5:f5}\t{6:f5}\t{7:f5}\t{8}\t{9}\t",
      nameOf(cell.kind), cell.targetUs, int(cell.inPlace), cell.slower,
      fsr::nameOf(result.verdict), m.speedup, m.speedupLow, m.speedupHigh,
      m.originalUs.size(), m.droppedPairs);
  to << llvm::formatv("{0:f5}\t{1:f5}\t{2}\t{3:f3}\t{4:f3}\t{5}\t{6:f1}\t{7}\n",
                      m.noiseFloor, m.originalUs.empty() ? 0 : spreadOf(m),
                      m.batch, m.originalMedianUs, m.candidateMedianUs,
                      m.smClockMhz, wall, result.message);
  to.flush();
}

void printTable(llvm::raw_ostream &to, llvm::StringRef title,
                llvm::ArrayRef<const Cell *> cells) {
  to << '\n' << title << '\n';
  to << "kernel                     runs  accepted  undecided  other  speedup  "
        "    us  pairs  spread  floor      ms\n";
  for (const Cell *cell : cells)
    if (cell->runs)
      to << llvm::formatv(
          "{0,-26} {1,4} {2,8:f1}% {3,9:f1}% {4,6} {5,8:f4} {6,7:f1} {7,6:f0} "
          "{8,6:f2}% {9,5:f2}% {10,7:f1}\n",
          cell->name(), cell->runs, share(cell->accepted, cell->runs),
          share(cell->undecided, cell->runs), cell->other,
          middle(cell->speedups), middle(cell->times), middle(cell->pairs),
          100 * middle(cell->spreads), 100 * middle(cell->noises),
          middle(cell->wallMs));
}

void printBars(llvm::raw_ostream &to, llvm::ArrayRef<const Cell *> cells) {
  struct Bar {
    const char *words;
    double slower, percent;
    bool atMost;
  };
  constexpr Bar bars[] = {
      {"equal kernels told faster", 0, 1, true},
      {"2 % told", 0.02, 80, false},
      {"5 % told", 0.05, 99, false},
  };
  to << "\nbars\n";
  for (bool isShort : {false, true})
    for (bool inPlace : {false, true})
      for (const Bar &bar : bars) {
        unsigned runs = 0, accepted = 0, undecided = 0;
        for (const Cell *cell : cells)
          if (cell->slower == bar.slower && (cell->targetUs < 50) == isShort &&
              cell->inPlace == inPlace) {
            runs += cell->runs;
            accepted += cell->accepted;
            undecided += cell->undecided;
          }
        if (!runs)
          continue;
        double told = share(accepted, runs);
        bool kept = bar.atMost ? told <= bar.percent : told >= bar.percent;
        to << llvm::formatv(
            "{0} {1}{2}: {3} of {4}, {5:f2} % (bar: {6} {7} %), undecided "
            "{8:f1} %\n",
            kept ? "kept  " : "MISSED", bar.words,
            !isShort  ? ", from 50 us"
            : inPlace ? ", below 50 us, never batched"
                      : ", below 50 us, batched below 20 us",
            accepted, runs, told, bar.atMost ? "at most" : "at least",
            bar.percent, share(undecided, runs));
      }
}

} // namespace fsr::study
