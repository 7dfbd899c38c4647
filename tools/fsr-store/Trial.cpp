// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All that a store keeps of a trial: where its file lies, every sample, the
// state of the device, and the evidence. Texts were written by an LLM or by
// whoever wrote the store.
//
//===----------------------------------------------------------------------===//

#include "Commands.h"

#include "fsr/Support/Counted.h"
#include "fsr/Terminal/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace fsr;

static void printSamples(llvm::StringRef name, llvm::ArrayRef<double> samples,
                         const char *form, llvm::raw_ostream &os) {
  constexpr size_t samplesOfLine = 10;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (i % samplesOfLine == 0)
      os << (i ? "\n" : "") << "    " << padded(i ? "" : name, 18);
    os << llvm::formatv(form, samples[i]);
  }
  if (!samples.empty())
    os << "\n";
}

static void print(const Conditions &conditions, llvm::raw_ostream &os) {
  os << "    conditions        driver " << printable(conditions.driver);
  auto add = [&](double value, const char *unit, llvm::StringRef what) {
    if (value >= 0)
      os << ", " << what << llvm::formatv(" {0:f0}", value) << unit;
  };
  add(conditions.clockMhz, " MHz", "clock");
  add(conditions.memoryClockMhz, " MHz", "memory clock");
  add(conditions.temperatureC, " C", "temperature");
  add(conditions.powerWatts, " W", "power");
  add(conditions.powerLimitWatts, " W", "power limit");
  add(conditions.otherProcesses, "", "other processes");
  if (!conditions.clockLimits.empty())
    os << ", the clock held down by "
       << printable(llvm::join(conditions.clockLimits, ", "));
  os << "\n";
}

static void print(const Measurement &m, bool isModelled,
                  llvm::raw_ostream &os) {
  os << "  " << (isModelled ? "modelled for " : "measured on ")
     << printable(m.device) << ": " << gainText(m, isModelled)
     << llvm::formatv(", original {0:f2} us, candidate {1:f2} us",
                      m.originalMedianUs, m.candidateMedianUs);
  if (!isModelled)
    os << llvm::formatv("; {0}, {1} dropped, launches a sample: {2}, noise "
                        "floor {3:f2} %",
                        counted(m.originalUs.size(), "pair"), m.droppedPairs,
                        m.batch, m.noiseFloor * 100);
  os << "\n";
  printSamples("original, us", m.originalUs, " {0,9:f3}", os);
  printSamples("candidate, us", m.candidateUs, " {0,9:f3}", os);
  printSamples("original, cycles", m.originalCycles, " {0,9:f0}", os);
  printSamples("candidate, cycles", m.candidateCycles, " {0,9:f0}", os);
  if (m.conditions)
    print(*m.conditions, os);
  else if (!isModelled)
    os << "    conditions        not kept\n";
}

void fsr::printTrial(const Trial &trial, const TaskHistory &task,
                     llvm::raw_ostream &os) {
  os << coloured(os, Colour::Bold, parametersText(trial.parameters)) << ": "
     << coloured(os, colourOf(trial.verdict), nameOf(trial.verdict))
     << (trial.full ? ", put to all checks" : ", put to the quick checks only")
     << "\n  trials/" << task.key << "/" << trial.key() << ".json\n";
  for (const Record &record : task.records)
    if (record.parameters == trial.parameters &&
        record.candidate.hash() == trial.candidateHash)
      os << "  records/" << task.key << "/" << printable(record.target) << "/"
         << record.id << "\n";
  if (!trial.message.empty()) {
    std::string message = printable(trial.message, /*keepLines=*/true);
    for (llvm::StringRef line :
         llvm::split(llvm::StringRef(message).rtrim(), '\n'))
      os << "  " << line << "\n";
  }
  if (trial.measurement)
    print(*trial.measurement, trial.isModelled, os);
  os << "  evidence " << nameOf(trial.evidence.level);
  if (!trial.evidence.toolchain.empty())
    os << ", " << printable(trial.evidence.toolchain);
  os << "\n";
  if (!trial.evidence.checks.empty())
    printChecks(trial.evidence.checks, os);
}
