// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The families and their parameters. Exact inputs keep every partial sum below
// the largest integer that the narrowest float type holds, so each order of
// additions gives the same value.
//
//===----------------------------------------------------------------------===//

#include "Inputs.h"

#include "fsr/Support/Hash.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fsr {

namespace {

/// 1/u of the narrowest float type among the buffers: integers up to here are
/// exact.
double exactLimit(const KernelTask &task) {
  double limit = std::ldexp(1.0, 53);
  for (const Argument &argument : task.arguments)
    if (isFloat(argument.element))
      limit = std::min(limit, 1 / unitRoundoff(argument.element));
  return limit;
}

bool narrowRange(const KernelTask &task) {
  return std::any_of(
      task.arguments.begin(), task.arguments.end(),
      [](const Argument &a) { return a.element == ElementType::F16; });
}

bool readsFloats(const KernelTask &task) {
  return llvm::any_of(task.arguments, [](const Argument &a) {
    return a.isBuffer && isFloat(a.element) && a.access != Access::Write;
  });
}

/// A candidate may rely on what is said of every launch.
bool areDisjoint(const KernelTask &task, const std::string &a,
                 const std::string &b) {
  return llvm::is_contained(task.facts, a + " and " + b + " do not overlap") ||
         llvm::is_contained(task.facts, b + " and " + a + " do not overlap");
}

FillRecipe recipe(llvm::StringRef family, std::vector<double> parameters) {
  FillRecipe recipe;
  recipe.family = family.str();
  recipe.parameters = std::move(parameters);
  return recipe;
}

// Far apart, so that the sets of one phase never meet those of another.
enum : uint64_t {
  ExactBase = 0x100,
  WorkBase = 0x200,
  FullBase = 0x300,
  SharedBase = 0x400,
  SpecialBase = 0x500,
  AnsweredBase = 0x600,
  SparseBase = 0x700,
  UnreadBase = 0x800,
  DominatedBase = 0x900,
  TimingBase = 0x10000
};

} // namespace

FillRecipe recipeFor(ElementType element, const FillRecipe &wanted) {
  if (isFloat(element) || wanted.family == "integers" ||
      wanted.family == "iota" || wanted.family == "zeros" ||
      wanted.family == "equal" || wanted.family == "bernoulli" ||
      wanted.family == "onehot" || wanted.family == "zipf")
    return wanted;
  return element == ElementType::I1 ? recipe("bernoulli", {0.5})
                                    : recipe("integers", {0, 15});
}

FillRecipe drifted(const FillRecipe &wanted, uint64_t seed) {
  double mean = wanted.parameters.size() > 0 ? wanted.parameters[0] : 0;
  double deviation = wanted.parameters.size() > 1 ? wanted.parameters[1] : 1;
  std::string digest =
      FieldHasher().add("drifting").add(int64_t(seed)).digest();
  auto share = [&](size_t at) {
    uint32_t bits = 0;
    llvm::StringRef(digest).substr(at, 8).getAsInteger(16, bits);
    return double(bits) / 4294967296.0;
  };
  double offset = 0.25 + 0.75 * share(0), scale = 1 + share(8);
  return recipe("normal",
                {mean + (share(16) < 0.5 ? -offset : offset) * deviation,
                 scale * deviation});
}

InputPlan::InputPlan(const KernelTask &task, uint64_t runSeed,
                     llvm::StringRef imageDigest)
    : task(task), runSeed(runSeed), imageDigest(imageDigest.str()) {}

uint64_t InputPlan::seed(uint64_t index) const {
  std::string digest = FieldHasher()
                           .add(int64_t(runSeed))
                           .add(imageDigest)
                           .add(int64_t(index))
                           .digest();
  uint64_t seed = 0;
  llvm::StringRef(digest).take_front(16).getAsInteger(16, seed);
  return seed;
}

InputSet InputPlan::base(llvm::StringRef words, uint64_t index,
                         size_t which) const {
  InputSet set;
  set.words = words.str();
  set.seed = seed(index);
  if (which < task.workload.size())
    set.fills = task.workload[which].fills;
  set.fills.resize(task.arguments.size());
  for (size_t i = 0; i < set.fills.size(); ++i)
    set.fills[i] = recipeFor(task.arguments[i].element, set.fills[i]);
  return set;
}

InputSet InputPlan::withFloats(llvm::StringRef words, uint64_t index,
                               const FillRecipe &wanted) const {
  InputSet set = base(words, index, 0);
  for (size_t i = 0; i < set.fills.size(); ++i)
    if (task.arguments[i].isBuffer && isFloat(task.arguments[i].element))
      set.fills[i] = wanted;
  return set;
}

