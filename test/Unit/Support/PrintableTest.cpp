// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What may reach a terminal, and what may not.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Printable.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

TEST(PrintableTest, NothingSteersTheTerminal) {
  for (const char *bad : {"\x1b", "\x07", "\n", "\t", "\x7f",
                          "\xc2\x80",         // U+0080
                          "\xc2\x9b",         // U+009B, a CSI
                          "\xd8\x9c",         // U+061C
                          "\xe2\x80\x8b",     // U+200B, no width
                          "\xe2\x80\x8e",     // U+200E
                          "\xe2\x80\xa8",     // U+2028, ends a line
                          "\xe2\x80\xa9",     // U+2029
                          "\xe2\x80\xae",     // U+202E, right to left
                          "\xe2\x81\xa6",     // U+2066
                          "\xef\xbb\xbf",     // U+FEFF
                          "\xf3\xa0\x81\x81"} // U+E0041, a tag
  )
    EXPECT_EQ(withoutControls(std::string("a") + bad + "b", '?'), "a?b")
        << testing::PrintToString(bad);
}

TEST(PrintableTest, TextStays) {
  for (const char *good : {"plain ~", "grün", "漢字", "שלום", "µs ±",
                           "👨\xe2\x80\x8d👩", "न\xe2\x80\x8cम", "é"})
    EXPECT_EQ(withoutControls(good, '?'), good);
  EXPECT_EQ(withoutControls("a\n\tb\r", '?', "\n\t"), "a\n\tb?");
  EXPECT_EQ(withoutControls("a\xff", '?'), "a\xef\xbf\xbd");
  EXPECT_EQ(withoutControls("", '?'), "");
}

TEST(PrintableTest, LeavesOutWhatSteers) {
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

TEST(PrintableTest, LeavesTheRest) {
  // The dash and the ellipsis stand near the marks.
  for (const char *text :
       {"softmax", "\xe6\xa0\xb8", "\xc3\xa9", "\xe2\x80\x94", "\xe2\x80\xa6"})
    EXPECT_EQ(printable(text), text);
}

TEST(PrintableTest, IdentifiersStay) {
  for (const char *name : {"softmax", "_Z4gemmPf", "__k", "A1", "_1"})
    EXPECT_EQ(identifierOf(name), name);
}

TEST(PrintableTest, OthersBecomeIdentifiers) {
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
