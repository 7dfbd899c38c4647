// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Finding a CUDA toolkit. What the user names is final: a wrong CUDA_PATH is an
// error and no reason to look elsewhere, so that a build never silently uses
// another toolkit than the one asked for.
//
//===----------------------------------------------------------------------===//

#include "fsr/Toolchain/Toolchain.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdlib>

using llvm::StringRef;
namespace sys = llvm::sys;

namespace fsr {
namespace {

std::string join(StringRef folder, const llvm::Twine &name) {
  llvm::SmallString<256> path(folder);
  sys::path::append(path, name);
  return std::string(path);
}

std::string ifThere(const std::string &path) {
  return sys::fs::exists(path) ? path : std::string();
}

/// libnvrtc.so, else the newest libnvrtc.so.NN; names with more dots are
/// reached through these.
std::string nvrtcIn(const std::string &folder) {
  std::string plain = join(folder, "libnvrtc.so");
  if (sys::fs::exists(plain))
    return plain;
  for (int major = 19; major >= 10; --major) {
    std::string versioned = plain + "." + std::to_string(major);
    if (sys::fs::exists(versioned))
      return versioned;
  }
  return "";
}

std::string findNvrtc(StringRef root) {
  for (const char *name : {"lib64", "lib"})
    if (std::string path = nvrtcIn(join(root, name)); !path.empty())
      return path;
  std::vector<std::string> targets;
  std::error_code error;
  for (sys::fs::directory_iterator it(join(root, "targets"), error), end;
       it != end && !error; it.increment(error))
    targets.push_back(it->path());
  llvm::sort(targets);
  for (const std::string &target : targets)
    if (std::string path = nvrtcIn(join(target, "lib")); !path.empty())
      return path;
  return "";
}

/// Nothing where the folder holds neither ptxas nor NVRTC.
std::optional<Toolkit> toolkitAt(StringRef root) {
  Toolkit toolkit;
  toolkit.root = root.str();
  toolkit.ptxas = ifThere(join(root, "bin/ptxas"));
  toolkit.fatbinary = ifThere(join(root, "bin/fatbinary"));
  toolkit.disassembler = ifThere(join(root, "bin/nvdisasm"));
  if (toolkit.disassembler.empty())
    toolkit.disassembler = findOnPath("nvdisasm");
  toolkit.nvrtcLibrary = findNvrtc(root);
  toolkit.includeFolder = ifThere(join(root, "include"));
  if (toolkit.ptxas.empty() && toolkit.nvrtcLibrary.empty())
    return std::nullopt;
  return toolkit;
}

} // namespace

llvm::Expected<Toolkit> findToolkit() {
  if (const char *path = std::getenv("CUDA_PATH"); path && *path) {
    if (std::optional<Toolkit> toolkit = toolkitAt(path))
      return *toolkit;
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("no CUDA toolkit in CUDA_PATH=") + path +
                         ": neither bin/ptxas nor libnvrtc.so in lib64, lib or "
                         "targets/*/lib");
  }
  std::vector<std::string> places;
  for (const char *name : {"CUDA_HOME", "CUDA_ROOT"})
    if (const char *path = std::getenv(name); path && *path)
      places.push_back(path);
  if (std::string ptxas = findOnPath("ptxas"); !ptxas.empty()) {
    llvm::SmallString<256> real;
    if (!sys::fs::real_path(ptxas, real))
      ptxas = std::string(real);
    places.push_back(
        sys::path::parent_path(sys::path::parent_path(ptxas)).str());
  }
  places.push_back("/usr/local/cuda");
  for (const std::string &place : places)
    if (std::optional<Toolkit> toolkit = toolkitAt(place))
      return *toolkit;
  return makeError(ErrorKind::Unavailable,
                   "no CUDA toolkit in " + llvm::join(places, ", ") +
                       "; set CUDA_PATH to the folder that holds bin/ptxas");
}

Compiler::~Compiler() = default;

} // namespace fsr