std::vector<InputSet> InputPlan::exact() const {
  std::vector<InputSet> sets;
  double limit = exactLimit(task);
  double terms = std::max<double>(1, double(task.work.accumulation));
  double density = std::min(0.5, limit / (4 * terms));
  sets.push_back(
      withFloats("zeros and ones", ExactBase, recipe("bernoulli", {density})));
  sets.push_back(withFloats("minus one, zero and one", ExactBase + 1,
                            recipe("signs", {density})));
  double largest = std::floor(std::sqrt(limit / (4 * terms)));
  largest = std::min(largest, 4.0);
  if (largest >= 2)
    sets.push_back(withFloats("small integers", ExactBase + 2,
                              recipe("integers", {-largest, largest})));
  for (InputSet &set : sets)
    set.exact = true;
  return sets;
}

std::vector<InputSet> InputPlan::workload() const {
  std::vector<InputSet> sets;
  for (size_t i = 0; i < std::max<size_t>(1, task.workload.size()); ++i)
    sets.push_back(base("the workload's own", WorkBase + 2 * i, i));
  sets.front().comesAgain = true;
  for (size_t i = 0, cases = sets.size(); i < cases; ++i) {
    sets.push_back(base("the workload's own", WorkBase + 2 * i + 1, i));
    sets.back().shifted = true;
  }
  return sets;
}

std::optional<InputSet> InputPlan::shared(uint64_t index) const {
  InputSet set = base("the workload's own, shared by read-only buffers of one "
                      "shape",
                      index, 0);
  bool any = false;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    set.standIns.push_back(i);
    if (!argument.isBuffer || argument.access != Access::Read)
      continue;
    for (size_t j = 0; j < i; ++j) {
      const Argument &other = task.arguments[j];
      // Integers may be indices into something of another size.
      bool isLike = other.isBuffer && other.access == Access::Read &&
                    other.element == argument.element &&
                    other.sizes == argument.sizes &&
                    other.strides == argument.strides &&
                    (isFloat(argument.element) ||
                     set.fills[i].print() == set.fills[j].print()) &&
                    !areDisjoint(task, argument.name, other.name);
      if (!isLike)
        continue;
      set.standIns[i] = j;
      any = true;
      break;
    }
  }
  if (!any)
    return std::nullopt;
  return set;
}

std::vector<InputSet> InputPlan::answered() const {
  bool anyWritten = llvm::any_of(task.arguments, [](const Argument &a) {
    return a.isBuffer && a.access != Access::Read;
  });
  bool anyRead = llvm::any_of(task.arguments, [](const Argument &a) {
    return a.isBuffer && a.access != Access::Write;
  });
  if (!anyWritten || !anyRead)
    return {};
  std::vector<InputSet> sets;
  sets.push_back(base("the workload's own (an earlier answer in the outputs)",
                      AnsweredBase, 0));
  // Who looks at a few places finds the answer right there.
  sets.push_back(base("the workload's own (in the outputs an answer to nearly "
                      "the same ones)",
                      AnsweredBase + 1, 0));
  sets.back().changed = 1.0 / 64;
  for (InputSet &set : sets) {
    set.answered = true;
    set.mayOverflow = true;
    set.otherSeed = seed(AnsweredBase + 0x10 + (&set - sets.data()));
  }
  return sets;
}

std::vector<InputSet> InputPlan::sparse() const {
  constexpr double expected = 16, most = 64;
  std::vector<InputSet> sets;
  double accumulation = double(task.work.accumulation);
  if (!readsFloats(task) || accumulation <= most)
    return sets;
  for (unsigned i = 0; i < 2; ++i) {
    InputSet set = withFloats("few numbers among zeros", SparseBase + i,
                              recipe("uniform", {1, 2}));
    for (size_t k = 0; k < set.fills.size(); ++k)
      if (isFloat(task.arguments[k].element) &&
          task.arguments[k].access == Access::ReadWrite)
        set.fills[k] = recipe("zeros", {});
    set.kept = expected / accumulation;
    set.terms = most;
    set.otherSeed = seed(SparseBase + 0x10 + i);
    set.mayOverflow = true;
    set.conditioning = 8;
    sets.push_back(std::move(set));
  }
  return sets;
}

std::vector<InputSet> InputPlan::unread(llvm::ArrayRef<Planted> marked) const {
  // Far above what the workload has, and of its size, of either sign.
  double far = narrowRange(task) ? 64 : 0x1p14;
  std::vector<InputSet> sets;
  for (double value : {far, -far, 4.0, -4.0}) {
    InputSet set =
        base("the workload's own (other numbers where the candidate reads "
             "nothing)",
             UnreadBase + sets.size(), 0);
    for (Planted one : marked) {
      const FillRecipe &fill = set.fills[one.argument];
      one.value = value;
      if (!isFloat(task.arguments[one.argument].element)) {
        // Integers may be indices: the ends of the workload's own range.
        if (fill.family == "integers" && fill.parameters.size() == 2)
          one.value = fill.parameters[value > 0];
        else if (fill.family == "bernoulli")
          one.value = value > 0;
        else
          continue;
      }
      set.planted.push_back(std::move(one));
    }
    set.mayOverflow = true;
    if (!set.planted.empty())
      sets.push_back(std::move(set));
  }
  return sets;
}

