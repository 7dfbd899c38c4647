// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs one form of the floating-point family over lanes, without a program: the
// text of an opcode and its modifiers, numbers in, numbers out. Each run is
// done by the handler for plain CPUs and, where the CPU can, by the wide one;
// with all lanes and with some; all have to agree.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_PTX_FLOATHARNESS_H
#define FSR_TEST_UNIT_PTX_FLOATHARNESS_H

#include "../../../lib/PTX/Float.h"

#include "llvm/ADT/SmallString.h"

#include "gtest/gtest.h"

#include <chrono>
#include <random>

namespace fsr::ptx::test {

using Column = std::vector<uint64_t>; ///< One value a lane, any number.

class FloatRunner {
public:
  /// "fma.rn.ftz.f32" with the number of operands (result included). The widths
  /// are those of a conversion's registers; 0: the types' own.
  FloatRunner(std::string text, unsigned operands, unsigned resultBits = 0,
              unsigned sourceBits = 0, bool twoResults = false)
      : text(std::move(text)) {
    llvm::StringRef rest = this->text;
    auto [opcode, modifiers] = rest.split('.');
    instruction.opcode = opcode;
    llvm::SmallVector<llvm::StringRef, 8> parts;
    modifiers.split(parts, '.');
    instruction.modifiers.assign(parts.begin(), parts.end());
    for (bool wide : {false, true})
      select(wide ? wideOp : baseOp, wide, operands, resultBits, sourceBits,
             twoResults);
  }

  bool isSupported() const { return baseOp.run; }
  const FloatOp &op() const { return baseOp; }

  /// Results by lane; the first of two, or the second.
  Column operator()(const std::vector<Column> &sources, unsigned which = 0,
                    bool isNegated = false) const {
    if (!baseOp.run) {
      ADD_FAILURE() << text << ": " << baseOp.problem;
      return Column(sources[0].size());
    }
    EXPECT_EQ(baseOp.sources.size(), sources.size()) << text;
    Column results(sources[0].size());
    for (size_t from = 0; from < results.size(); from += warpLanes) {
      size_t count = std::min<size_t>(warpLanes, results.size() - from);
      Column plain =
          runWarp(baseOp, sources, from, count, allLanes, which, isNegated);
      Column some =
          runWarp(baseOp, sources, from, count, 0x5a5a93c5, which, isNegated);
      for (size_t lane = 0; lane < count; ++lane) {
        bool isOn = 0x5a5a93c5u >> lane & 1;
        EXPECT_EQ(some[lane], isOn ? plain[lane] : untouched(which))
            << text << " lane " << lane;
        results[from + lane] = plain[lane];
      }
      if (!hasWideVectors())
        continue;
      Column fast =
          runWarp(wideOp, sources, from, count, allLanes, which, isNegated);
      Column fastSome =
          runWarp(wideOp, sources, from, count, 0x5a5a93c5, which, isNegated);
      EXPECT_EQ(plain, fast) << text;
      EXPECT_EQ(some, fastSome) << text;
    }
    return results;
  }
  uint64_t one(std::initializer_list<uint64_t> sources,
               unsigned which = 0) const {
    std::vector<Column> columns;
    for (uint64_t source : sources)
      columns.push_back({source});
    return (*this)(columns, which)[0];
  }
  /// Nanoseconds for one warp.
  double time() const {
    std::vector<Column> sources(baseOp.sources.size(), Column(warpLanes));
    std::mt19937_64 random(1);
    for (Column &column : sources)
      for (uint64_t &value : column)
        value = 0x3f803c003f803c00 + (random() & 0x7fff007f7fff007f);
    Machine machine(wideOp, sources, 0, warpLanes, false);
    auto begin = std::chrono::steady_clock::now();
    unsigned count = 200000;
    for (unsigned i = 0; i < count; ++i)
      wideOp.run(machine.warp, machine.op, allLanes);
    return double((std::chrono::steady_clock::now() - begin).count()) / count;
  }

private:
  static constexpr uint64_t poison = 0xabababababababab;

  struct SelectedOp : FloatOp {
    bool wideTo = false, wideFrom = false;
  };

  struct Machine {
    Machine(const SelectedOp &how, const std::vector<Column> &sources,
            size_t from, size_t count, bool isNegated) {
      unsigned results = how.results.size();
      memory.assign((results + sources.size()) * warpLanes, poison);
      warp.bases[0] = reinterpret_cast<uint8_t *>(memory.data());
      op.immediate = how.immediate | (isNegated ? comparisonNegated : 0);
      op.numResults = uint8_t(results);
      op.numSources = uint8_t(sources.size());
      for (unsigned i = 0; i < results + sources.size(); ++i)
        op.slots.push_back(i);
      for (size_t i = 0; i < sources.size(); ++i) {
        Slot slot = op.operand(unsigned(i));
        bool isWide = how.sources[i] != Type::Pred &&
                      (bitWidth(how.sources[i]) == 64 || (!i && how.wideFrom));
        for (size_t lane = 0; lane < count; ++lane) {
          uint64_t value = sources[i][from + lane];
          if (how.sources[i] == Type::Pred) {
            if (!lane)
              warp.predicate(slot) = 0;
            warp.predicate(slot) |= LaneMask(value & 1) << lane;
          } else if (isWide) {
            warp.lanes<uint64_t>(slot)[lane] = value;
          } else {
            warp.lanes<uint32_t>(slot)[lane] = uint32_t(value);
          }
        }
      }
    }
    std::vector<uint64_t> memory;
    Warp warp;
    Op op;
  };

