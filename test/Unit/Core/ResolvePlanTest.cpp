// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans against tasks and limits: what resolves, and every refusal in the words
// that an LLM gets to read.
//
//===----------------------------------------------------------------------===//

#include "Samples.h"

#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

using namespace fsr;
using namespace fsr::test;

namespace {

const Parameters tile32{{"ROWS", 2}, {"TILE", 32}};

LaunchLimits sm90() { return LaunchLimits::of(Target{"sm_90"}); }

/// A plan of one launch that fits.
LaunchPlan simple() {
  LaunchPlan plan;
  plan.launches.resize(1);
  plan.launches[0].kernel = "k";
  return plan;
}

/// "ok", or the error.
std::string outcome(const LaunchPlan &plan, const Parameters &parameters = {},
                    const KernelTask &task = sampleTask()) {
  llvm::Expected<ResolvedPlan> resolved =
      resolvePlan(plan, task, parameters, sm90());
  if (resolved)
    return "ok";
  llvm::Error error = resolved.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
  return llvm::toString(std::move(error));
}

template <typename Change>
std::string changed(Change change) {
  LaunchPlan plan = simple();
  change(plan.launches[0]);
  return outcome(plan);
}

std::string grid(llvm::StringRef text) {
  return changed([&](PlannedLaunch &launch) { launch.grid[0] = text.str(); });
}

TEST(ResolvePlan, Resolves) {
  llvm::Expected<ResolvedPlan> plan =
      resolvePlan(sampleCandidate().plan, sampleTask(), tile32, sm90());
  ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
  ASSERT_EQ(plan->launches.size(), 2u);
  const ResolvedLaunch &one = plan->launches[0];
  EXPECT_EQ(one.kernel, "partial");
  EXPECT_EQ(one.shape.grid, (std::array<int64_t, 3>{2, 2, 3}));
  EXPECT_EQ(one.shape.block, (std::array<int64_t, 3>{32, 4, 5}));
  EXPECT_EQ(one.shape.cluster, (std::array<int64_t, 3>{1, 2, 3}));
  EXPECT_EQ(one.shape.sharedBytes, 128);
  EXPECT_EQ(one.args, (std::vector<std::string>{"x", "part", "x.size1"}));
  EXPECT_EQ(plan->launches[1].args, candidateAbiNames(sampleTask()));
  ASSERT_EQ(plan->scratch.size(), 1u);
  EXPECT_EQ(plan->scratch[0].name, "part");
  EXPECT_EQ(plan->scratch[0].bytes, 24);
  EXPECT_TRUE(plan->scratch[0].zero);
}

TEST(ResolvePlan, NamesOfATask) {
  KernelTask task = sampleTask();
  EXPECT_EQ(valueOf(task, "x.size0"), 3);
  EXPECT_EQ(valueOf(task, "x.size1"), 5);
  EXPECT_EQ(valueOf(task, "x.stride0"), 8);
  EXPECT_EQ(valueOf(task, "x.stride1"), 1);
  EXPECT_EQ(valueOf(task, "n"), -6);
  EXPECT_EQ(valueOf(task, "grid.x"), 7);
  EXPECT_EQ(valueOf(task, "grid.z"), 3);
  EXPECT_EQ(valueOf(task, "block.y"), 4);
  for (llvm::StringRef name :
       {"x", "x.size2", "x.size00", "x.size", "x.size-1", "x.size+0", "n.size0",
        "alpha", "m", "grid", "grid.w", "grid.xy", "block.", "cluster.x", "",
        ".", "x.size0.x", "x.size99999999999999999999"})
    EXPECT_EQ(valueOf(task, name), std::nullopt) << name.str();
}

TEST(ResolvePlan, ScalarsAreSignExtended) {
  KernelTask task;
  auto value = [&](ElementType type, const char *bits) {
    task.arguments = {scalar("s", type, std::string(bits))};
    return valueOf(task, "s");
  };
  EXPECT_EQ(value(ElementType::I1, "1"), 1);
  EXPECT_EQ(value(ElementType::I1, "ff"), 1);
  EXPECT_EQ(value(ElementType::I8, "80"), -128);
  EXPECT_EQ(value(ElementType::I8, "7f"), 127);
  EXPECT_EQ(value(ElementType::I16, "ffff"), -1);
  EXPECT_EQ(value(ElementType::I32, "00000005"), 5);
  EXPECT_EQ(value(ElementType::I32, "80000000"), -2147483648LL);
  EXPECT_EQ(value(ElementType::I64, "8000000000000000"), INT64_MIN);
  EXPECT_EQ(value(ElementType::F32, "3f800000"), std::nullopt);
  EXPECT_EQ(value(ElementType::I32, "zz"), std::nullopt);
}

TEST(ResolvePlan, Expressions) {
  std::string where = "launch 0 of kernel 'k': grid.x ";
  EXPECT_EQ(grid("x.size0"), "ok");
  EXPECT_EQ(grid("-n"), "ok");
  EXPECT_EQ(grid("grid.x * block.y"), "ok");
  EXPECT_EQ(grid("4 *"), where + "'4 *': column 4: got the end, wanted a name "
                                 "or a number");
  EXPECT_EQ(grid("x"),
            where + "'x': 'x' is a buffer, wanted a number, as x.size0");
  EXPECT_EQ(grid("alpha"),
            where + "'alpha': 'alpha' is a float, wanted an integer");
  EXPECT_EQ(grid("m"), where + "'m': the value of scalar 'm' is not known at "
                               "the launch");
  EXPECT_EQ(grid("N"),
            where + "'N': unknown name 'N', known are x.size0, x.stride0, "
                    "x.size1, x.stride1, y.size0, y.stride0, n, grid.x, "
                    "grid.y, grid.z, block.x, block.y, block.z");
  EXPECT_EQ(grid("4 / (x.size0 - 3)"),
            where + "'4 / (x.size0 - 3)': '4 / (x.size0 - 3)': division by "
                    "zero");
  EXPECT_EQ(grid("9223372036854775807 + 1"),
            where + "'9223372036854775807 + 1': '9223372036854775807 + 1': "
                    "overflow of 64 bits with 9223372036854775807 and 1");
  EXPECT_EQ(grid("x.size0 == 3"), where + "'x.size0 == 3': column 9: got '==', "
                                          "which only a guard may use");
}

TEST(ResolvePlan, LaunchLimits) {
  std::string where = "launch 0 of kernel 'k': ";
  EXPECT_EQ(grid("2147483647"), "ok");
  EXPECT_EQ(grid("2147483648"),
            where + "grid.x '2147483648': got 2147483648, wanted 1 to "
                    "2147483647");
  EXPECT_EQ(grid("0"), where + "grid.x '0': got 0, wanted 1 to 2147483647");
  EXPECT_EQ(grid("-1"), where + "grid.x '-1': got -1, wanted 1 to 2147483647");
  auto axis = [](auto member, int axis, const char *text) {
    return changed(
        [&](PlannedLaunch &launch) { (launch.*member)[axis] = text; });
  };
  EXPECT_EQ(axis(&PlannedLaunch::grid, 1, "65535"), "ok");
  EXPECT_EQ(axis(&PlannedLaunch::grid, 1, "65536"),
            where + "grid.y '65536': got 65536, wanted 1 to 65535");
  EXPECT_EQ(axis(&PlannedLaunch::block, 0, "1024"), "ok");
  EXPECT_EQ(axis(&PlannedLaunch::block, 0, "1025"),
            where + "block.x '1025': got 1025, wanted 1 to 1024");
  EXPECT_EQ(axis(&PlannedLaunch::block, 2, "65"),
            where + "block.z '65': got 65, wanted 1 to 64");
  EXPECT_EQ(axis(&PlannedLaunch::cluster, 0, "9"),
            where + "cluster.x '9': got 9, wanted 1 to 8");
  EXPECT_EQ(axis(&PlannedLaunch::cluster, 0, "2"),
            where + "grid.x: got 1, wanted a multiple of the cluster's 2");
  EXPECT_EQ(
      changed([](PlannedLaunch &launch) { launch.block = {"32", "32", "2"}; }),
      where + "got 2048 threads a block, wanted at most 1024");
  EXPECT_EQ(changed([](PlannedLaunch &launch) {
              launch.grid = launch.cluster = {"4", "4", "1"};
            }),
            where + "got 16 blocks a cluster, wanted at most 8");
  auto shared = [](const char *text) {
    return changed([&](PlannedLaunch &launch) { launch.shared = text; });
  };
  EXPECT_EQ(shared("232448"), "ok");
  EXPECT_EQ(shared("232449"),
            where + "shared '232449': got 232449, wanted 0 to 232448");
  EXPECT_EQ(shared("-1"), where + "shared '-1': got -1, wanted 0 to 232448");
}

TEST(ResolvePlan, Launches) {
  LaunchPlan plan;
  EXPECT_EQ(outcome(plan), "got no launch, wanted at least one");
  plan.launches.assign(64, simple().launches[0]);
  EXPECT_EQ(outcome(plan), "ok");
  plan.launches.push_back(plan.launches[0]);
  EXPECT_EQ(outcome(plan), "got 65 launches, wanted at most 64");
  for (const char *name : {"", "a b", "1k", "__k", "void"}) {
    plan = simple();
    plan.launches[0].kernel = name;
    EXPECT_EQ(outcome(plan), "launch 0 of kernel '" + std::string(name) +
                                 "': wanted a C identifier that is no keyword "
                                 "as its name");
  }
  plan = simple();
  plan.launches.push_back(plan.launches[0]);
  plan.launches[1].block[1] = "0";
  EXPECT_EQ(outcome(plan), "launch 1 of kernel 'k': block.y '0': got 0, wanted "
                           "1 to 1024");
}

TEST(ResolvePlan, Arguments) {
  auto args = [](std::vector<std::string> names) {
    return changed([&](PlannedLaunch &launch) { launch.args = names; });
  };
  std::string where = "launch 0 of kernel 'k': args[";
  EXPECT_EQ(args({"y", "x", "x", "n", "alpha", "m", "x.size1", "x.stride0"}),
            "ok");
  EXPECT_EQ(args({}), "ok");
  EXPECT_EQ(args({"x", "z"}), where + "1]: got 'z', wanted one of x, y, n, "
                                      "alpha, m, or a size as x.size0");
  EXPECT_EQ(args({"x", "same"}),
            where + "1]: got 'same' beside other names, wanted it alone");
  for (const char *name : {"x.size2", "grid.x", "x.", "3", "part", "x + y"})
    EXPECT_EQ(args({name}), where + "0]: got '" + name +
                                "', wanted one of x, y, n, alpha, m, or a size "
                                "as x.size0");
  EXPECT_EQ(args(std::vector<std::string>(513, "x")),
            "launch 0 of kernel 'k': got 513 args, wanted at most 512");
}

TEST(ResolvePlan, Scratch) {
  auto scratch = [](std::vector<ScratchBuffer> buffers,
                    const Parameters &parameters = {}) {
    LaunchPlan plan = simple();
    plan.scratch = std::move(buffers);
    return outcome(plan, parameters);
  };
  EXPECT_EQ(scratch({{"s", "1", false}, {"t", "67108863", true}}), "ok");
  EXPECT_EQ(scratch({{"s", "0", false}}),
            "scratch 's': bytes '0': got 0, wanted 1 to 67108864");
  EXPECT_EQ(
      scratch({{"s", "67108865", false}}),
      "scratch 's': bytes '67108865': got 67108865, wanted 1 to 67108864");
  EXPECT_EQ(scratch({{"s", "1", false}, {"t", "67108864", true}}),
            "scratch 't': got 67108865 bytes of scratch together, wanted at "
            "most 67108864");
  EXPECT_EQ(scratch({{"s", "1", false}, {"s", "1", false}}),
            "scratch 's': got the name twice");
  EXPECT_EQ(scratch({{"x", "1", false}}),
            "scratch 'x' hides the argument of that name");
  EXPECT_EQ(scratch({{"TILE", "1", false}}, {{"TILE", 1}}),
            "scratch 'TILE' hides the parameter of that name");
  EXPECT_EQ(scratch({{"a.b", "1", false}}),
            "scratch 'a.b': wanted a C identifier that is no keyword as name");
  std::vector<ScratchBuffer> many;
  for (int i = 0; i < 17; ++i)
    many.push_back({"s" + std::to_string(i), "1", false});
  EXPECT_EQ(scratch(many), "got 17 scratch buffers, wanted at most 16");
}

TEST(ResolvePlan, Parameters) {
  EXPECT_EQ(outcome(simple(), {{"x", 1}}),
            "parameter 'x' hides the argument of that name");
  for (const char *name : {"int", "__T", "a-b", ""})
    EXPECT_EQ(outcome(simple(), {{name, 1}}),
              "parameter '" + std::string(name) +
                  "': wanted a C identifier that is no keyword and does not "
                  "begin with '__'");
}

TEST(ResolvePlan, TextOfAnLlmIsCutInMessages) {
  std::string error = grid(std::string(3000, 'N'));
  EXPECT_LT(error.size(), 600u);
}

TEST(ResolvePlan, LimitsOfTargets) {
  auto kib = [](const char *chip) {
    return LaunchLimits::of(Target{chip}).sharedBytesPerBlock / 1024;
  };
  EXPECT_EQ(kib("sm_60"), 48);
  EXPECT_EQ(kib("sm_70"), 96);
  EXPECT_EQ(kib("sm_75"), 64);
  EXPECT_EQ(kib("sm_80"), 163);
  EXPECT_EQ(kib("sm_86"), 99);
  EXPECT_EQ(kib("sm_87"), 163);
  EXPECT_EQ(kib("sm_89"), 99);
  EXPECT_EQ(kib("sm_90a"), 227);
  EXPECT_EQ(kib("sm_100"), 227);
  EXPECT_EQ(kib("sm_103a"), 227);
  EXPECT_EQ(kib("sm_120"), 99);
  EXPECT_EQ(kib("sm_121"), 99);
  EXPECT_EQ(LaunchLimits::of(Target{"sm_89"}).clusterBlocks, 1);
  EXPECT_EQ(LaunchLimits::of(Target{"sm_90"}).clusterBlocks, 8);
}

//===----------------------------------------------------------------------===//
// Guards
//===----------------------------------------------------------------------===//

std::string holds(std::vector<std::string> guards,
                  const KernelTask &task = sampleTask()) {
  llvm::Expected<bool> result = guardsHold(guards, task, tile32);
  if (!result)
    return llvm::toString(result.takeError());
  return *result ? "yes" : "no";
}

TEST(Guards, Hold) {
  EXPECT_EQ(holds({}), "yes");
  EXPECT_EQ(holds({"x.size1 % 5 == 0", "TILE == 32 && n < 0"}), "yes");
  EXPECT_EQ(holds({"x.size1 % 5 == 0", "TILE == 64"}), "no");
  EXPECT_EQ(holds({"x.size1 / (n + 6) == 1"}), "no");
  EXPECT_EQ(holds({"9223372036854775807 + x.size0 > 0"}), "no");
}

TEST(Guards, AlignmentIsWhatTheIrProves) {
  EXPECT_EQ(holds({"aligned(y, 256)"}), "yes");
  EXPECT_EQ(holds({"aligned(y, 2)"}), "yes");
  EXPECT_EQ(holds({"aligned(y, 512)"}), "no");
  EXPECT_EQ(holds({"aligned(x, 16)"}), "yes");
  EXPECT_EQ(holds({"aligned(x, 32)"}), "no");
  // Nothing proved: the element's own size is left.
  KernelTask task = sampleTask();
  task.arguments[0].alignment = 1;
  EXPECT_EQ(holds({"aligned(x, 4)"}, task), "yes");
  EXPECT_EQ(holds({"aligned(x, 8)"}, task), "no");
  EXPECT_EQ(holds({"aligned(x, 0)"}), "no");
}

TEST(Guards, DisjointIsNotGranted) {
  EXPECT_EQ(holds({"disjoint(x, y)"}), "no");
  KernelTask task = sampleTask();
  task.arguments[1].sizes = {0};
  EXPECT_EQ(holds({"disjoint(x, y)"}, task), "yes");
}

TEST(Guards, Errors) {
  EXPECT_EQ(holds({"TILE == 32", "n"}),
            "requires[1] 'n': column 1: got a number, wanted a comparison, "
            "aligned or disjoint");
  EXPECT_EQ(holds({"aligned(n, 4)"}),
            "requires[0] 'aligned(n, 4)': got 'n', wanted a buffer of the "
            "kernel (x, y)");
  EXPECT_EQ(holds({"disjoint(x, part)"}),
            "requires[0] 'disjoint(x, part)': got 'part', wanted a buffer of "
            "the kernel (x, y)");
  // Also in a part that is not evaluated.
  EXPECT_EQ(holds({"TILE == 1 && m == 1"}),
            "requires[0] 'TILE == 1 && m == 1': the value of scalar 'm' is not "
            "known at the launch");
  EXPECT_EQ(holds(std::vector<std::string>(65, "TILE == 32")),
            "got 65 guards, wanted at most 64");
}

} // namespace