std::vector<InputSet> InputPlan::dominated(bool fewResults) const {
  std::vector<InputSet> sets;
  if (!readsFloats(task) || task.work.movesOnly)
    return sets;
  auto add = [&](llvm::StringRef words, FillRecipe wanted) {
    sets.push_back(withFloats(words, DominatedBase + sets.size(), wanted));
  };
  bool narrow = narrowRange(task);
  if (!fewResults) {
    // Scores of such numbers lie as far apart as exponents of a sum that it
    // still sees.
    add("normal, of twice the size", recipe("normal", {0, 2}));
    // All distances that an exponential has numbers for. A sum of one large and
    // many small ones rounds the same way all along.
    add("one number of each row above the others, by much or little",
        recipe("dominated", {0.5, 0.5, narrow ? 8.5 : 83.5}));
    sets.back().repeats = true;
    return sets;
  }
  // Few results are told together. What a sum sees of exponentials of the last
  // two is 2^-10 and 2^-14 a term or more.
  constexpr unsigned several = 6;
  for (unsigned i = 0; i < several; ++i)
    add("one number of each row above the others",
        recipe("dominated", {0.5, 2, 0}));
  for (unsigned i = 0; !narrow && i < several; ++i)
    add("one number of each row far above the others",
        recipe("dominated", {8, 10, 0}));
  for (unsigned i = 0; !narrow && i < several; ++i)
    add("one number of each row further above the others",
        recipe("dominated", {10, 12, 0}));
  return sets;
}

InputSet InputPlan::earlier(const InputSet &set) {
  InputSet before = set;
  before.answered = false;
  if (set.changed == 0)
    before.seed = set.otherSeed;
  return before;
}

std::vector<InputSet> InputPlan::special() const {
  std::vector<InputSet> sets;
  if (!readsFloats(task))
    return sets;
  bool anyReadOnly = llvm::any_of(task.arguments, [](const Argument &a) {
    return a.isBuffer && isFloat(a.element) && a.access == Access::Read;
  });
  // Some results without any: one in a sum makes the whole sum so.
  double terms = std::max<double>(4, double(task.work.accumulation));
  double share = 1 / (4 * terms);
  auto add = [&](llvm::StringRef words, double nans, double infinities,
                 bool inPlace) {
    InputSet set = withFloats(words, SpecialBase + sets.size(),
                              recipe("specials", {nans, infinities}));
    // What is added to hides what the sum is of.
    for (size_t i = 0; i < set.fills.size(); ++i)
      if (!inPlace && isFloat(task.arguments[i].element) &&
          task.arguments[i].access == Access::ReadWrite)
        set.fills[i] = recipe("normal", {0, 1});
    set.special = true;
    set.holdsNaN = nans > 0;
    sets.push_back(std::move(set));
  };
  add("normal with NaN", share, 0, !anyReadOnly);
  add("normal with infinities", 0, share, !anyReadOnly);
  add("normal with NaN and infinities", share / 2, share / 2, true);
  // As a mask has it: whole tiles of a row, and whole rows.
  add("normal, with runs of minus infinity", 0, share, !anyReadOnly);
  for (FillRecipe &fill : sets.back().fills)
    if (fill.family == "specials")
      fill = recipe("masked", {-std::numeric_limits<double>::infinity()});
  return sets;
}

/// A maximum of products is all negative only where their factors differ in
/// sign. So of the float buffers that are read every second one is positive,
/// and for `bit` 1 every second two: of the first four any two differ in one of
/// both sets. A single one stays, and so do two for `bit` 1.
void InputPlan::turnSome(InputSet &set, unsigned bit,
                         llvm::StringRef words) const {
  unsigned number = 0;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    if (!argument.isBuffer || !isFloat(argument.element) ||
        argument.access == Access::Write)
      continue;
    if (!((number++ >> bit) & 1))
      continue;
    std::vector<double> &parameters = set.fills[i].parameters;
    parameters[0] = -parameters[0];
    if (set.fills[i].family == "uniform") {
      parameters[1] = -parameters[1];
      std::swap(parameters[0], parameters[1]);
    }
    set.words = words.str();
  }
}

