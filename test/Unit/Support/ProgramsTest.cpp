// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where helper programs are looked for, in which order.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Programs.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "TemporaryFolder.h"

#include "gtest/gtest.h"

#include <cstdlib>
#include <optional>
#include <sys/stat.h>

using namespace fsr;

namespace {

/// FSR_BIN as one test needs it.
class ProgramsTest : public testing::Test {
protected:
  void SetUp() override {
    if (const char *value = std::getenv("FSR_BIN"))
      before = value;
    ::unsetenv("FSR_BIN");
  }
  void TearDown() override {
    if (before)
      ::setenv("FSR_BIN", before->c_str(), 1);
    else
      ::unsetenv("FSR_BIN");
  }
  std::optional<std::string> before;
};

} // namespace

TEST_F(ProgramsTest, BesideThisCode) {
  llvm::Expected<std::string> found = findProgram("FSRSupportTests");
  ASSERT_TRUE(!!found) << llvm::toString(found.takeError());
  EXPECT_EQ(*found, folderOfThisCode() + "/FSRSupportTests");
}

TEST_F(ProgramsTest, VariableIsFinal) {
  TemporaryFolder folder;
  ::setenv("FSR_BIN", folder.path.c_str(), 1);
  llvm::Expected<std::string> none = findProgram("FSRSupportTests");
  ASSERT_FALSE(!!none);
  llvm::Error error = none.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  EXPECT_EQ(llvm::toString(std::move(error)),
            "program 'FSRSupportTests' not found; looked in " + folder.path +
                "; FSR_BIN names the folder it is in");

  std::string program = folder / "FSRSupportTests";
  ASSERT_FALSE(writeFileAtomically(program, "#!/bin/sh\n"));
  llvm::Expected<std::string> text = findProgram("FSRSupportTests");
  ASSERT_FALSE(!!text) << "it cannot be run";
  llvm::consumeError(text.takeError());
  ASSERT_EQ(::chmod(program.c_str(), 0700), 0);
  llvm::Expected<std::string> found = findProgram("FSRSupportTests");
  ASSERT_TRUE(!!found);
  EXPECT_EQ(*found, program);
}

TEST_F(ProgramsTest, MissingNamesEveryFolder) {
  std::string folder = folderOfThisCode();
  llvm::Expected<std::string> none = findProgram("fsr-no-such-program");
  ASSERT_FALSE(!!none);
  std::string message = llvm::toString(none.takeError());
  llvm::StringRef here = folder;
  llvm::StringRef above = here.rsplit('/').first;
  EXPECT_NE(message.find(("looked in " + here + ", " + above + "/bin, " +
                          above.rsplit('/').first + "/bin;")
                             .str()),
            std::string::npos)
      << message;
}
