// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is refused by its text alone, and what only looks like it.
//
//===----------------------------------------------------------------------===//

#include "Contract.h"

#include "llvm/ADT/StringRef.h"
#include "gtest/gtest.h"

using namespace fsr;
using llvm::StringRef;

namespace {

std::string why(StringRef source) { return checkSource(source).value_or(""); }
std::string host(StringRef source) { return findHostCode(source).value_or(""); }

TEST(SourceText, IncludesByPath) {
  for (const char *line :
       {"#include \"/etc/passwd\"", "  #  include </etc/passwd>",
        "#include <../../etc/passwd>", "#include \"cub/../../x\"",
        "%:include \"/etc/passwd\"", "#inc\\\nlude \"/etc/passwd\"",
        "#/**/include/* x */\"/etc/passwd\"", "#include_next </etc/passwd>",
        "#import \"/etc/passwd\"", "#embed \"/etc/passwd\"", "#include \"~/x\"",
        "#include \"C:\\x\"", "#if __has_include(\"/etc/passwd\")",
        "#elif 1 && __has_include(</x>)", "#define P \"/x\"\n#include P",
        "#include __FILE__"})
    EXPECT_TRUE(StringRef(why(line)).contains("of the CUDA toolkit")) << line;
  for (const char *line :
       {"#include <cuda_fp16.h>", "#include <cub/block/block_reduce.cuh>",
        "#include \"cuda/std/limits\"", "// #include \"/etc/passwd\"",
        "/* \n#include \"/etc/passwd\"\n */", "const char *s = \"\\\n/etc\";",
        "const char *s = R\"(\n#include \"/etc/passwd\"\n)\";",
        "#if __has_include(<cuda/std/array>)", "#include <cuda..h>",
        "#pragma unroll", "#define A(x) #x"})
    EXPECT_EQ(why(line), "") << line;
  EXPECT_EQ(StringRef(why("int a;\n/* 1\n2 */ int b;\n#include \"/x\"\n"))
                .split(':')
                .first,
            "line 4");
}

TEST(SourceText, TimeOfTheBuild) {
  for (const char *line : {"const char *s = __DATE__;", "int x = __TIME__[7];",
                           "#define WHEN __TIMESTAMP__"})
    EXPECT_TRUE(StringRef(why(line)).contains("time of the build")) << line;
  for (const char *line : {"int x__TIME__;", "// __TIME__", "f(__LINE__);",
                           "const char *s = \"__DATE__\";", "char c = '\"';"})
    EXPECT_EQ(why(line), "") << line;
}

TEST(SourceText, ParametersStandBehindHeaders) {
  EXPECT_EQ(withParameters("int a;\n", {}), "#line 1 \"kernel.cu\"\nint a;\n");
  EXPECT_EQ(withParameters("int a = T;", {{"T", 4}, {"B", -1}}),
            "#define B -1\n#define T 4\n#line 1 \"kernel.cu\"\nint a = T;");
  // B is used between the two, N nowhere, and what stands under a condition is
  // no place.
  EXPECT_EQ(withParameters("// T and B\n#include <a.h>\nint b = B;\n"
                           "/* \n */ #include <b.h>\n#if 1\n#include <c.h>\n"
                           "int x;\n#endif\nint t = T;\n",
                           {{"B", 1}, {"N", 2}, {"T", 3}}),
            "#line 1 \"kernel.cu\"\n// T and B\n#include <a.h>\n"
            "#define B 1\n#line 3 \"kernel.cu\"\nint b = B;\n"
            "/* \n */ #include <b.h>\n"
            "#define N 2\n#define T 3\n#line 6 \"kernel.cu\"\n#if 1\n"
            "#include <c.h>\nint x;\n#endif\nint t = T;\n");
  // A default that the text has itself.
  EXPECT_EQ(withParameters("#ifndef T\n#define T 8\n#endif\n#include <a.h>\n",
                           {{"T", 4}}),
            "#define T 4\n#line 1 \"kernel.cu\"\n#ifndef T\n#define T 8\n"
            "#endif\n#include <a.h>\n");
}

TEST(SourceText, HostCode) {
  for (auto [line, word] :
       {std::pair("k<<<1, 1>>>(x);", "<<<…>>>"),
        {"int main() {}", "`main`"},
        {"cudaMalloc(&p, 4);", "`cudaMalloc`"},
        {"\ncudaMemcpy (a, b, 4, cudaMemcpyHostToDevice);", "line 2"},
        {"std::vector<int> v;", "`std::vector`"},
        {"__host__ __device__ int f();", "`__host__`"}})
    EXPECT_TRUE(StringRef(host(line)).contains(word))
        << line << ": " << host(line);
  for (const char *line :
       {"x = a << b;", "// k<<<1, 1>>>(x)", "int domain(int main);",
        "cudaTextureObject_t t;", "cudaGridDependencySynchronize();",
        "printf(\"cudaMalloc()\");", "vector<3> v;", "std::array<int, 2> a;"})
    EXPECT_EQ(host(line), "") << line;
}

TEST(SourceText, AnyBytesAreSurvived) {
  const StringRef pieces[] = {"\"", "'",  "\\", "\n",      "//", "/*",  "*/",
                              "R",  "(",  ")",  "#",       "%:", "<",   ">",
                              "u8", "1'", "x",  "include", "/",  "\r\n"};
  unsigned state = 1;
  for (int round = 0; round < 30000; ++round) {
    std::string text;
    for (int i = 0; i < 16; ++i) {
      state = state * 1664525u + 1013904223u;
      text += pieces[(state >> 16) % std::size(pieces)];
    }
    checkSource(text);
    findHostCode(text);
    std::string with = withParameters(text, {{"x", 1}, {"T", 2}});
    EXPECT_EQ(with.size(), text.size() + StringRef("#define x 1\n").size() * 2 +
                               StringRef("#line 1 \"kernel.cu\"\n").size() *
                                   StringRef(with).count("#line "))
        << text;
  }
}

} // namespace
