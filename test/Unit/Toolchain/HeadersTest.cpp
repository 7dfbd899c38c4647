// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which headers are handed over, and under which names.
//
//===----------------------------------------------------------------------===//

#include "Headers.h"
#include "ToolchainTesting.h"

#include "llvm/ADT/StringRef.h"

using namespace fsr;
using namespace fsr::testing;
using llvm::StringRef;

namespace {

struct ToyToolkit : TemporaryFolder {
  ToyToolkit() {
    for (const char *name : {"a", "a/b", "cccl", "cccl/c"})
      EXPECT_FALSE(llvm::sys::fs::create_directories(path + "/" + name));
    write("top.h", "#include \"a/one.h\"\n");
    write("a/one.h", "# include \"b/two.h\"\n#include <top.h>\n");
    write("a/b/two.h",
          "int two;\n#include \"../three.h\"\n#include <none.h>\n");
    write("a/three.h", "#if 0\n#include <c/four>\n#endif\n");
    write("cccl/c/four", "asm(\"mov.u64 %0, %%globaltimer;\");\n");
  }
  static const MemoryHeader *find(const std::vector<MemoryHeader> &headers,
                                  StringRef name) {
    for (const MemoryHeader &header : headers)
      if (header.name == name)
        return &header;
    return nullptr;
  }
};

TEST(HeaderLibrary, FollowsAndRewrites) {
  ToyToolkit toolkit;
  HeaderLibrary library(toolkit.path);
  auto headers = library.collect("#include <top.h>\nint x;\n");
  EXPECT_EQ(headers.size(), 5u);
  const MemoryHeader *one = ToyToolkit::find(headers, "a/one.h");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->text, "# include <a/b/two.h>\n#include <top.h>\n");
  const MemoryHeader *two = ToyToolkit::find(headers, "a/b/two.h");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->text, "int two;\n#include <a/three.h>\n#include <none.h>\n");
  const MemoryHeader *four = ToyToolkit::find(headers, "c/four");
  ASSERT_TRUE(four);
  EXPECT_EQ(four->text, "asm(\"mov.u64 %0, 0;\");\n");
}

TEST(HeaderLibrary, ReadsEachFileOnce) {
  ToyToolkit toolkit;
  HeaderLibrary library(toolkit.path);
  auto first = library.collect("#include <top.h>\n");
  toolkit.write("top.h", "changed\n");
  auto second = library.collect("#include <top.h>\n");
  ASSERT_EQ(first.size(), second.size());
  EXPECT_EQ(first[0].text.data(), second[0].text.data());
}

TEST(HeaderLibrary, KeepsTheSpellingOfTheSource) {
  ToyToolkit toolkit;
  HeaderLibrary library(toolkit.path);
  auto headers = library.collect("  #  include \"a/../top.h\"\n");
  EXPECT_TRUE(ToyToolkit::find(headers, "a/../top.h"));
}

TEST(HeaderLibrary, NothingOutsideIsRead) {
  ToyToolkit toolkit;
  std::string outside = toolkit.write("../fsr-test-outside.h", "outside\n");
  std::string absolute = toolkit.write("top2.h", "absolute\n");
  HeaderLibrary library(toolkit.path);
  EXPECT_TRUE(library.collect("#include \"../fsr-test-outside.h\"\n").empty());
  EXPECT_TRUE(
      library.collect("#include \"a/../../fsr-test-outside.h\"\n").empty());
  EXPECT_TRUE(library.collect("#include \"" + absolute + "\"\n").empty());
  EXPECT_TRUE(library
                  .collect("#include \"a\"\n#include \"\"\n#include \"..\"\n"
                           "#include <unclosed\n#include\n#")
                  .empty());
  llvm::sys::fs::remove(outside);
}

TEST(HeaderLibrary, HostHeadersAreHarmless) {
  ToyToolkit toolkit;
  HeaderLibrary library(toolkit.path);
  auto headers = library.collect("#include <stdint.h>\n#include <cmath>\n");
  ASSERT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers[0].text, "");
}

} // namespace