  void select(SelectedOp &op, bool wide, unsigned operands, unsigned resultBits,
              unsigned sourceBits, bool twoResults) {
    FloatForm form(instruction);
    if (!form.unknown.empty()) {
      op.fail("unknown modifier " + form.unknown);
      return;
    }
    llvm::StringRef opcode = form.opcode;
    if (opcode == "cvt") {
      auto width = [&](unsigned given, size_t which) {
        return given                       ? given
               : which < form.types.size() ? bitWidth(form.types[which])
                                           : 32;
      };
      selectConversion(form, operands, width(resultBits, 0),
                       width(sourceBits, 1), wide, op);
      op.wideTo = width(resultBits, 0) == 64;
      op.wideFrom = width(sourceBits, 1) == 64;
    } else if (opcode == "setp" || opcode == "set" || opcode == "selp" ||
               opcode == "slct" || opcode == "testp") {
      selectComparison(form, twoResults, operands - 1, wide, op);
    } else if (opcode == "rsqrt" || opcode == "ex2" || opcode == "lg2" ||
               opcode == "sin" || opcode == "cos" || opcode == "tanh" ||
               (opcode == "rcp" && form.approx && form.types[0] == Type::F64)) {
      selectApproximation(form, wide, op);
    } else {
      selectArithmetic(form, operands, wide, op);
    }
  }

  uint64_t untouched(unsigned which) const {
    if (baseOp.results[which] == Type::Pred)
      return 2;
    return isWideResult() ? poison : uint32_t(poison);
  }
  bool isWideResult() const {
    return bitWidth(baseOp.results[0]) == 64 || baseOp.wideTo;
  }

  Column runWarp(const SelectedOp &how, const std::vector<Column> &sources,
                 size_t from, size_t count, LaneMask active, unsigned which,
                 bool isNegated) const {
    Machine machine(how, sources, from, count, isNegated);
    how.run(machine.warp, machine.op, active);
    Column results(count);
    Slot slot = machine.op.result(which);
    for (size_t lane = 0; lane < count; ++lane) {
      if (how.results[which] == Type::Pred) {
        uint64_t bit = machine.warp.predicate(slot) >> lane & 1;
        bool isOn = active >> lane & 1;
        results[lane] = isOn                                    ? bit
                        : bit == (uint32_t(poison) >> lane & 1) ? 2
                                                                : 3;
      } else if (isWideResult()) {
        results[lane] = machine.warp.lanes<uint64_t>(slot)[lane];
      } else {
        results[lane] = machine.warp.lanes<uint32_t>(slot)[lane];
      }
    }
    return results;
  }

  std::string text;
  Instruction instruction;
  SelectedOp baseOp, wideOp;
};

inline uint32_t bits(float value) {
  return __builtin_bit_cast(uint32_t, value);
}
inline uint64_t bits(double value) {
  return __builtin_bit_cast(uint64_t, value);
}
inline float single(uint64_t bits) {
  return __builtin_bit_cast(float, uint32_t(bits));
}
inline double wide(uint64_t bits) { return __builtin_bit_cast(double, bits); }

/// A binary format, with its own rounding of exact values by plain arithmetic
/// on integers.
struct Format {
  unsigned bits;     ///< Of the pattern.
  unsigned fraction; ///< Bits of it.
  int least;         ///< The exponent of the least normal number.
  uint64_t nan;

