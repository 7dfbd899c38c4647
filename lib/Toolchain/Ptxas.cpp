// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The toolkit's programs on text that we made ourselves. Files lie in a private
// folder that is gone afterwards; their names never reach the result, so the
// same input gives the same bytes.
//
//===----------------------------------------------------------------------===//

#include "Log.h"
#include "Tools.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"
#include "fsr/Support/Subprocess.h"
#include "fsr/Toolchain/Toolchain.h"

#include <algorithm>

using llvm::StringRef;

namespace fsr {
namespace {

/// The number that stands before `what` in `line`: 512 for " bytes smem".
int64_t numberBefore(StringRef line, StringRef what) {
  size_t at = line.find(what);
  if (at == StringRef::npos)
    return 0;
  StringRef before = line.take_front(at);
  StringRef digits = before.take_back(
      before.size() - (before.find_last_not_of("0123456789") + 1));
  int64_t value = 0;
  return digits.getAsInteger(10, value) ? 0 : value;
}

/// The text between the first two quotes.
StringRef quoted(StringRef line) {
  return line.split('\'').second.split('\'').first;
}

} // namespace

std::vector<KernelResources> parseResourceReport(StringRef log) {
  std::vector<KernelResources> kernels;
  KernelResources *current = nullptr;
  bool propertiesOfCurrent = false;
  while (!log.empty()) {
    auto [line, rest] = log.split('\n');
    log = rest;
    // Reports start in the first column; a compiler's echo of a source is
    // indented.
    if (line.starts_with("ptxas info") &&
        line.contains(": Compiling entry function '")) {
      StringRef name = quoted(line);
      auto *it = kernels.data();
      auto *end = it + kernels.size();
      it = std::find_if(
          it, end, [&](const KernelResources &k) { return k.kernel == name; });
      if (it == end) {
        kernels.emplace_back();
        it = &kernels.back();
      }
      *it = {};
      it->kernel = name.str();
      current = it;
      propertiesOfCurrent = false;
    } else if (line.starts_with("ptxas info") &&
               line.contains(": Function properties for ")) {
      StringRef name = line.split(": Function properties for ").second.trim();
      propertiesOfCurrent = current && name == current->kernel;
    } else if (current && propertiesOfCurrent &&
               line.contains(" bytes stack frame")) {
      current->stackBytes = numberBefore(line, " bytes stack frame");
      current->spillStoreBytes = numberBefore(line, " bytes spill stores");
      current->spillLoadBytes = numberBefore(line, " bytes spill loads");
    } else if (current && line.starts_with("ptxas info") &&
               line.contains(": Used ")) {
      current->registers = numberBefore(line, " registers");
      current->sharedBytes = numberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

llvm::Expected<Build> assemblePtx(const Toolkit &toolkit, StringRef ptx,
                                  StringRef chip, unsigned optLevel) {
  if (toolkit.ptxas.empty())
    return makeError(ErrorKind::Unavailable, "no bin/ptxas in " + toolkit.root);
  llvm::Expected<Target> target = Target::parse(chip);
  if (!target)
    return target.takeError();
  llvm::Expected<PrivateFolder> folder = PrivateFolder::make();
  if (!folder)
    return folder.takeError();
  std::string input = folder->file("kernel.ptx");
  std::string output = folder->file("kernel.cubin");
  if (llvm::Error error = writeFileAtomically(input, ptx))
    return std::move(error);
  llvm::Expected<ProcessResult> run =
      runTool("ptxas", toolkit, *folder,
              {toolkit.ptxas, "-v", "-O" + std::to_string(optLevel),
               "--gpu-name", chip.str(), input, "-o", output});
  if (!run)
    return run.takeError();
  llvm::Expected<std::string> cubin = readFile(output);
  if (!cubin)
    return cubin.takeError();
  Build build;
  build.ptx = ptx.str();
  build.cubin = std::move(*cubin);
  build.chip = chip.str();
  build.resources = parseResourceReport(run->err + run->out);
  build.log = scrubLog(run->err + run->out);
  llvm::Expected<ProcessResult> version =
      runTool("ptxas", toolkit, *folder, {toolkit.ptxas, "--version"});
  if (!version)
    return version.takeError();
  // "Cuda compilation tools, release 13.0, V13.0.88"
  StringRef release =
      StringRef(version->out).split("release ").second.split(',').first;
  build.toolchain =
      ("ptxas " + (release.empty() ? "of unknown version" : release)).str();
  return build;
}

llvm::Expected<std::string> makeFatbin(const Toolkit &toolkit,
                                       const Build &build) {
  if (toolkit.fatbinary.empty())
    return makeError(ErrorKind::Unavailable,
                     "no bin/fatbinary in " + toolkit.root);
  llvm::Expected<Target> target = Target::parse(build.chip);
  if (!target)
    return target.takeError();
  llvm::Expected<PrivateFolder> folder = PrivateFolder::make();
  if (!folder)
    return folder.takeError();
  std::string ptx = folder->file("kernel.ptx");
  std::string cubin = folder->file("kernel.cubin");
  std::string output = folder->file("kernel.fatbin");
  if (llvm::Error error = writeFileAtomically(ptx, build.ptx))
    return std::move(error);
  if (llvm::Error error = writeFileAtomically(cubin, build.cubin))
    return std::move(error);
  std::string sm = "sm=" + StringRef(build.chip).drop_front(3).str();
  llvm::Expected<ProcessResult> run =
      runTool("fatbinary", toolkit, *folder,
              {toolkit.fatbinary, "--create=" + output, "-64",
               "--image3=kind=elf," + sm + ",file=" + cubin,
               "--image3=kind=ptx," + sm + ",file=" + ptx});
  if (!run)
    return run.takeError();
  return readFile(output);
}

} // namespace fsr
