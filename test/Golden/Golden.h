// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A golden file: what a device gave for each form and for each random kernel,
// with its name. A file stands for itself: it holds the forms' lines, and
// inputs follow from these. Text and little-endian bytes:
//
//   fsr golden 1\n  DEVICE\n
//   form LINE\n BYTES\n BYTES…      the number in decimal, then so many bytes
//   program SEED OPT\n BYTES\n BYTES…
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_GOLDEN_GOLDEN_H
#define FSR_TEST_GOLDEN_GOLDEN_H

#include "Form.h"
#include "Runner.h"

#include "llvm/Support/raw_ostream.h"

namespace fsr::golden {

struct GoldenForm {
  Form form;
  std::string kept;
};
struct GoldenProgram {
  uint64_t seed = 0;
  unsigned optLevel = 0;
  std::string kept;
};
struct GoldenFile {
  std::string device;
  std::vector<GoldenForm> forms;
  std::vector<GoldenProgram> programs;
};

std::string writeGolden(const GoldenFile &file);
llvm::Expected<GoldenFile> readGolden(llvm::StringRef bytes);
/// Reads `path`, or where it is not there its pieces, `path`.1 and on, which
/// `split` makes of a file that is too large to be checked in.
llvm::Expected<GoldenFile> loadGolden(const llvm::Twine &path);

/// A form or a kernel that has no result, and why.
struct Refusal {
  std::string line, why;
};

/// Runs all on `runner`; the kernels of seeds 1 to `programs` at the levels
/// named.
llvm::Expected<GoldenFile>
record(Runner &runner, const std::vector<Form> &forms, unsigned programs,
       llvm::ArrayRef<unsigned> optLevels, std::vector<Refusal> &refused);

struct CheckResult {
  unsigned forms = 0, programs = 0;
  /// Not supported: no result to compare.
  std::vector<Refusal> unsupported;
  std::vector<Refusal> wrong;
  /// Kernels whose golden results differ between levels of optimisation: those
  /// of the lowest count.
  std::vector<uint64_t> unstable;
};
/// Runs the forms of `file` and its kernels under each schedule on the virtual
/// device, and compares.
llvm::Expected<CheckResult> checkVirtual(const GoldenFile &file);
/// Compares two files bit for bit, `other` being the newer one.
CheckResult compareFiles(const GoldenFile &file, const GoldenFile &other);

} // namespace fsr::golden

#endif // FSR_TEST_GOLDEN_GOLDEN_H
