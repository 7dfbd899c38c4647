// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The text form of fill recipes. `parse` accepts only what every filler can do:
// the right number of parameters, each in its range. The printed form of a
// double is the shortest that reads back as the same double.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/KernelTask.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

namespace fsr {

namespace {

struct Family {
  llvm::StringLiteral name;
  size_t parameters;
  llvm::StringLiteral usage;
  bool anyValue = false; ///< Infinities and NaN may be parameters.
};

constexpr Family families[] = {
    {"normal", 2, "normal(mean, deviation)"},
    {"uniform", 2, "uniform(low, high)"},
    {"loguniform", 2, "loguniform(low, high)"},
    {"bernoulli", 1, "bernoulli(p)"},
    {"signs", 1, "signs(p)"},
    {"integers", 2, "integers(low, high)"},
    {"equal", 1, "equal(value)", true},
    {"onehot", 1, "onehot(value)", true},
    {"alternating", 2, "alternating(large, small)", true},
    {"zeros", 0, "zeros"},
    {"denormal", 0, "denormal"},
    {"iota", 0, "iota"},
    {"tails", 3, "tails(deviation, p, size)"},
    {"spike", 2, "spike(deviation, value)"},
    {"shiftednormal", 3, "shiftednormal(low, high, deviation)"},
    {"shifteduniform", 3, "shifteduniform(low, high, half)"},
    {"sines", 2, "sines(low, high)"},
    {"zipf", 2, "zipf(low, high)"},
    {"sorted", 2, "sorted(low, high)"},
    {"reversed", 2, "reversed(low, high)"},
    {"gram", 1, "gram(rows)"},
    {"drifting", 2, "drifting(mean, deviation)"},
    {"specials", 2, "specials(nans, infinities)"},
    {"peaks", 2, "peaks(value, apart)"},
    {"masked", 1, "masked(value)", true},
    {"scaled", 2, "scaled(low, high)"},
    {"dominated", 3, "dominated(low, high, spread)"},
};

const Family *findFamily(llvm::StringRef name) {
  for (const Family &family : families)
    if (family.name == name)
      return &family;
  return nullptr;
}

std::string printDouble(double value) {
  if (std::isnan(value))
    return "nan";
  if (std::isinf(value))
    return value < 0 ? "-inf" : "inf";
  std::string text;
  // Not as 1e+02; and -0 has a sign to keep.
  if (value == std::floor(value) && value != 0 && std::fabs(value) < 1e9)
    return std::to_string(int64_t(value));
  for (int digits = 1; digits <= 17; ++digits) {
    text.clear();
    llvm::raw_string_ostream(text) << llvm::format("%.*g", digits, value);
    double back = 0;
    if (!llvm::StringRef(text).getAsDouble(back, /*AllowInexact=*/true) &&
        back == value)
      break;
  }
  return text;
}

llvm::Error refuse(llvm::StringRef text, const llvm::Twine &why) {
  return makeError(ErrorKind::BadInput,
                   "fill recipe '" + text.take_front(80) + "': " + why);
}

/// What is wrong with the parameters of a family, or nothing.
llvm::StringRef rangeError(const Family &family, llvm::ArrayRef<double> p) {
  if (!family.anyValue &&
      llvm::any_of(p, [](double v) { return !std::isfinite(v); }))
    return "wanted finite parameters";
  llvm::StringRef name = family.name;
  if (((name == "normal" || name == "drifting") && p[1] < 0) ||
      ((name == "tails" || name == "spike") && p[0] < 0) ||
      (name == "shiftednormal" && p[2] < 0))
    return "wanted a deviation of at least 0";
  if (name == "shifteduniform" && p[2] < 0)
    return "wanted a half width of at least 0";
  if (name == "dominated" && (p[0] < 0 || p[2] < 0))
    return "wanted distances of at least 0";
  if (name == "gram" && p[0] <= 0)
    return "wanted rows > 0";
  constexpr llvm::StringLiteral ranges[] = {
      "uniform",        "loguniform", "integers", "shiftednormal",
      "shifteduniform", "sines",      "zipf",     "sorted",
      "reversed",       "scaled",     "dominated"};
  if (llvm::is_contained(ranges, name) && p[0] > p[1])
    return "wanted low <= high";
  if ((name == "loguniform" || name == "scaled") && p[0] <= 0)
    return "wanted low > 0";
  if (((name == "bernoulli" || name == "signs") && (p[0] < 0 || p[0] > 1)) ||
      (name == "tails" && (p[1] < 0 || p[1] > 1)))
    return "wanted a probability from 0 to 1";
  if (name == "specials" &&
      !(p[0] >= 0 && p[1] >= 0 && p[0] + p[1] > 0 && p[0] + p[1] <= 1))
    return "wanted probabilities with a sum above 0 and of at most 1";
  if (name == "peaks" && !(p[1] >= 1 && p[1] <= 1024))
    return "wanted elements that are 1 to 1024 apart";
  // Beyond 2^53 a double skips integers.
  if ((name == "integers" || name == "zipf") && llvm::any_of(p, [](double v) {
        return v != std::floor(v) || std::fabs(v) > 9007199254740992.0;
      }))
    return "wanted integers of at most 2^53 in magnitude";
  return {};
}

} // namespace

FillRecipe FillRecipe::standard(ElementType element) {
  FillRecipe fill;
  if (isFloat(element)) {
    fill.family = "normal";
    fill.parameters = {0, 1};
  } else if (element == ElementType::I1) {
    fill.family = "bernoulli";
    fill.parameters = {0.5};
  } else {
    fill.family = "integers";
    fill.parameters = {0, 15};
  }
  return fill;
}

llvm::Expected<FillRecipe> FillRecipe::parse(llvm::StringRef text) {
  llvm::StringRef rest = text.trim();
  if (rest.size() > 256)
    return refuse(text, "wanted at most 256 characters");
  size_t open = rest.find('(');
  llvm::StringRef name = rest.take_front(open).rtrim();
  const Family *family = findFamily(name);
  if (!family) {
    std::string known;
    for (const Family &each : families)
      known += (known.empty() ? "" : ", ") + each.usage.str();
    return refuse(text, "got family '" + name + "', wanted one of " + known);
  }

  FillRecipe recipe;
  recipe.family = name.str();
  if (open == llvm::StringRef::npos) {
    // "normal" alone is the standard one; so a default recipe has a text.
    if (family->name == "normal")
      recipe.parameters = {0, 1};
    else if (family->parameters)
      return refuse(text, "wanted " + family->usage);
    return recipe;
  }
  rest = rest.drop_front(open + 1);
  if (!rest.consume_back(")"))
    return refuse(text, "wanted ')' at the end");
  llvm::SmallVector<llvm::StringRef, 4> pieces;
  if (!rest.trim().empty())
    rest.split(pieces, ',');
  for (llvm::StringRef piece : pieces) {
    double value = 0;
    if (piece.trim().getAsDouble(value, /*AllowInexact=*/true))
      return refuse(text, "got '" + piece.trim() + "', wanted a number");
    recipe.parameters.push_back(value);
  }
  if (recipe.parameters.size() != family->parameters)
    return refuse(text, "got " + llvm::Twine(recipe.parameters.size()) +
                            " parameters, wanted " + family->usage);
  llvm::StringRef wrong = rangeError(*family, recipe.parameters);
  if (!wrong.empty())
    return refuse(text, wrong);
  return recipe;
}

std::string FillRecipe::print() const {
  std::vector<double> values = parameters;
  if (family == "normal" && values.empty())
    values = {0, 1};
  if (values.empty())
    return family;
  std::string text = family + "(";
  for (size_t i = 0; i < values.size(); ++i)
    text += (i ? ", " : "") + printDouble(values[i]);
  return text + ")";
}

} // namespace fsr
