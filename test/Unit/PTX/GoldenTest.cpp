// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The virtual device against what hardware gave: each form of an instruction
// over some hundred vectors, and random kernels under each schedule. The data
// are in test/Golden; tools/dev/gpu-golden records them again. A form that is
// not supported has its reason in unsupported.txt.
//
//===----------------------------------------------------------------------===//

#include "../../Golden/Golden.h"

#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/Support/GlobPattern.h"

#include "gtest/gtest.h"

#include <set>

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

/// What does not fit the list of forms that are not supported: one that is none
/// of them, one that is and runs, a pattern without a reason or a form.
std::vector<std::string> complaints(const GoldenFile &file,
                                    const std::vector<Refusal> &unsupported,
                                    llvm::StringRef list) {
  std::vector<std::string> found;
  std::set<llvm::StringRef> left;
  for (const Refusal &one : unsupported)
    left.insert(one.line);
  llvm::SmallVector<llvm::StringRef> lines;
  list.split(lines, '\n', -1, /*KeepEmpty=*/false);
  std::vector<llvm::GlobPattern> patterns;
  for (llvm::StringRef line : lines) {
    if (line.starts_with("#"))
      continue;
    auto [text, reason] = line.split(" :: ");
    patterns.push_back(take(llvm::GlobPattern::create(text)));
    unsigned forms = 0;
    for (const GoldenForm &one : file.forms) {
      if (!patterns.back().match(one.form.line))
        continue;
      ++forms;
      if (!left.count(one.form.line))
        found.push_back("listed, and it runs: " + one.form.line);
    }
    if (!forms || reason.empty())
      found.push_back("no form or no reason: " + line.str());
  }
  for (const Refusal &one : unsupported)
    if (llvm::none_of(patterns, [&](const llvm::GlobPattern &pattern) {
          return pattern.match(one.line);
        }))
      found.push_back("unsupported: " + one.line + ": " + one.why);
  return found;
}

TEST(GoldenTest, VirtualDeviceGivesWhatHardwareGave) {
  std::string folder = FSR_TEST_GOLDEN;
  GoldenFile file = take(loadGolden(folder + "/h200.golden"));
  CheckResult result = take(checkVirtual(file));
  for (const std::string &one :
       complaints(file, result.unsupported,
                  take(readFile(folder + "/unsupported.txt"))))
    ADD_FAILURE() << one;
  for (const Refusal &one : result.wrong)
    ADD_FAILURE() << one.line << ": " << one.why;
  std::printf("%s: %u forms, %zu of them unsupported; %u runs of random "
              "kernels, %zu kernels of which a compiler makes another; %zu "
              "wrong\n",
              file.device.c_str(), result.forms, result.unsupported.size(),
              result.programs, result.unstable.size(), result.wrong.size());
  EXPECT_GT(result.forms, 2500u);
  EXPECT_GE(result.programs, 600u);
}

TEST(GoldenTest, FormsWithoutSupportAreListed) {
  GoldenFile file;
  for (const char *line :
       {"add.u32 d:b32, a:b32", "sub.u32 d:b32, a:b32", "mul.u32 d:b32, a:b32"})
    file.forms.push_back({formOf(line), ""});
  std::vector<Refusal> unsupported = {{"add.u32 d:b32, a:b32", "why"},
                                      {"sub.u32 d:b32, a:b32", "why"}};
  EXPECT_EQ(complaints(file, unsupported, "# words\n[as]??.u32 * :: reason\n"),
            std::vector<std::string>());
  auto first = [&](llvm::StringRef list) {
    std::vector<std::string> all = complaints(file, unsupported, list);
    return all.size() == 1 ? all[0] : std::to_string(all.size());
  };
  EXPECT_EQ(first("add* :: reason\n"),
            "unsupported: sub.u32 d:b32, a:b32: why");
  EXPECT_EQ(first("*.u32 * :: reason\n"),
            "listed, and it runs: mul.u32 d:b32, a:b32");
  EXPECT_EQ(first("[as]??.u32 * :: reason\ndiv* :: reason\n"),
            "no form or no reason: div* :: reason");
  EXPECT_EQ(first("[as]??.u32 *\n"), "no form or no reason: [as]??.u32 *");
}

TEST(GoldenTest, ANumberKeepsOneOfItsBounds) {
  Form one = formOf("lg2.approx.f32 d:f32, a:f32 ~r2^-21");
  Form two = formOf("lg2.approx.f32 d:f32, a:f32 ~r2^-21 a2^-22");
  EXPECT_EQ(one.inputs(), two.inputs());
  EXPECT_NE(one.inputs(), formOf("lg2.approx.f32 d:f32, a:f32").inputs());
  std::vector<float> expected(256, 1000), got(256, 1000);
  auto differs = [&](const Form &form) {
    auto text = [](const std::vector<float> &all) {
      return llvm::StringRef(reinterpret_cast<const char *>(all.data()),
                             all.size() * 4);
    };
    return !form.difference(text(expected), text(got)).empty();
  };
  got[7] = 1000 + 1.0f / 4096; // Within the relative bound alone.
  EXPECT_FALSE(differs(one) || differs(two));
  expected[9] = 1e-9f, got[9] = 1e-7f; // Within the absolute one alone.
  EXPECT_TRUE(differs(one));
  EXPECT_FALSE(differs(two));
  got[9] = 1e-6f;
  EXPECT_TRUE(differs(two));
}

TEST(GoldenTest, ResultsAreShown) {
  Form form = formOf("add.u32 d:b32, a:b32, b:b32");
  std::unique_ptr<Runner> runner = makeVirtualRunner();
  std::vector<Refusal> refused;
  GoldenFile file = take(record(*runner, {form}, 0, {}, refused));
  ASSERT_EQ(file.forms.size(), 1u);
  llvm::SmallVector<llvm::StringRef> lines;
  std::string table = form.table(file.forms[0].kept);
  llvm::StringRef(table).split(lines, '\n', -1, /*KeepEmpty=*/false);
  ASSERT_EQ(lines.size(), 1 + form.threads);
  EXPECT_EQ(lines[0], form.line);
  for (llvm::StringRef line : llvm::ArrayRef(lines).drop_front()) {
    unsigned index = 0, a = 0, b = 0, d = 0;
    ASSERT_EQ(std::sscanf(line.str().c_str(), " %u: a=%x b=%x -> %x", &index,
                          &a, &b, &d),
              4);
    EXPECT_EQ(d, a + b);
  }
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

TEST(GoldenTest, WhereLevelsDisagreeTheLowestCounts) {
  std::unique_ptr<Runner> runner = makeVirtualRunner();
  std::vector<Refusal> refused;
  GoldenFile file = take(record(*runner, {}, 1, {3, 0}, refused));
  ASSERT_EQ(file.programs.size(), 2u);
  EXPECT_EQ(take(checkVirtual(file)).unstable.size(), 0u);
  file.programs[0].kept[0] ^= 1;
  CheckResult result = take(checkVirtual(file));
  EXPECT_EQ(result.programs, 3u);
  EXPECT_EQ(result.wrong.size(), 0u);
  EXPECT_EQ(result.unstable, std::vector<uint64_t>{1});
  file.programs[0].kept[0] ^= 1;
  file.programs[1].kept[0] ^= 1;
  EXPECT_EQ(take(checkVirtual(file)).wrong.size(), 3u);
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
        "ld.u32 d:b32, [g:b32*9]", "sin.f32 d:f32, a:f32 ~a",
        "sin.f32 d:f32, a:f32 ~r2^-9 x1"})
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
