// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the tests of the toolchain share: a compiler, or the reason to skip, and
// environment variables and files that are gone after a test.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_TOOLCHAIN_TOOLCHAINTESTING_H
#define FSR_TEST_UNIT_TOOLCHAIN_TOOLCHAINTESTING_H

#include "fsr/Support/Error.h"
#include "fsr/Toolchain/Toolchain.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

#include <cstdlib>

namespace fsr::testing {

/// Skips the test where there is no toolkit that can compile LLM text.
#define FSR_NEED_NVRTC()                                                       \
  do {                                                                         \
    llvm::Expected<fsr::Toolkit> found = fsr::findToolkit();                   \
    bool usable = bool(found) && !found->nvrtcLibrary.empty() &&               \
                  !found->ptxas.empty() && !found->fatbinary.empty();          \
    if (!found)                                                                \
      llvm::consumeError(found.takeError());                                   \
    if (!usable)                                                               \
      GTEST_SKIP() << "needs a CUDA toolkit with NVRTC";                       \
  } while (false)

inline std::unique_ptr<Compiler> newCompiler(CompilerOptions options = {}) {
  // A sanitized worker does not fit the sandbox: it maps terabytes. Then the
  // worker of another build is named.
  const char *other = std::getenv("FSR_TEST_WORKER");
  options.worker = other ? other : FSR_TEST_WORKER;
  auto compiler = makeCudaCompiler(options);
  if (!compiler) {
    ADD_FAILURE() << llvm::toString(compiler.takeError());
    return nullptr;
  }
  return std::move(*compiler);
}

/// Compiles `source`; a broken tool fails the test.
inline CompileOutcome compile(std::string source,
                              std::vector<std::string> entries = {"k"},
                              Parameters parameters = {},
                              CompilerOptions options = {}) {
  std::unique_ptr<Compiler> compiler = newCompiler(options);
  if (!compiler)
    return {};
  CompileRequest request;
  request.source = std::move(source);
  request.chip = "sm_90a";
  request.entries = std::move(entries);
  request.parameters = std::move(parameters);
  auto outcome = compiler->compile(request);
  if (!outcome) {
    ADD_FAILURE() << llvm::toString(outcome.takeError());
    return {};
  }
  return std::move(*outcome);
}

/// A launch of kernel `k(const float *x, float *y, long long n, float a)`, one
/// block of 128 threads.
inline KernelLaunch launchOfK() {
  KernelLaunch launch;
  launch.kernel = "k";
  launch.shape.block = {128, 1, 1};
  launch.args = {{"x", PassedArgument::Buffer, 8},
                 {"y", PassedArgument::Buffer, 8},
                 {"n", PassedArgument::Integer, 8},
                 {"a", PassedArgument::Float, 4}};
  return launch;
}

/// Compiles a body of that kernel, with what stands `before` it, against that
/// launch.
inline CompileOutcome compileBody(llvm::StringRef body,
                                  llvm::StringRef before = "",
                                  KernelLaunch launch = launchOfK()) {
  std::unique_ptr<Compiler> compiler = newCompiler();
  if (!compiler)
    return {};
  CompileRequest request;
  request.source = (before +
                    "\nextern \"C\" __global__ void k(const float *x, float "
                    "*y, long long n, float a) {\n" +
                    body + "\n}\n")
                       .str();
  request.chip = "sm_90";
  request.entries = {"k"};
  request.launches = {std::move(launch)};
  request.limits = LaunchLimits::of({"sm_90"});
  auto outcome = compiler->compile(request);
  if (!outcome) {
    ADD_FAILURE() << llvm::toString(outcome.takeError());
    return {};
  }
  return std::move(*outcome);
}

/// Sets a variable, or removes it, until the end of the scope.
class ScopedVariable {
public:
  ScopedVariable(const char *name, const char *value) : name(name) {
    if (const char *old = std::getenv(name))
      before = old;
    if (value)
      setenv(name, value, 1);
    else
      unsetenv(name);
  }
  ~ScopedVariable() {
    if (before)
      setenv(name, before->c_str(), 1);
    else
      unsetenv(name);
  }

private:
  const char *name;
  std::optional<std::string> before;
};

class TemporaryFolder {
public:
  TemporaryFolder() {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("fsr-test", path));
  }
  ~TemporaryFolder() { llvm::sys::fs::remove_directories(path); }
  std::string write(llvm::StringRef name, llvm::StringRef text) const {
    std::string file = (path + "/" + name).str();
    std::error_code error;
    llvm::raw_fd_ostream os(file, error);
    EXPECT_FALSE(error);
    os << text;
    return file;
  }
  llvm::SmallString<128> path;
};

} // namespace fsr::testing

#endif // FSR_TEST_UNIT_TOOLCHAIN_TOOLCHAINTESTING_H
