// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the evaluations of a study gave: one line each in a table for machines,
// and short tables for people.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_BENCHMARKS_MEASURESTUDY_RESULTS_H
#define FSR_BENCHMARKS_MEASURESTUDY_RESULTS_H

#include "Kernels.h"

#include "fsr/Device/Device.h"

#include "llvm/Support/raw_ostream.h"

namespace fsr::study {

/// One kernel in the study, and what is asked about it.
struct Cell {
  Kind kind = Kind::Compute;
  double targetUs = 0;
  bool inPlace = false;
  double slower = 0; ///< By so much the original is: 0, 0.02, 0.05.
  Kernel original, candidate;

  // Results.
  unsigned runs = 0, accepted = 0, notFaster = 0, undecided = 0, other = 0;
  std::vector<double> speedups, pairs, wallMs, spreads, noises, times;

  void add(const EvaluateResult &result, double wall);
  std::string name() const;
};

/// Median absolute deviation of the pairs' log ratios, as a standard deviation.
double spreadOf(const Measurement &measurement);

void writeHead(llvm::raw_ostream &to);
void writeLine(llvm::raw_ostream &to, const Cell &cell,
               const EvaluateResult &result, double wall);
void printTable(llvm::raw_ostream &to, llvm::StringRef title,
                llvm::ArrayRef<const Cell *> cells);
/// The bars, by kind of cell and duration, and whether they are kept.
void printBars(llvm::raw_ostream &to, llvm::ArrayRef<const Cell *> cells);

} // namespace fsr::study

#endif // FSR_BENCHMARKS_MEASURESTUDY_RESULTS_H
