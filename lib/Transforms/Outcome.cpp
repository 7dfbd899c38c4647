// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Remarks and the summary line. A ratio is never said without its interval and
// the device that it was measured on.
//
//===----------------------------------------------------------------------===//

#include "Outcome.h"

#include "fsr/Support/Counted.h"
#include "fsr/Support/Printable.h"

#include "mlir/IR/Remarks.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace fsr {

static std::string gainText(const Record &record) {
  const Measurement &m = record.measurement;
  if (record.evidence.level == EvidenceLevel::Modelled)
    return llvm::formatv("{0:f2}x modelled", m.speedup).str();
  return llvm::formatv("{0:f2}x [{1:f2}, {2:f2}]", m.speedup, m.speedupLow,
                       m.speedupHigh)
      .str();
}

void emitRemark(mlir::Location loc, const KernelOutcome &outcome) {
  using namespace mlir::remark;
  RemarkOpts opts =
      RemarkOpts::name(outcome.remark).category("fsr").function(outcome.name);
  if (outcome.kind == KernelOutcome::Kind::Replaced) {
    const Record &record = *outcome.record;
    passed(loc, opts) << reason("{0}, {1} us -> {2} us on {3}, evidence {4}",
                                gainText(record),
                                record.measurement.originalMedianUs,
                                record.measurement.candidateMedianUs,
                                printable(record.measurement.device),
                                nameOf(record.evidence.level))
                      << metric("record", record.id)
                      << metric("task", outcome.key);
    return;
  }
  if (outcome.rejected)
    failed(loc, opts) << reason("{0}", printable(outcome.detail));
  else
    missed(loc, opts) << reason("{0}", printable(outcome.detail));
}

std::string summaryLine(llvm::ArrayRef<KernelOutcome> outcomes,
                        unsigned skipped) {
  std::vector<const Record *> replaced;
  llvm::MapVector<llvm::StringRef, unsigned> kept;
  for (const KernelOutcome &outcome : outcomes) {
    if (outcome.kind == KernelOutcome::Kind::Replaced)
      replaced.push_back(&*outcome.record);
    else
      ++kept[outcome.reason];
  }
  std::string line;
  llvm::raw_string_ostream os(line);
  os << "fsr: " << counted(outcomes.size(), "kernel");
  if (outcomes.empty())
    return line;
  os << ": ";
  if (!replaced.empty()) {
    os << replaced.size() << " replaced (";
    llvm::SmallSetVector<llvm::StringRef, 2> devices;
    for (const Record *record : replaced)
      devices.insert(record->measurement.device);
    if (replaced.size() <= 3) {
      llvm::interleave(
          replaced, os, [&](const Record *record) { os << gainText(*record); },
          "; ");
    } else {
      double low = replaced.front()->measurement.speedup, high = low;
      for (const Record *record : replaced) {
        low = std::min(low, record->measurement.speedup);
        high = std::max(high, record->measurement.speedup);
      }
      os << llvm::formatv("{0:f2}x to {1:f2}x", low, high);
    }
    os << ", " << printable(llvm::join(devices, ", ")) << ")";
  }
  unsigned numKept = outcomes.size() - replaced.size();
  if (numKept) {
    os << (replaced.empty() ? "" : ", ") << numKept << " kept: ";
    llvm::interleave(
        kept, os,
        [&](const auto &entry) {
          if (kept.size() > 1)
            os << entry.second << " ";
          os << entry.first;
        },
        ", ");
  }
  // A kernel that was replaced may yet get better.
  size_t pending = 0;
  for (const KernelOutcome &outcome : outcomes)
    if (outcome.kind == KernelOutcome::Kind::Replaced)
      pending += outcome.pending.size();
  if (pending)
    os << "; " << counted(pending, "answer") << " pending";
  if (skipped)
    os << "; " << counted(skipped, "record") << " skipped";
  os << "; details: --remarks-filter=fsr";
  return line;
}

} // namespace fsr
