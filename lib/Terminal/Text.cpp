// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Columns are counted with LLVM's table of character widths, so
// that a strategy in another script does not shift what stands behind it.
//
//===----------------------------------------------------------------------===//

#include "fsr/Terminal/Text.h"

#include "fsr/Support/Printable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Unicode.h"

#include <cstdlib>
#include <map>

using namespace fsr;

std::string fsr::coloured(const llvm::raw_ostream &os, Colour colour,
                          llvm::StringRef text) {
  const char *start = nullptr;
  switch (colour) {
  case Colour::None:
    break;
  case Colour::Good:
    start = "\x1b[32m";
    break;
  case Colour::Bad:
    start = "\x1b[31m";
    break;
  case Colour::Dim:
    start = "\x1b[2m";
    break;
  case Colour::Bold:
    start = "\x1b[1m";
    break;
  }
  const char *no = std::getenv("NO_COLOR");
  if (!start || !os.has_colors() || (no && *no))
    return text.str();
  return (start + text + "\x1b[0m").str();
}

size_t fsr::columnsOf(llvm::StringRef text) {
  int columns = llvm::sys::unicode::columnWidthUTF8(text);
  return columns < 0 ? text.size() : columns;
}

std::string fsr::padded(llvm::StringRef text, size_t columns) {
  size_t used = columnsOf(text);
  return text.str() + std::string(columns > used ? columns - used : 0, ' ');
}

std::string fsr::oneLine(llvm::StringRef text, size_t columns) {
  auto [line, rest] = text.trim().split('\n');
  std::string out = printable(line.rtrim());
  bool cut = !rest.trim().empty();
  while (columnsOf(out) + (cut ? 1 : 0) > columns) {
    cut = true;
    // A whole character: its last byte and what continues it.
    while (!out.empty() &&
           (static_cast<unsigned char>(out.back()) & 0xc0) == 0x80)
      out.pop_back();
    if (out.empty())
      break;
    out.pop_back();
  }
  return cut ? out + "…" : out;
}

std::string fsr::gainText(const Measurement &measurement, bool isModelled) {
  if (measurement.candidateUs.empty() && measurement.speedup == 0)
    return "";
  // A model has no interval.
  if (isModelled)
    return llvm::formatv("{0:f2}x modelled", measurement.speedup).str();
  return llvm::formatv("{0:f2}x [{1:f2}, {2:f2}]", measurement.speedup,
                       measurement.speedupLow, measurement.speedupHigh)
      .str();
}

std::string fsr::gainText(const Trial &trial) {
  return trial.measurement ? gainText(*trial.measurement, trial.isModelled)
                           : std::string();
}

std::string fsr::gainText(const Record &record) {
  return gainText(record.measurement,
                  record.evidence.level == EvidenceLevel::Modelled);
}

std::string fsr::parametersText(const Parameters &parameters) {
  std::string out;
  for (const auto &[name, value] : parameters)
    out +=
        (out.empty() ? "" : " ") + printable(name) + "=" + llvm::itostr(value);
  return out.empty() ? "-" : out;
}

std::string fsr::countsText(const std::vector<Trial> &trials) {
  std::map<Verdict, size_t> counts;
  for (const Trial &trial : trials)
    ++counts[trial.verdict];
  if (counts.empty())
    return "none";
  std::string out = llvm::utostr(trials.size()) + ":";
  const char *separator = " ";
  for (auto [verdict, count] : counts) {
    out += separator + llvm::utostr(count) + " " + nameOf(verdict).str();
    separator = ", ";
  }
  return out;
}

Colour fsr::colourOf(Verdict verdict) {
  switch (verdict) {
  case Verdict::Accepted:
    return Colour::Good;
  case Verdict::NotFaster:
  case Verdict::Undecided:
    return Colour::None;
  case Verdict::Mismatch:
  case Verdict::Unsafe:
  case Verdict::CompileFailed:
  case Verdict::Rejected:
  case Verdict::LaunchFailed:
  case Verdict::Crashed:
  case Verdict::TimedOut:
  case Verdict::Implausible:
    break;
  }
  return Colour::Bad;
}
