// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Splitting of command lines.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/CommandLine.h"
#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

using namespace fsr;

static std::vector<std::string> split(llvm::StringRef text) {
  auto words = splitCommandLine(text);
  if (!words)
    return {"error: " + llvm::toString(words.takeError())};
  return *words;
}

using Words = std::vector<std::string>;

TEST(CommandLine, SplitsAtWhiteSpace) {
  EXPECT_EQ(split("  ssh gpu7\tfsr-worker  device\n"),
            (Words{"ssh", "gpu7", "fsr-worker", "device"}));
}

TEST(CommandLine, RespectsQuotes) {
  EXPECT_EQ(split("a 'b c' \"d e\"f '' \"\""),
            (Words{"a", "b c", "d ef", "", ""}));
  EXPECT_EQ(split("a 'b\\' c"), (Words{"a", "b\\", "c"}));
}

TEST(CommandLine, Backslashes) {
  EXPECT_EQ(split("a\\ b \\'c \"\\\"d\\n\""), (Words{"a b", "'c", "\"d\\n"}));
}

TEST(CommandLine, StartsNoShell) {
  EXPECT_EQ(split("a $HOME *; b|c"), (Words{"a", "$HOME", "*;", "b|c"}));
}

TEST(CommandLine, RefusesWhatIsNotWhole) {
  EXPECT_EQ(split("a 'b"),
            Words{"error: command has an open ' at column 3: a 'b"});
  EXPECT_EQ(split("a \"b"),
            Words{"error: command has an open \" at column 3: a \"b"});
  EXPECT_EQ(split("a\\"), Words{"error: command ends with a backslash: a\\"});
  EXPECT_EQ(split(" \t"), Words{"error: command names no program"});
  EXPECT_EQ(split("'' a"), Words{"error: command names no program"});
}
