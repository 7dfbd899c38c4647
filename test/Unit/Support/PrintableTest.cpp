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

} // namespace
