// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where a toolkit is looked for, with folders that the tests make.
//
//===----------------------------------------------------------------------===//

#include "ToolchainTesting.h"

#include "llvm/ADT/StringRef.h"

using namespace fsr;
using namespace fsr::testing;
using llvm::StringRef;

namespace {

void makeFile(const TemporaryFolder &folder, StringRef parent, StringRef name) {
  ASSERT_FALSE(llvm::sys::fs::create_directories(folder.path + "/" + parent));
  folder.write((parent + "/" + name).str(), "");
}

TEST(Toolkit, EmptyCudaPathIsFinal) {
  TemporaryFolder folder;
  std::string path(folder.path);
  ScopedVariable variable("CUDA_PATH", path.c_str());
  auto toolkit = findToolkit();
  ASSERT_FALSE(toolkit);
  llvm::Error error = toolkit.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  std::string message = llvm::toString(std::move(error));
  EXPECT_TRUE(StringRef(message).contains("CUDA_PATH=" + path)) << message;
  auto compiler = makeCudaCompiler({});
  ASSERT_FALSE(compiler);
  EXPECT_EQ(llvm::toString(compiler.takeError()), message);
}

TEST(Toolkit, FindsNvrtcInEachPlace) {
  for (auto [parent, name] : {std::pair("lib64", "libnvrtc.so"),
                              {"lib", "libnvrtc.so.12"},
                              {"targets/x86_64-linux/lib", "libnvrtc.so.13"}}) {
    TemporaryFolder folder;
    makeFile(folder, parent, name);
    std::string path(folder.path);
    ScopedVariable variable("CUDA_PATH", path.c_str());
    auto toolkit = findToolkit();
    ASSERT_TRUE(bool(toolkit)) << llvm::toString(toolkit.takeError());
    EXPECT_EQ(toolkit->root, path);
    EXPECT_EQ(toolkit->nvrtcLibrary, path + "/" + parent + "/" + name);
    EXPECT_EQ(toolkit->ptxas, "");
    EXPECT_EQ(toolkit->includeFolder, "");
  }
}

TEST(Toolkit, OtherVariablesAndTheSearchPath) {
  TemporaryFolder home, onPath;
  makeFile(home, "lib64", "libnvrtc.so");
  makeFile(onPath, "bin", "ptxas");
  std::string homePath(home.path), program(onPath.path);
  llvm::SmallString<128> real;
  ASSERT_FALSE(llvm::sys::fs::real_path(onPath.path, real));
  program += "/bin/ptxas";
  ASSERT_FALSE(
      llvm::sys::fs::setPermissions(program, llvm::sys::fs::perms::all_all));
  ScopedVariable none("CUDA_PATH", nullptr), root("CUDA_ROOT", nullptr);
  ScopedVariable path("PATH", (std::string(onPath.path) + "/bin").c_str());
  {
    ScopedVariable variable("CUDA_HOME", homePath.c_str());
    auto toolkit = findToolkit();
    ASSERT_TRUE(bool(toolkit)) << llvm::toString(toolkit.takeError());
    EXPECT_EQ(toolkit->root, homePath);
  }
  ScopedVariable variable("CUDA_HOME", nullptr);
  auto toolkit = findToolkit();
  ASSERT_TRUE(bool(toolkit)) << llvm::toString(toolkit.takeError());
  EXPECT_EQ(toolkit->root, std::string(real));
  EXPECT_EQ(toolkit->ptxas, std::string(real) + "/bin/ptxas");
}

TEST(Toolkit, WithoutNvrtcThereIsNoCompiler) {
  TemporaryFolder folder;
  makeFile(folder, "bin", "ptxas");
  std::string path(folder.path);
  ScopedVariable variable("CUDA_PATH", path.c_str());
  auto compiler = makeCudaCompiler({});
  ASSERT_FALSE(compiler);
  EXPECT_TRUE(StringRef(llvm::toString(compiler.takeError()))
                  .contains("no libnvrtc.so in"));
}

} // namespace
