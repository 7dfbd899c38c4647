// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The virtual device against what hardware gave: each form of an instruction
// over some hundred vectors, and random kernels under each schedule. The data
// are in test/Golden; tools/dev/gpu-golden records them again.
//
//===----------------------------------------------------------------------===//

#include "../../Golden/Golden.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "gtest/gtest.h"

using namespace fsr;
using namespace fsr::golden;

namespace {

template <typename T>
T take(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}

Form formOf(llvm::StringRef line) { return take(parseForm(line)); }

TEST(GoldenTest, VirtualDeviceGivesWhatHardwareGave) {
  const char *path = FSR_TEST_GOLDEN "/h200.golden";
  GoldenFile file = take(readGolden(take(readFile(path, uint64_t(64) << 20))));
  CheckResult result = take(checkVirtual(file));
  for (const Refusal &one : result.unsupported)
    ADD_FAILURE() << "unsupported: " << one.line << ": " << one.why;
  for (const Refusal &one : result.wrong)
    ADD_FAILURE() << one.line << ": " << one.why;
  std::printf("%s: %u forms, %u runs of random kernels, %zu wrong\n",
              file.device.c_str(), result.forms, result.programs,
              result.wrong.size());
  EXPECT_GT(result.forms, 2500u);
  EXPECT_GT(result.programs, 600u);
}

TEST(GoldenTest, OneWrongBitIsFound) {
  std::unique_ptr<Runner> runner = makeVirtualRunner();
  std::vector<Form> forms = {
      formOf("add.rn.f32 d:f32, a:f32, b:f32"),
      formOf("cvt.f32.f16 d:f32, a:every"),
      formOf("atom.shared.add.u32 d:b32, [s:b32], a:b32"),
      formOf("setp.lt.f64 d:pred, a:f64, b:f64"),
      formOf("ex2.approx.f32 d:f32, a:unit ~r2^-21"),
  };
  std::vector<Refusal> refused;
  GoldenFile recorded = take(record(*runner, forms, 2, {3}, refused));
  EXPECT_TRUE(refused.empty());
  ASSERT_EQ(recorded.forms.size(), forms.size());
  GoldenFile file = take(readGolden(writeGolden(recorded)));
  EXPECT_EQ(take(checkVirtual(file)).wrong.size(), 0u);
  EXPECT_EQ(compareFiles(recorded, file).wrong.size(), 0u);

  for (size_t i = 0; i < 4; ++i) {
    GoldenFile other = file;
    other.forms[i].kept[100] ^= 1;
    CheckResult result = take(checkVirtual(other));
    ASSERT_EQ(result.wrong.size(), 1u);
    EXPECT_EQ(result.wrong[0].line, forms[i].line);
    EXPECT_EQ(compareFiles(file, other).wrong.size(), 1u);
  }
  // An approximate one may be off by little, not by much.
  GoldenFile near = file, far = file;
  near.forms[4].kept[100] ^= 1;
  far.forms[4].kept[101] ^= 1;
  EXPECT_EQ(take(checkVirtual(near)).wrong.size(), 0u);
  EXPECT_EQ(take(checkVirtual(far)).wrong.size(), 1u);

  GoldenFile kernel = file;
  kernel.programs[1].kept[9] ^= 1;
  CheckResult result = take(checkVirtual(kernel));
  ASSERT_EQ(result.wrong.size(), 3u); // Each schedule.
  EXPECT_NE(result.wrong[0].why.find("%r1 differs"), std::string::npos);
}

TEST(GoldenTest, LevelsThatDisagreeAreNoTruth) {
  GoldenFile file;
  file.programs.push_back({7, 0, std::string(64, 'a')});
  file.programs.push_back({7, 3, std::string(64, 'b')});
  CheckResult result = take(checkVirtual(file));
  EXPECT_EQ(result.programs, 0u);
  ASSERT_EQ(result.unstable.size(), 1u);
  EXPECT_EQ(result.unstable[0], 7u);
}

TEST(GoldenTest, WhatCannotBeRunIsSaid) {
  std::unique_ptr<Runner> runner = makeVirtualRunner();
  std::vector<Refusal> refused;
  GoldenFile file = take(record(*runner,
                                {formOf("add.u32 d:b32, a:b32, b:b32"),
                                 formOf("nosuch.u32 d:b32, a:b32")},
                                0, {}, refused));
  EXPECT_EQ(file.forms.size(), 1u);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].line, "nosuch.u32 d:b32, a:b32");
}

TEST(GoldenTest, LinesAreRead) {
  for (const char *bad :
       {"add.u32 a:b32, b:b32", "add.u32 d:b33, a:b32", "add.u32 d:b32, d:b32",
        "ld.u32 d:b32, [g:b32*9]", "sin.f32 d:f32, a:f32 ~a"})
    EXPECT_EQ(kindOf(parseForm(bad).takeError()), ErrorKind::BadInput) << bad;
  EXPECT_FALSE(bool(parseForms("# words\n\nadd.u32 d:b33, a:b32\n")));
  Form form = formOf("ld.shared.v2.b16 {d0:b16, d1:b16}, [s:b16*4+4]");
  EXPECT_EQ(form.code, "ld.shared.v2.b16 {d0, d1}, [s+4]");
}

TEST(GoldenTest, BrokenFilesAreRefused) {
  for (llvm::StringRef bad :
       {"", "fsr golden 2\n", "fsr golden 1\nx\nform add.u32 d:b32, a:b32\n9\n",
        "fsr golden 1\nx\nnothing 1 2\n0\n",
        "fsr golden 1\nx\nprogram 1\n0\n"}) {
    llvm::Expected<GoldenFile> file = readGolden(bad);
    ASSERT_FALSE(bool(file)) << bad.str();
    EXPECT_EQ(kindOf(file.takeError()), ErrorKind::Corrupt);
  }
}

} // namespace
