// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is left of a compiler's log.
//
//===----------------------------------------------------------------------===//

#include "Log.h"

#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

using namespace fsr;
using llvm::StringRef;

namespace {

TEST(ScrubLog, DropsFoldersOfAbsolutePaths) {
  EXPECT_EQ(scrubLog("/home/a/x.cu(3): error: no\n"), "x.cu(3): error: no\n");
  EXPECT_EQ(scrubLog("at \"/tmp/q/y.h\" and (/a/b)\n"), "at \"y.h\" and (b)\n");
  EXPECT_EQ(scrubLog("in=/etc/passwd\n"), "in=passwd\n");
}

TEST(ScrubLog, KeepsDivisionsAndComments) {
  const char text[] = "  x = a/b/c; // half / of it\n";
  EXPECT_EQ(scrubLog(text), text);
}

TEST(ScrubLog, DropsReportsAndAdvice) {
  EXPECT_EQ(scrubLog("ptxas info    : 0 bytes gmem\n"
                     "ptxas         .     0 bytes stack frame\n"
                     "\nRemark: The warnings can be suppressed with x\n"),
            "");
  EXPECT_EQ(scrubLog("ptxas fatal   : no\n"), "ptxas fatal   : no\n");
}

TEST(ScrubLog, DropsWarningsFirstWhenLong) {
  std::string log;
  for (int i = 0; i < 100; ++i)
    log += "kernel.cu(1): warning #1-D: long\n  source line\n       ^\n";
  log += "kernel.cu(9): error: short\n  source\n";
  EXPECT_EQ(scrubLog(log, 200), "kernel.cu(9): error: short\n  source\n");
  EXPECT_EQ(scrubLog(log, 1 << 20), log);
}

TEST(ScrubLog, KeepsTheFirstErrors) {
  std::string log;
  for (int i = 0; i < 1000; ++i)
    log += "kernel.cu(" + std::to_string(i) + "): error: no\n";
  std::string scrubbed = scrubLog(log);
  EXPECT_LE(scrubbed.size(), 8192u);
  EXPECT_TRUE(StringRef(scrubbed).starts_with("kernel.cu(0): error: no\n"));
  EXPECT_TRUE(StringRef(scrubbed).contains("more bytes)"));
}

TEST(ScrubLog, CutsLongLines) {
  std::string scrubbed = scrubLog("x" + std::string(5000, 'y') + "\n");
  EXPECT_EQ(scrubbed.size(), 404u);
  EXPECT_TRUE(StringRef(scrubbed).ends_with("...\n"));
}

} // namespace