  uint64_t sign() const { return uint64_t(1) << (bits - 1); }
  uint64_t infinity() const { return sign() - (uint64_t(1) << fraction); }
  bool isNan(uint64_t pattern) const {
    return (pattern & ~sign()) > infinity();
  }
  bool isInfinite(uint64_t pattern) const {
    return (pattern & ~sign()) == infinity();
  }
  uint64_t flushed(uint64_t pattern) const {
    return pattern & infinity() ? pattern : pattern & sign();
  }
  /// Exact; infinities as well, any NaN as one.
  __float128 value(uint64_t pattern) const {
    if (isNan(pattern))
      return __builtin_nan("");
    uint64_t low = pattern & ((uint64_t(1) << fraction) - 1);
    int exponent = int((pattern & ~sign()) >> fraction);
    __float128 result =
        isInfinite(pattern) ? __float128(__builtin_inf()) : __float128(low);
    if (exponent && !isInfinite(pattern))
      result += __float128(uint64_t(1) << fraction);
    int scale = (exponent ? exponent - 1 : 0) + least - int(fraction);
    for (; scale > 0; --scale)
      result *= 2;
    for (; scale < 0; ++scale)
      result /= 2;
    return pattern & sign() ? -result : result;
  }
  uint64_t round(__float128 exact, Rounding mode) const {
    auto pattern = __builtin_bit_cast(unsigned __int128, exact);
    bool isNegative = pattern >> 127;
    uint64_t negative = isNegative ? sign() : 0;
    if (exact != exact)
      return nan;
    int exponent = int(pattern >> 112) & 0x7fff;
    unsigned __int128 number = pattern & (((unsigned __int128)1 << 112) - 1);
    if (exponent == 0x7fff)
      return negative | infinity();
    if (exponent == 0)
      return negative; // No format here reaches that low.
    number |= (unsigned __int128)1 << 112;
    exponent -= 16383; // Of the top bit.
    int lowest = exponent < least ? least : exponent;
    int drop = 112 - int(fraction) + (lowest - exponent);
    unsigned __int128 kept = drop > 127 ? 0 : number >> drop;
    unsigned __int128 unit = (unsigned __int128)1 << (drop > 127 ? 127 : drop);
    unsigned __int128 rest = drop > 127 ? number : number & (unit - 1);
    bool up = false;
    if (mode == Rounding::Nearest)
      up = drop <= 127 && (rest > unit / 2 || (rest == unit / 2 && (kept & 1)));
    else if (mode == Rounding::NearestAway)
      up = drop <= 127 && rest >= unit / 2;
    else if (mode != Rounding::Zero)
      up = rest && isNegative == (mode == Rounding::Down);
    kept += up;
    // Patterns go on evenly from binade to binade.
    uint64_t result = uint64_t(kept) + (uint64_t(lowest - least) << fraction);
    if (result >= infinity()) {
      bool toInfinity =
          mode == Rounding::Nearest || mode == Rounding::NearestAway ||
          (mode != Rounding::Zero && isNegative == (mode == Rounding::Down));
      result = toInfinity ? infinity() : infinity() - 1;
    }
    return result | negative;
  }
};
inline const Format half{16, 10, -14, 0x7fff}, brain{16, 7, -126, 0x7fff},
    singles{32, 23, -126, 0x7fffffff},
    doubles{64, 52, -1022, 0xfff8000000000000};

/// A sum rounded to odd, so that a second rounding is the right one.
inline __float128 exactSum(__float128 a, __float128 b) {
  __float128 sum = a + b, fromB = sum - a, fromA = sum - fromB;
  __float128 error = (a - fromA) + (b - fromB);
  auto pattern = __builtin_bit_cast(unsigned __int128, sum);
  if (!(error > 0 || error < 0) || (pattern & 1))
    return sum;
  pattern += (error > 0) == (sum > 0) ? 1 : -1;
  return __builtin_bit_cast(__float128, pattern);
}

/// Numbers that show faults: zeros, the ends of ranges, ones, halves, NaNs.
inline Column specials(const Format &format) {
  uint64_t one = format.infinity() / 2 & format.infinity();
  uint64_t step = uint64_t(1) << format.fraction;
  Column all;
  for (uint64_t base : {uint64_t(0), step, one, one - step, one + step,
                        one + format.fraction * step, format.infinity()})
    for (int by : {-2, -1, 0, 1, 2, 3})
      if (base || by >= 0)
        all.push_back(base + by);
  all.push_back(one + step / 2);
  all.push_back(format.infinity() + step / 2);
  all.push_back(format.sign() - 1);
  for (size_t i = 0, count = all.size(); i < count; ++i)
    all.push_back(all[i] | format.sign());
  return all;
}

/// Random patterns, many with few bits, or near one another, or special.
inline Column mixture(const Format &format, size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  Column all, from = specials(format);
  uint64_t mask = format.sign() | (format.sign() - 1);
  uint64_t one = format.infinity() / 2 & format.infinity();
  for (size_t i = 0; i < count; ++i) {
    uint64_t any = random() & mask;
    switch (random() % 6) {
    case 0:
      all.push_back(from[random() % from.size()]);
      break;
    case 1: // Near one, so that sums and products meet.
      all.push_back((one + ((random() % 16) << format.fraction) -
                     (uint64_t(8) << format.fraction) +
                     (any & ((uint64_t(1) << format.fraction) - 1))) |
                    (any & format.sign()));
      break;
    case 2: // Few bits: ties.
      all.push_back(any & (format.sign() | format.infinity() |
                           uint64_t(3) << (format.fraction - 2)));
      break;
    case 3: // Subnormal.
      all.push_back(any & ~format.infinity());
      break;
    default:
      all.push_back(any);
    }
  }
  return all;
}

} // namespace fsr::ptx::test

#endif // FSR_TEST_UNIT_PTX_FLOATHARNESS_H
