// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What of a hostile text reaches a terminal, PTX and a file system.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Printable.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

TEST(Printable, LeavesOutWhatSteers) {
  EXPECT_EQ(printable("a\x1b[31m\x07"
                      "b\x7f"),
            "a?[31m?b?");
  EXPECT_EQ(printable("a\nb\tc"), "a b c");
  EXPECT_EQ(printable("a\nb\tc\r", /*keepLines=*/true), "a\nb\tc?");
  EXPECT_EQ(printable("a\xc2\x9b"
                      "b"),
            "a?b");
  EXPECT_EQ(printable("a\xff"), "a\xef\xbf\xbd");
  // Right to left, its isolate, a mark and a line separator.
  for (const char *mark :
       {"\xe2\x80\xae", "\xe2\x81\xa7", "\xe2\x80\x8f", "\xe2\x80\xa8"})
    EXPECT_EQ(printable(std::string("a") + mark + "b"), "a?b");
}

TEST(Printable, LeavesTheRest) {
  // The dash and the ellipsis stand near the marks.
  for (const char *text :
       {"softmax", "\xe6\xa0\xb8", "\xc3\xa9", "\xe2\x80\x94", "\xe2\x80\xa6",
        "\xe2\x80"
        "\xaf"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, IdentifiersStay) {
  for (const char *name : {"softmax", "_Z4gemmPf", "__k", "A1", "_1"})
    EXPECT_EQ(identifierOf(name), name);
}

TEST(Printable, OthersBecomeIdentifiers) {
  EXPECT_EQ(identifierOf("my-kernel").find("my_kernel_"), 0u);
  EXPECT_EQ(identifierOf("../x").find("k____x_"), 0u);
  EXPECT_EQ(identifierOf("1k").find("k_1k_"), 0u);
  EXPECT_NE(identifierOf("a-b"), identifierOf("a b"));
  for (llvm::StringRef name : {"", "_", "WARP_SZ", "k.1", "\xe6\xa0\xb8"}) {
    std::string made = identifierOf(name);
    EXPECT_EQ(made.find("k_"), 0u) << made;
    EXPECT_EQ(identifierOf(made), made);
  }
  EXPECT_LT(identifierOf(std::string(1000, 'k')).size(), 200u);
}

} // namespace
