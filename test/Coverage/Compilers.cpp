// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The three compilers. All make PTX for sm_90a, with line information, at their
// usual level of optimisation.
//
//===----------------------------------------------------------------------===//

#include "Compilers.h"

#include "Nvrtc.h"

#include "fsr/Support/Error.h"
#include "fsr/Toolchain/Toolchain.h"

#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

namespace fsr::ptx {

static llvm::Expected<std::string> readFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return makeError(ErrorKind::BadInput, "cannot read " + path + ": " +
                                              buffer.getError().message());
  return (*buffer)->getBuffer().str();
}

llvm::Expected<std::string> PtxCompiler::compile(const std::string &path,
                                                 const std::string &cacheFolder,
                                                 std::string &log) {
  llvm::Expected<std::string> source = readFile(path);
  if (!source)
    return source.takeError();
  std::string cached;
  if (!cacheFolder.empty()) {
    uint64_t hash = llvm::xxh3_64bits(*source + '\0' + version + '\0' +
                                      llvm::join(arguments, " "));
    cached = (cacheFolder + "/" + name + "-" + llvm::sys::path::stem(path) +
              "-" + llvm::utohexstr(hash) + ".ptx")
                 .str();
    if (llvm::sys::fs::exists(cached))
      return readFile(cached);
  }
  llvm::Expected<std::string> ptx = compileNow(path, *source, log);
  if (!ptx || ptx->empty() || cached.empty())
    return ptx;
  // Beside its place first, so that a run that is stopped leaves no half.
  std::string part = cached + ".part";
  std::error_code failed = llvm::sys::fs::create_directories(cacheFolder);
  if (!failed) {
    llvm::raw_fd_ostream file(part, failed);
    file << *ptx;
  }
  if (!failed)
    failed = llvm::sys::fs::rename(part, cached);
  if (failed)
    return makeError(ErrorKind::Unavailable,
                     "cannot write " + cached + ": " + failed.message());
  return ptx;
}

namespace {

class NvrtcCompiler : public PtxCompiler {
public:
  NvrtcCompiler(Nvrtc nvrtc, const Toolkit &toolkit) : nvrtc(nvrtc) {
    name = "nvrtc";
    version = std::to_string(nvrtc.majorVersion()) + "." +
              std::to_string(nvrtc.minorVersion());
    arguments = {"--gpu-architecture=compute_90a",
                 "-std=c++17",
                 "-lineinfo",
                 "-I" + toolkit.includeFolder,
                 "-I" + toolkit.includeFolder + "/cccl",
                 "-diag-suppress=177,550",
                 "--device-int128"};
  }

private:
  llvm::Expected<std::string> compileNow(const std::string &,
                                         const std::string &source,
                                         std::string &log) override {
    auto result = nvrtc.compile(source, {}, arguments);
    if (!result)
      return result.takeError();
    log = result->log;
    return result->compiled ? result->ptx : std::string();
  }

  Nvrtc nvrtc;
};

class ChildCompiler : public PtxCompiler {
public:
  ChildCompiler(std::string name, std::string program, std::string version,
                std::vector<std::string> arguments)
      : program(std::move(program)) {
    this->name = std::move(name);
    this->version = std::move(version);
    this->arguments = std::move(arguments);
  }

private:
  llvm::Expected<std::string> compileNow(const std::string &path,
                                         const std::string &,
                                         std::string &log) override {
    llvm::SmallString<128> output, errors;
    if (std::error_code failed =
            llvm::sys::fs::createTemporaryFile("coverage", "ptx", output))
      return makeError(ErrorKind::Unavailable,
                       "temporary file: " + failed.message());
    if (std::error_code failed =
            llvm::sys::fs::createTemporaryFile("coverage", "log", errors))
      return makeError(ErrorKind::Unavailable,
                       "temporary file: " + failed.message());
    llvm::scope_exit remove([&] {
      llvm::sys::fs::remove(output);
      llvm::sys::fs::remove(errors);
    });
    std::vector<llvm::StringRef> all{program};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {path, "-o", output.str()});
    std::optional<llvm::StringRef> redirects[] = {llvm::StringRef(""),
                                                  errors.str(), errors.str()};
    std::string why;
    int status = llvm::sys::ExecuteAndWait(program, all, std::nullopt,
                                           redirects, 600, 0, &why);
    if (status < 0)
      return makeError(ErrorKind::Unavailable, program + ": " + why);
    llvm::Expected<std::string> said = readFile(std::string(errors));
    if (!said)
      return said.takeError();
    log = *said;
    if (status)
      return std::string();
    return readFile(std::string(output));
  }

  std::string program;
};

} // namespace

std::vector<std::unique_ptr<PtxCompiler>> findCompilers() {
  std::vector<std::unique_ptr<PtxCompiler>> compilers;
  llvm::Expected<Toolkit> toolkit = findToolkit();
  if (!toolkit) {
    consumeError(toolkit.takeError());
    return compilers;
  }
  std::string version;
  if (!toolkit->nvrtcLibrary.empty()) {
    if (auto nvrtc = Nvrtc::load(toolkit->nvrtcLibrary)) {
      compilers.push_back(std::make_unique<NvrtcCompiler>(*nvrtc, *toolkit));
      version = compilers.back()->version;
    } else {
      consumeError(nvrtc.takeError());
    }
  }
  if (std::string nvcc = toolkit->root + "/bin/nvcc";
      llvm::sys::fs::can_execute(nvcc))
    compilers.push_back(std::make_unique<ChildCompiler>(
        "nvcc", nvcc, version,
        std::vector<std::string>{"-ptx", "-arch=sm_90a", "-std=c++17",
                                 "-lineinfo", "-diag-suppress=177,550"}));
  for (const char *name : {"clang++-22", "clang-22"})
    if (auto clang = llvm::sys::findProgramByName(name)) {
      compilers.push_back(std::make_unique<ChildCompiler>(
          "clang", *clang, "22",
          std::vector<std::string>{
              "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90a",
              "--cuda-path=" + toolkit->root, "-S", "-O3", "-std=c++17",
              "-gline-tables-only", "-Wno-unknown-cuda-version",
              "-I" + toolkit->includeFolder + "/cccl"}));
      break;
    }
  return compilers;
}

} // namespace fsr::ptx
