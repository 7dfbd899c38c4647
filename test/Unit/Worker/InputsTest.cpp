// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Families and seeds: exact inputs stay exact, integers keep their recipes, and
// no seed is known before the image is.
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"
#include "WorkerHarness.h"

#include "gtest/gtest.h"

#include <map>
#include <set>

using namespace fsr;

namespace {

KernelTask taskOf(ElementType element, int64_t accumulation) {
  KernelTask task;
  task.arguments = {bufferArgument("x", element, {8}, Access::Read),
                    bufferArgument("i", ElementType::I64, {8}, Access::Read)};
  task.work.accumulation = accumulation;
  WorkloadCase one;
  one.fills = {*FillRecipe::parse("normal(0, 1)"),
               *FillRecipe::parse("integers(0, 7)")};
  task.workload = {one};
  return task;
}

TEST(InputsTest, DensityFallsWithTheAccumulation) {
  KernelTask task = taskOf(ElementType::BF16, 4096);
  auto sets = InputPlan(task, 1, "image").exact();
  ASSERT_EQ(sets.size(), 2u); // No room for small integers.
  EXPECT_EQ(sets[0].fills[0].family, "bernoulli");
  EXPECT_DOUBLE_EQ(sets[0].fills[0].parameters[0], 256.0 / (4 * 4096));
  task = taskOf(ElementType::F32, 4096);
  sets = InputPlan(task, 1, "image").exact();
  ASSERT_EQ(sets.size(), 3u);
  EXPECT_DOUBLE_EQ(sets[0].fills[0].parameters[0], 0.5);
  EXPECT_TRUE(sets[0].exact);
}

TEST(InputsTest, IndexBuffersKeepTheirRecipe) {
  KernelTask task = taskOf(ElementType::F32, 1);
  InputPlan plan(task, 1, "image");
  for (auto sets : {plan.exact(), plan.workload(), plan.battery()})
    for (const InputSet &set : sets) {
      EXPECT_EQ(set.fills[1].family, "integers") << set.words;
      EXPECT_EQ(set.fills[1].parameters[1], 7) << set.words;
    }
}

TEST(InputsTest, FactorsDifferInSign) {
  KernelTask task = taskOf(ElementType::F32, 1);
  auto fills = [&](llvm::StringRef words) {
    std::vector<std::string> texts;
    for (const InputSet &set : InputPlan(task, 1, "image").battery())
      if (set.words == words)
        for (size_t i = 0; i < set.fills.size(); ++i)
          if (isFloat(task.arguments[i].element))
            texts.push_back(set.fills[i].print());
    return texts;
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(fills("far below zero"), Texts{"normal(-200, 5)"});
  EXPECT_EQ(fills("all very far below zero"),
            Texts{"uniform(-2000000, -1000000)"});
  // What is only written counts for nothing.
  for (const char *name : {"y", "w", "b", "c"}) {
    task.arguments.push_back(bufferArgument(
        name, ElementType::F32, {8},
        llvm::StringRef(name) == "y" ? Access::Write : Access::Read));
    task.workload[0].fills.push_back(FillRecipe());
  }
  Texts near = fills("far from zero, each buffer on one side");
  Texts far = fills("very far from zero, each buffer on one side");
  near.erase(near.begin() + 1);
  far.erase(far.begin() + 1);
  EXPECT_EQ(near, (Texts{"normal(-200, 5)", "normal(200, 5)", "normal(-200, 5)",
                         "normal(200, 5)"}));
  std::string low = "uniform(-2000000, -1000000)";
  std::string high = "uniform(1000000, 2000000)";
  EXPECT_EQ(far, (Texts{low, low, high, high}));
  EXPECT_TRUE(fills("far below zero").empty());
}

TEST(InputsTest, LongSumsAreMovedByNoMoreThanTheirTypeBears) {
  for (auto [element, units] :
       {std::pair(ElementType::F32, 256.0), {ElementType::BF16, 8.0}}) {
    KernelTask task = taskOf(element, 256);
    task.work.accumulation = 65536;
    bool any = false;
    for (const InputSet &set : InputPlan(task, 1, "image").battery())
      if (set.words == "small numbers") {
        EXPECT_EQ(set.conditioning, units);
        any = true;
      }
    EXPECT_TRUE(any);
  }
}

TEST(InputsTest, UnreadElementsStandOut) {
  KernelTask task = taskOf(ElementType::F32, 256);
  auto marked = std::make_shared<llvm::BitVector>(4, true);
  std::vector<InputSet> sets =
      InputPlan(task, 1, "image").unread({{0, marked, 0}, {1, marked, 0}});
  std::vector<double> values[2];
  for (const InputSet &set : sets) {
    EXPECT_TRUE(set.mayOverflow);
    ASSERT_EQ(set.planted.size(), 2u);
    for (unsigned i : {0, 1})
      values[i].push_back(set.planted[i].value);
  }
  EXPECT_EQ(values[0], (std::vector<double>{0x1p14, -0x1p14, 4, -4}));
  // Integers may be indices: no others than the workload has.
  EXPECT_EQ(values[1], (std::vector<double>{7, 0, 7, 0}));
  task.workload[0].fills[1] = *FillRecipe::parse("iota");
  EXPECT_TRUE(InputPlan(task, 1, "image").unread({{1, marked, 0}}).empty());
}

TEST(InputsTest, SpecialValues) {
  KernelTask task = taskOf(ElementType::F32, 256);
  auto families = [&](size_t argument) {
    std::vector<std::string> texts;
    for (const InputSet &set : InputPlan(task, 1, "image").special()) {
      EXPECT_TRUE(set.special);
      texts.push_back(set.fills[argument].print());
    }
    return texts;
  };
  using Texts = std::vector<std::string>;
  Texts all = {"specials(0.0009765625, 0)", "specials(0, 0.0009765625)",
               "specials(0.00048828125, 0.00048828125)", "masked(-inf)"};
  EXPECT_EQ(families(0), all);
  EXPECT_EQ(families(1), Texts(4, "integers(0, 7)"));
  // A sum that is added to begins with a number, but for once.
  task.arguments.push_back(
      bufferArgument("sum", ElementType::F32, {1}, Access::ReadWrite));
  task.workload[0].fills.push_back(FillRecipe());
  EXPECT_EQ(families(2),
            (Texts{"normal(0, 1)", "normal(0, 1)", all[2], "normal(0, 1)"}));
  // What works in place has nothing else to read.
  task.arguments[0].access = Access::Write;
  EXPECT_EQ(families(2), all);
  task.arguments[2].access = Access::Write;
  EXPECT_EQ(families(2), Texts());
}

TEST(InputsTest, OneNumberAboveTheOthers) {
  KernelTask task = taskOf(ElementType::F32, 256);
  std::vector<InputSet> many = InputPlan(task, 1, "image").dominated(false);
  ASSERT_EQ(many.size(), 2u);
  EXPECT_EQ(many[1].fills[0].print(), "dominated(0.5, 0.5, 83.5)");
  EXPECT_EQ(many[1].fills[1].print(), "integers(0, 7)");
  EXPECT_TRUE(many[1].repeats);
  // Few results are told together, by kind of inputs.
  std::map<std::string, std::set<uint64_t>> seeds;
  for (const InputSet &set : InputPlan(task, 1, "image").dominated(true)) {
    EXPECT_EQ(set.fills[0].family, "dominated");
    seeds[set.words].insert(set.seed);
  }
  ASSERT_EQ(seeds.size(), 3u);
  for (const auto &[words, ofWords] : seeds)
    EXPECT_EQ(ofWords.size(), 6u) << words;
  // An f16 has no number for an exponential of -10.
  task = taskOf(ElementType::F16, 256);
  EXPECT_EQ(InputPlan(task, 1, "image").dominated(true).size(), 6u);
  task.work.movesOnly = true;
  EXPECT_TRUE(InputPlan(task, 1, "image").dominated(true).empty());
}

TEST(InputsTest, BuffersThatMayBeOne) {
  KernelTask task = taskOf(ElementType::F32, 1);
  auto standIns = [&] {
    for (const InputSet &set : InputPlan(task, 1, "image").battery())
      if (!set.standIns.empty())
        return set.standIns;
    return std::vector<size_t>();
  };
  using Indices = std::vector<size_t>;
  EXPECT_EQ(standIns(), Indices());
  for (ElementType element : {ElementType::F32, ElementType::I64})
    task.arguments.push_back(
        bufferArgument("n" + std::to_string(task.arguments.size()), element,
                       {8}, Access::Read));
  // Floats whatever they hold, integers of one recipe alone.
  task.workload[0].fills.push_back(*FillRecipe::parse("uniform(0, 1)"));
  task.workload[0].fills.push_back(*FillRecipe::parse("integers(0, 3)"));
  EXPECT_EQ(standIns(), (Indices{0, 1, 0, 3}));
  task.workload[0].fills[3] = task.workload[0].fills[1];
  EXPECT_EQ(standIns(), (Indices{0, 1, 0, 1}));
  task.arguments[2].access = Access::ReadWrite;
  EXPECT_EQ(standIns(), (Indices{0, 1, 2, 1}));
  task.facts = {"i and n3 do not overlap"};
  EXPECT_EQ(standIns(), Indices());
}

TEST(InputsTest, IntegerBuffersTakeNoFloatFamily) {
  EXPECT_EQ(recipeFor(ElementType::I32, FillRecipe()).family, "integers");
  EXPECT_EQ(recipeFor(ElementType::I1, FillRecipe()).family, "bernoulli");
  EXPECT_EQ(recipeFor(ElementType::F16, FillRecipe()).family, "normal");
}

TEST(InputsTest, SeedsDifferByImageRunAndSet) {
  KernelTask task = taskOf(ElementType::F32, 1);
  std::set<uint64_t> seeds;
  size_t count = 0;
  for (uint64_t run : {1, 2})
    for (const char *image : {"one", "two"}) {
      InputPlan plan(task, run, image);
      for (auto sets : {plan.exact(), plan.workload(), plan.battery()})
        for (const InputSet &set : sets) {
          seeds.insert(set.seed);
          ++count;
        }
      for (unsigned i = 0; i < 8; ++i, ++count)
        seeds.insert(plan.timing(i).seed);
    }
  EXPECT_EQ(seeds.size(), count);
  EXPECT_EQ(InputPlan(task, 1, "one").timing(0).seed,
            InputPlan(task, 1, "one").timing(0).seed);
}

} // namespace
