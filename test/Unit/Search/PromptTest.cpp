// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The request, whole (Inputs/softmax.prompt.md is what the embedded template
// makes of the task below), and piece by piece where a piece decides. After a
// wanted change of the template, read the file that the failing test names and
// put it in the place of the golden one.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Search.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Files.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include "gtest/gtest.h"

using namespace fsr;

namespace {

KernelTask softmaxTask() {
  KernelTask task;
  task.name = "softmax_kernel";
  task.key = std::string(64, '5');
  task.target = "sm_90";
  Argument x;
  x.name = "x";
  x.isBuffer = true;
  x.sizes = {65536, 4096};
  x.strides = {4096, 1};
  x.alignment = 4;
  x.access = Access::Read;
  Argument y = x;
  y.name = "y";
  y.access = Access::Write;
  Argument scale;
  scale.name = "scale";
  scale.constantBits = "3f000000";
  Argument rows;
  rows.name = "rows";
  rows.element = ElementType::I32;
  rows.constantBits = "ffffffff";
  task.arguments = {x, y, scale, rows};
  task.launch.grid = {256, 1, 1};
  task.launch.block = {256, 1, 1};
  task.kernelMlir = "gpu.func @softmax_kernel(%x: memref<65536x4096xf32>, %y: "
                    "memref<65536x4096xf32>) kernel {\n"
                    "  %c = arith.cmpi slt, %i, %n : index\n"
                    "  gpu.return\n"
                    "}\n";
  task.launchMlir = "gpu.launch_func @kernels::@softmax_kernel blocks in "
                    "(%c256, %c1, %c1) threads in (%c256, %c1, %c1)\n";
  task.facts = {"`x` and `y` share no byte.",
                "every stride of `x` is constant"};
  task.work.flops = 5.0 * 65536 * 4096;
  task.work.bytesRead = 4.0 * 65536 * 4096;
  task.work.bytesWritten = 4.0 * 65536 * 4096;
  WorkloadCase workload;
  workload.name = "secret-case-name";
  FillRecipe fill;
  fill.family = "loguniform";
  fill.parameters = {1, 2};
  workload.fills = {fill, fill, fill, fill};
  task.workload = {workload};
  return task;
}

DeviceDescription h200() {
  DeviceDescription device;
  device.name = "NVIDIA H200";
  device.driver = "13.0";
  device.chip = "sm_90";
  device.multiprocessors = 132;
  device.coresPerMultiprocessor = 128;
  device.clockKhz = 1980000;
  device.memoryClockKhz = 3201000;
  device.memoryBusBits = 6144;
  device.l2Bytes = int64_t(60) << 20;
  device.memoryBytes = int64_t(139) << 30;
  device.sharedBytesPerMultiprocessor = 228 * 1024;
  device.registersPerMultiprocessor = 65536;
  device.threadsPerMultiprocessor = 2048;
  device.limits.sharedBytesPerBlock = 227 * 1024;
  return device;
}

class PromptTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fsr-prompt", folder));
  }
  void TearDown() override { (void)llvm::sys::fs::remove_directories(folder); }

  std::string path(llvm::StringRef name) const {
    llvm::SmallString<128> result(folder);
    llvm::sys::path::append(result, name);
    return std::string(result);
  }
  void write(llvm::StringRef name, llvm::StringRef bytes) const {
    ASSERT_FALSE(bool(writeFileAtomically(path(name), bytes)));
  }

  std::string render(const KernelTask &task, const DeviceDescription &device,
                     unsigned slot = 1, llvm::StringRef prompts = "") {
    auto text = renderPrompt(task, device, slot, prompts);
    if (!text)
      return "error: " + llvm::toString(text.takeError());
    return *text;
  }

  /// What the template `text` makes of the task.
  std::string renderTemplate(llvm::StringRef text, const KernelTask &task) {
    write("request.md.mustache", text);
    return render(task, h200(), 1, folder);
  }

  llvm::SmallString<128> folder;
};

TEST_F(PromptTest, Golden) {
  std::string got = render(softmaxTask(), h200());
  auto wanted = readFile(FSR_TEST_INPUTS "/softmax.prompt.md");
  std::string golden = wanted ? *wanted : "";
  if (!wanted)
    ADD_FAILURE() << llvm::toString(wanted.takeError());
  if (got != golden) {
    std::string written = std::string(FSR_TEST_OUTPUTS) + "/softmax.prompt.md";
    EXPECT_FALSE(bool(writeFileAtomically(written, got)));
    ADD_FAILURE() << "the prompt differs from Inputs/softmax.prompt.md; it is "
                  << "in " << written;
  }
}