std::vector<InputSet> InputPlan::battery() const {
  std::vector<InputSet> sets;
  if (auto one = shared(SharedBase))
    sets.push_back(std::move(*one));
  for (InputSet &one : answered())
    sets.push_back(std::move(one));
  if (!readsFloats(task))
    return sets;
  bool narrow = narrowRange(task);
  size_t before = sets.size();
  auto add = [&](llvm::StringRef words, FillRecipe wanted) {
    sets.push_back(withFloats(words, FullBase + sets.size() - before, wanted));
  };
  add("normal, shifted and scaled", recipe("drifting", {3, 5}));
  add("uniform", recipe("uniform", {-2, 2}));
  add("log-uniform of either sign",
      narrow ? recipe("loguniform", {0.015625, 64})
             : recipe("loguniform", {0.0009765625, 1024}));
  // A maximum that starts at zero is right wherever one value is above.
  add("all negative", recipe("uniform", {-2, -1}));
  size_t random = sets.size();
  add("one non-zero element a row", recipe("onehot", {3}));
  add("all equal", recipe("equal", {1}));
  add("alternating large and small",
      recipe("alternating", {narrow ? 64.0 : 1024.0, 0.0009765625}));
  for (size_t i = random; i < sets.size(); ++i)
    sets[i].repeats = true;
  add("zeros", recipe("zeros", {}));
  add("denormals", recipe("denormal", {}));
  // So far that no exponential is left: a maximum that begins at zero shows
  // here, and a difference of squares.
  add("far below zero", recipe("normal", {-200, 5}));
  turnSome(sets.back(), 0, "far from zero, each buffer on one side");
  // An exponential of a sum of such numbers' products keeps few digits, in
  // whatever order they are added.
  sets.back().conditioning = 8;
  // What only holds for numbers of an ordinary size: fixed point, a limit for
  // "none", a least number that counts. Products of three stay in the type.
  size_t far = sets.size();
  double up = narrow ? 64 : 0x1p40, down = 1 / up;
  // A constant that is added before a root shows here.
  add("small numbers", recipe("normal", {0, 0x1p-8}));
  add("very large numbers", recipe("normal", {0, up}));
  add("very small numbers", recipe("normal", {0, down}));
  add("numbers of very different sizes", recipe("loguniform", {down, up}));
  add("all very far below zero", narrow ? recipe("uniform", {-60000, -30000})
                                        : recipe("uniform", {-2e6, -1e6}));
  turnSome(sets.back(), 1, "very far from zero, each buffer on one side");
  // What a kernel takes for "none" is often a number of this size. Where it
  // computes, products of two and their sums stay in the type.
  double most = narrow ? 32000 : 8e37;
  if (!task.work.movesOnly)
    most = (narrow ? 64 : 0x1p60) /
           std::sqrt(std::max<double>(1, double(task.work.accumulation)));
  add("all near the least number", recipe("uniform", {-most, -most / 2}));
  add("all near the largest number", recipe("uniform", {most / 2, most}));
  // One scale for all of a buffer loses the small ones.
  add("rows of very different sizes", recipe("scaled", {down, up}));
  // An element that is passed over shows where it stands out; who keeps a few
  // of each part loses one where many of one part do.
  add("some next to one another that stand out", recipe("peaks", {16, 1}));
  add("some that stand out, 32 apart or so", recipe("peaks", {16, 32}));
  add("some that stand out, 256 apart or so", recipe("peaks", {16, 256}));
  add("large and small numbers, a buffer each", recipe("normal", {0, up}));
  bool isSmall = false;
  for (size_t i = 0; i < task.arguments.size(); ++i) {
    const Argument &argument = task.arguments[i];
    if (!argument.isBuffer || !isFloat(argument.element) ||
        argument.access == Access::Write)
      continue;
    if (isSmall)
      sets.back().fills[i] = recipe("normal", {0, down});
    isSmall = !isSmall;
  }
  // Nothing tells how large the sums were that a small result comes of, but
  // what the inputs' own rounding makes of it: a sum in order is off by
  // sqrt(n) units of its terms.
  double coarsest = 0;
  for (const Argument &argument : task.arguments)
    if (argument.isBuffer && isFloat(argument.element))
      coarsest = std::max(coarsest, unitRoundoff(argument.element));
  double moved = std::clamp(std::sqrt(double(task.work.accumulation)), 8.0,
                            std::max(8.0, 0x1p-7 / coarsest));
  for (size_t i = far; i < sets.size(); ++i) {
    sets[i].mayOverflow = true;
    sets[i].conditioning = moved;
  }
  return sets;
}

InputSet InputPlan::timing(unsigned i, size_t which) const {
  return base("the workload's own, fresh while timing", TimingBase + i, which);
}

} // namespace fsr
