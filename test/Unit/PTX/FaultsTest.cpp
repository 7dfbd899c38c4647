// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels with a fault each, and their twins without: Faults/faults.txt lists
// them, Faults/*.cu are the sources, which mark the lines. Under each schedule
// a fault is told with its kind and line, and nothing is told about a twin.
//
//===----------------------------------------------------------------------===//

#include "fsr/PTX/VirtualGpu.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include "gtest/gtest.h"

#include <cstring>

namespace fsr::ptx {
namespace {

std::string readInput(const std::string &name) {
  auto buffer = llvm::MemoryBuffer::getFile(
      std::string(FSR_TEST_INPUTS) + "/../Faults/" + name, /*IsText=*/true);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

struct FaultCase {
  std::string source, kernel;
  LaunchShapeOf shape;
  std::vector<std::string> arguments, kinds;
};

/// For messages of the test's frame.
void PrintTo(const FaultCase &fault, std::ostream *os) {
  *os << fault.source << " " << fault.kernel;
}

std::vector<std::string> wordsOf(llvm::StringRef text) {
  std::vector<std::string> words;
  for (;;) {
    auto [word, rest] = llvm::getToken(text);
    if (word.empty())
      return words;
    words.push_back(word.str());
    text = rest;
  }
}

std::array<unsigned, 3> shapeOf(llvm::StringRef text) {
  std::array<unsigned, 3> shape{1, 1, 1};
  for (unsigned &extent : shape) {
    auto [number, rest] = text.split(',');
    if (!number.empty() && number.getAsInteger(10, extent))
      extent = 0; // A launch refuses it.
    text = rest;
  }
  return shape;
}

bool isArgument(llvm::StringRef word) {
  return word == "null" ||
         (word.size() > 1 && (llvm::isDigit(word[1]) || word[1] == '-'));
}

std::vector<FaultCase> readCases() {
  std::vector<FaultCase> cases;
  std::string text = readInput("faults.txt");
  llvm::StringRef left = text;
  while (!left.empty()) {
    auto [line, rest] = left.split('\n');
    left = rest;
    std::vector<std::string> words = wordsOf(line.split('#').first);
    if (words.size() < 6)
      continue;
    FaultCase one{words[0], words[1], {}, {}, {}};
    one.shape.grid = shapeOf(words[2]);
    one.shape.block = shapeOf(words[3]);
    if (llvm::StringRef(words[4]).getAsInteger(10, one.shape.sharedBytes))
      one.shape.grid = {0, 0, 0};
    for (size_t i = 5; i < words.size(); ++i)
      (isArgument(words[i]) ? one.arguments : one.kinds).push_back(words[i]);
    cases.push_back(std::move(one));
  }
  return cases;
}

struct Order {
  Schedule schedule;
  uint64_t seed;
  unsigned hostThreads;
};
const Order orders[] = {
    {Schedule::Lockstep, 1, 1},    {Schedule::Lockstep, 1, 3},
    {Schedule::SplitLanes, 1, 1},  {Schedule::SplitLanes, 2, 1},
    {Schedule::SplitLanes, 3, 2},  {Schedule::RandomWarps, 1, 1},
    {Schedule::RandomWarps, 2, 1}, {Schedule::RandomWarps, 3, 2}};

/// Over all cases, for the last line of the output.
struct Totals {
  unsigned faults = 0, found = 0, twins = 0, clean = 0;
} totals;

class FaultsTest : public testing::TestWithParam<FaultCase> {
protected:
  static void TearDownTestSuite() {
    llvm::SmallSet<Schedule, 4> schedules;
    for (const Order &order : orders)
      schedules.insert(order.schedule);
    printf("faults found: %u of %u; twins clean: %u of %u; schedules: %zu, "
           "in %zu runs each\n",
           totals.found, totals.faults, totals.clean, totals.twins,
           schedules.size(), std::size(orders));
  }

  /// A device of its own for each run, so that none sees another's memory.
  llvm::Expected<LaunchResult> launch(const std::string &ptx,
                                      const Order &order, uint64_t budget) {
    const FaultCase &fault = GetParam();
    std::unique_ptr<VirtualGpu> gpu = makeVirtualGpu(VirtualGpuOptions());
    llvm::Expected<unsigned> module = gpu->loadModule(ptx);
    if (!module)
      return module.takeError();
    auto parameters = gpu->parameters(*module, fault.kernel);
    if (!parameters)
      return parameters.takeError();
    std::vector<uint8_t> block;
    for (size_t i = 0; i < parameters->size(); ++i) {
      const KernelParameter &at = (*parameters)[i];
      block.resize(at.offset + at.bytes);
      if (i >= fault.arguments.size())
        break;
      uint64_t value = make(*gpu, fault.arguments[i]);
      std::memcpy(block.data() + at.offset, &value,
                  std::min<uint64_t>(at.bytes, sizeof(value)));
    }
    EXPECT_EQ(parameters->size(), fault.arguments.size());
    LaunchOptions options;
    options.schedule = order.schedule;
    options.seed = order.seed;
    options.hostThreads = order.hostThreads;
    options.instructionBudget = budget;
    return gpu->launch(*module, fault.kernel, fault.shape, block, options);
  }

  static uint64_t make(VirtualGpu &gpu, llvm::StringRef argument) {
    if (argument == "null")
      return 0;
    bool isConst = argument.consume_back("!");
    char what = argument.front();
    llvm::StringRef number = argument.drop_front();
    uint64_t value = 0;
    if (what == 'g') {
      double parsed = 0;
      EXPECT_FALSE(number.getAsDouble(parsed)) << argument.str();
      auto single = float(parsed);
      std::memcpy(&value, &single, sizeof(single));
      return value;
    }
    EXPECT_FALSE(number.getAsInteger(10, value)) << argument.str();
    if (what == 'i')
      return value;
    uint64_t address = cantFail(gpu.allocate(value * 4));
    for (uint64_t i = 0; i < value && what != 'x'; ++i) {
      uint32_t word = what == 'n' ? uint32_t(i) : 0;
      if (what == 'f') {
        float single = float(i % 13) + 1.0f;
        std::memcpy(&word, &single, sizeof(word));
      }
      cantFail(gpu.write(address + i * 4, &word, 4));
    }
    if (isConst)
      cantFail(gpu.setConst(address, true));
    return address;
  }
};

std::string describe(const Order &order) {
  return nameOf(order.schedule).str() + ", seed " + std::to_string(order.seed) +
         ", " + std::to_string(order.hostThreads) + " host threads";
}

std::string withDashes(llvm::StringRef text) {
  std::string result = text.str();
  std::replace(result.begin(), result.end(), ' ', '-');
  return result;
}

/// The marked lines of the kernel and of what stands before it, from the end of
/// the kernel before on.
std::vector<unsigned> markedLines(llvm::StringRef source,
                                  const std::string &kernel) {
  std::vector<unsigned> lines;
  bool isIt = false, isKernel = false;
  for (unsigned number = 1; !source.empty(); ++number) {
    auto [line, rest] = source.split('\n');
    source = rest;
    if (line.starts_with("KERNEL")) {
      isKernel = true;
      isIt = line.contains(" " + kernel + "(");
    }
    if (line.contains("// FAULT"))
      lines.push_back(number);
    if (line != "}" || !isKernel)
      continue;
    if (isIt)
      return lines;
    lines.clear();
    isKernel = false;
  }
  return {};
}

TEST_P(FaultsTest, IsFound) {
  const FaultCase &fault = GetParam();
  ++totals.faults;
  std::vector<unsigned> lines =
      markedLines(readInput(fault.source + ".cu"), fault.kernel);
  ASSERT_FALSE(lines.empty()) << "no line of the source is marked";
  ASSERT_FALSE(fault.kinds.empty());
  std::string ptx = readInput(fault.source + ".faulty.ptx");
  llvm::StringRef wanted = fault.kinds[0];
  bool isRemark = wanted.consume_front("~");
  llvm::SmallVector<llvm::StringRef, 2> either;
  wanted.split(either, '|');
  for (const Order &order : orders) {
    SCOPED_TRACE(describe(order));
    llvm::Expected<LaunchResult> result = launch(ptx, order, 1 << 20);
    ASSERT_TRUE(bool(result)) << toString(result.takeError());
    std::vector<Finding> &told = isRemark ? result->remarks : result->findings;
    bool isFound = false;
    for (const Finding &finding : told) {
      std::string kind = withDashes(nameOf(finding.kind));
      bool isAtLine = finding.file == fault.source + ".cu" &&
                      llvm::is_contained(lines, finding.line);
      EXPECT_TRUE(isAtLine) << "not at a marked line: " << finding.text();
      bool isKind = llvm::is_contained(either, kind);
      EXPECT_TRUE(isKind || llvm::is_contained(fault.kinds, kind))
          << "of another kind: " << finding.text();
      isFound |= isAtLine && isKind;
      EXPECT_FALSE(finding.message.empty());
      if (getenv("FSR_SHOW_FAULTS"))
        printf("%s: %s: %s\n", fault.kernel.c_str(), describe(order).c_str(),
               finding.text().c_str());
    }
    EXPECT_TRUE(isFound) << wanted.str() << " is not found";
    if (isRemark)
      EXPECT_TRUE(result->findings.empty());
  }
  totals.found += !HasFailure();
}

TEST_P(FaultsTest, TwinIsClean) {
  const FaultCase &fault = GetParam();
  ++totals.twins;
  std::string ptx = readInput(fault.source + ".clean.ptx");
  for (const Order &order : orders) {
    SCOPED_TRACE(describe(order));
    llvm::Expected<LaunchResult> result = launch(ptx, order, 1 << 26);
    ASSERT_TRUE(bool(result)) << toString(result.takeError());
    EXPECT_TRUE(result->completed);
    for (const Finding &finding : result->findings)
      ADD_FAILURE() << finding.text();
  }
  totals.clean += !HasFailure();
}

INSTANTIATE_TEST_SUITE_P(Faults, FaultsTest, testing::ValuesIn(readCases()),
                         [](const testing::TestParamInfo<FaultCase> &info) {
                           return info.param.source + "_" + info.param.kernel;
                         });

} // namespace
} // namespace fsr::ptx
