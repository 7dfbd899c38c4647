// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The table of checks: nothing is cut, what did not run is not called passed,
// and equal rows are one.
//
//===----------------------------------------------------------------------===//

#include "fsr/Terminal/Text.h"

#include "gtest/gtest.h"

using namespace fsr;

static std::string print(const std::vector<Check> &checks) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printChecks(checks, os);
  return text;
}

TEST(ChecksTest, Outcomes) {
  EXPECT_EQ(print({{"build", true, "-", "it builds", "NVRTC"},
                   {"virtual-device", false, "", "no findings", "a race"},
                   {"compute-sanitizer", true, "-", "not run", "no tool"},
                   {"special-values", true, "-", "the same NaN",
                    "not tried: a sort"}}),
            "  check              result     inputs  rule; detail\n"
            "  build              passed     -       it builds; NVRTC\n"
            "  virtual-device     FAILED     -       wanted: no findings; got: "
            "a race\n"
            "  compute-sanitizer  not run    -       no tool\n"
            "  special-values     not tried  -       the same NaN; a sort\n");
}

TEST(ChecksTest, EqualRowsAreOne) {
  Check once{"schedule", true, "a", "r", "d"};
  Check other = once;
  other.detail = "e";
  EXPECT_EQ(print({once, other, once, once}),
            "  check               result  inputs  rule; detail\n"
            "  schedule (3 times)  passed  a       r; d\n"
            "  schedule            passed  a       r; e\n");
}

TEST(ChecksTest, LongInputsGoOnBelow) {
  EXPECT_EQ(print({{"battery", true,
                    "normal, uniform, log-uniform of either sign, zeros; 8 in "
                    "all",
                    "r", ""}}),
            "  check    result  inputs                                        "
            "rule; detail\n"
            "  battery  passed  normal, uniform, log-uniform of either sign,  "
            "r\n"
            "                   zeros; 8 in all\n");
}