TEST_F(PromptTest, SameInputSameBytes) {
  EXPECT_EQ(render(softmaxTask(), h200(), 2), render(softmaxTask(), h200(), 2));
}

TEST_F(PromptTest, CodeIsNotEscaped) {
  KernelTask task = softmaxTask();
  task.kernelMlir = "a < b && \"c\" {{name}} {{#x}}";
  EXPECT_EQ(renderTemplate("{{{kernel_mlir}}}", task),
            "a < b && \"c\" {{name}} {{#x}}");
  EXPECT_EQ(render(task, h200()).find("&lt;"), std::string::npos);
}

TEST_F(PromptTest, TellsTheRulesThatRefuse) {
  KernelTask task = softmaxTask();
  std::string text = render(task, h200());
  for (const char *word :
       {"`%smid`", "`__DATE__`", "No textures", "griddepcontrol", "is no data",
        "the same bits each time", "may hold NaN and infinities"})
    EXPECT_NE(text.find(word), std::string::npos) << word;
  // Then what comes of them is not defined.
  task.fastMath = true;
  EXPECT_EQ(render(task, h200()).find("may hold NaN"), std::string::npos);
}

TEST_F(PromptTest, SaysNothingThatHelpsToFoolTheHarness) {
  std::string text = render(softmaxTask(), h200());
  for (const char *word : {"secret-case-name", "loguniform", "seed",
                           "tolerance", "/usr", "/tmp", "55555555"})
    EXPECT_EQ(text.find(word), std::string::npos) << word;
}

TEST_F(PromptTest, LeavesNoTagAndNoEmptyField) {
  std::string text = render(softmaxTask(), h200());
  EXPECT_EQ(text.find("{{"), std::string::npos);
  EXPECT_EQ(text.find("}}"), std::string::npos);
  EXPECT_EQ(text.find("\n\n\n"), std::string::npos);
  EXPECT_EQ(text.find("``"), text.find("```"));
}

TEST_F(PromptTest, ItsOwnExampleIsAGoodAnswer) {
  std::string text = render(softmaxTask(), h200());
  auto candidate = parseAnswer(text.substr(text.find("## The answer")));
  ASSERT_TRUE(bool(candidate)) << llvm::toString(candidate.takeError());
  KernelTask task = softmaxTask();
  task.arguments.resize(1);
  task.arguments[0].name = "v";
  task.arguments[0].sizes = {1048576};
  task.arguments[0].strides = {1};
  for (const Parameters &parameters : candidate->combinations(16)) {
    auto resolved =
        resolvePlan(candidate->plan, task, parameters, h200().limits);
    EXPECT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  }
  EXPECT_EQ(candidate->combinations(16).size(), 4u);
}

TEST_F(PromptTest, BoundsComeFromTheDevice) {
  const char *fields = "{{{bound_bytes}}}|{{{bound_flops}}}|{{{limiter}}}|"
                       "{{{bytes_read}}}|{{{flops}}}";
  KernelTask task = softmaxTask();
  // 2 GiB at 4916.7 GB/s, and 1.34 GFLOP at 66.9 TFLOP/s.
  EXPECT_EQ(renderTemplate(fields, task),
            "437 µs|20.1 µs|memory traffic|1 GiB|1.342e+09");
  task.work.flops *= 100;
  EXPECT_EQ(renderTemplate(fields, task),
            "437 µs|2.01e+03 µs|arithmetic|1 GiB|1.342e+11");
}

TEST_F(PromptTest, UnknownFiguresAreLeftOut) {
  KernelTask task = softmaxTask();
  task.work = {};
  task.facts.clear();
  task.launchMlir.clear();
  DeviceDescription device;
  device.chip = "sm_90";
  std::string text = render(task, device);
  EXPECT_EQ(text.find("### Work and bound"), std::string::npos);
  EXPECT_EQ(text.find("### Facts"), std::string::npos);
  EXPECT_EQ(text.find("It is launched here"), std::string::npos);
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find(" inf "), std::string::npos);
  EXPECT_EQ(text.find("- 0 "), std::string::npos);
  EXPECT_NE(text.find("1024 threads a block"), std::string::npos);
}

TEST_F(PromptTest, Scalars) {
  KernelTask task = softmaxTask();
  Argument flag, wide, half, open;
  flag.name = "flag";
  flag.element = ElementType::I1;
  flag.constantBits = "1";
  wide.name = "wide";
  wide.element = ElementType::F64;
  wide.constantBits = doubleToHex(0.1);
  half.name = "half";
  half.element = ElementType::F16;
  half.constantBits = "3c00";
  open.name = "open";
  task.arguments.insert(task.arguments.end(), {flag, wide, half, open});
  EXPECT_EQ(
      renderTemplate("{{#scalars}}{{{name}}}={{{value}}};{{/scalars}}", task),
      "scale=always 0.5;rows=always -1;flag=always true;"
      "wide=always 0.10000000000000001;half=always the bits 0x3c00;"
      "open=varies;");
}

TEST_F(PromptTest, SharedMemoryOfTheOriginal) {
  KernelTask task = softmaxTask();
  EXPECT_EQ(render(task, h200()).find("of dynamic shared memory. Yours"),
            std::string::npos);
  task.launch.sharedBytes = 4096;
  EXPECT_NE(
      render(task, h200())
          .find("(x, y, z) and\n4096 bytes of dynamic shared memory. Yours"),
      std::string::npos);
}

TEST_F(PromptTest, FastMathChangesTheRules) {
  KernelTask task = softmaxTask();
  EXPECT_NE(render(task, h200()).find("No fast approximations"),
            std::string::npos);
  task.fastMath = true;
  std::string text = render(task, h200());
  EXPECT_EQ(text.find("No fast approximations"), std::string::npos);
  EXPECT_NE(text.find("compiled with fast-math flags"), std::string::npos);
}

TEST_F(PromptTest, EachSlotAsksForAnotherStrategy) {
  write("strategies.txt", "# no strategy\n\nfirst way\nsecond way\n");
  write("request.md.mustache", "{{{strategy}}}");
  EXPECT_EQ(render(softmaxTask(), h200(), 1, folder), "first way");
  EXPECT_EQ(render(softmaxTask(), h200(), 2, folder), "second way");
  EXPECT_EQ(render(softmaxTask(), h200(), 3, folder), "first way");
  EXPECT_NE(render(softmaxTask(), h200(), 1), render(softmaxTask(), h200(), 2));
}

TEST_F(PromptTest, OneFileOfTheFolderSuffices) {
  write("strategies.txt", "the only way\n");
  std::string text = render(softmaxTask(), h200(), 4, folder);
  EXPECT_NE(text.find("the only way"), std::string::npos);
  EXPECT_NE(text.find("# Rewrite one GPU kernel"), std::string::npos);
}

TEST_F(PromptTest, BadFolders) {
  EXPECT_EQ(render(softmaxTask(), h200(), 1, "/no/such/folder"),
            "error: prompts folder /no/such/folder: holds none of "
            "request.md.mustache, strategies.txt, feedback.md.mustache, "
            "strategies-later.txt");
  write("strategies.txt", "# nothing\n");
  EXPECT_EQ(render(softmaxTask(), h200(), 1, folder),
            "error: strategies.txt: expected at least one strategy");
  write("strategies.txt", "a\xff");
  std::string text = render(softmaxTask(), h200(), 1, folder);
  EXPECT_NE(text.find("strategies.txt: not valid UTF-8"), std::string::npos)
      << text;
}

TEST_F(PromptTest, DamagedTemplatesDoNotCrash) {
  for (const char *text :
       {"{{#facts}}open", "{{/facts}}", "{{x", "{{{x}}", "{{}}", "{{#}}{{/}}",
        "{{>nope}}", "{{=<% %>=}}", "{{#facts}}{{^x}}{{/facts}}", "{{.}}", ""})
    EXPECT_EQ(renderTemplate(text, softmaxTask()).find("error"),
              std::string::npos)
        << text;
}

TEST_F(PromptTest, NamesThatAreNoIdentifiers) {
  KernelTask task = softmaxTask();
  task.name = "7<lambda>\xff";
  EXPECT_EQ(renderTemplate("{{{entry}}}", task), "kernel_7_lambda___opt");
}

} // namespace
