// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of compaction, sorting, selection, moves and bit tricks.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

namespace fsr::ptx {

static std::vector<double> before(const Argument &a) {
  std::vector<double> values(a.count);
  for (size_t i = 0; i < a.count; ++i)
    values[i] = a.was(i);
  return values;
}

static std::string compacted(const Case &c, bool isStable) {
  const auto &a = c.arguments;
  std::vector<double> wanted, got;
  for (double v : before(a[0]))
    if (int64_t(v) % 3 == 0)
      wanted.push_back(v);
  if (a[2].is(0) != wanted.size())
    return "the count is " + std::to_string(a[2].is(0));
  for (size_t i = 0; i < wanted.size(); ++i)
    got.push_back(a[1].is(i));
  if (!isStable) {
    llvm::sort(got);
    llvm::sort(wanted);
  }
  return got == wanted ? "" : "other values are kept";
}

/// Argument `to` is argument 0 sorted, in runs of `run` (0: whole).
static Check sorted(size_t to, size_t run = 0, bool isDescending = false) {
  return [=](const Case &c) {
    std::vector<double> wanted = before(c.arguments[0]);
    size_t step = run ? run : wanted.size();
    for (size_t i = 0; i < wanted.size(); i += step) {
      auto last = wanted.begin() + std::min(wanted.size(), i + step);
      std::sort(wanted.begin() + i, last);
      if (isDescending)
        std::reverse(wanted.begin() + i, last);
    }
    return all(c.arguments[to], [&](size_t i) { return wanted[i]; });
  };
}

/// Argument 1 is `function` of each 32 bits of argument 0.
static Check bits(double (*function)(uint32_t)) {
  return [=](const Case &c) {
    return all(
        c.arguments[1],
        [&](size_t i) {
          return function(uint32_t(int64_t(c.arguments[0].was(i))));
        },
        0);
  };
}

static uint32_t reversed(uint32_t x) {
  uint32_t y = 0;
  for (int i = 0; i < 32; ++i)
    y |= (x >> i & 1) << (31 - i);
  return y;
}

void addOrderChecks(Checks &to) {
  to["compacted"] = [](const Case &c) { return compacted(c, false); };
  to["compacted_stable"] = [](const Case &c) { return compacted(c, true); };
  to["even_odd"] = [](const Case &c) {
    const auto &a = c.arguments; // 0, 1, 2…
    return all(a[2], [&](size_t i) {
      return i < a[2].count / 2 ? 2 * i : 2 * i - a[2].count + 1;
    });
  };
  to["unique_flags"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1],
               [&](size_t i) { return !i || a[0].was(i) != a[0].was(i - 1); });
  };
  to["votes"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      bool any = false, every = true, found = false;
      for (size_t k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) {
        any |= a[0].was(k) > 95;
        every &= a[0].was(k) < 99;
      }
      for (size_t k = i / 128 * 128; k < i / 128 * 128 + 128; ++k)
        found |= a[0].was(k) == 42;
      return any + 2 * every + 4 * (found + 2);
    });
  };
  to["reversed_blocks"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      size_t from = i / 128 * 128 + 127 - i % 128;
      return from < a[0].count ? a[0].was(from) : 0;
    });
  };
  to["sorted"] = sorted(1);
  to["sorted_in_place"] = sorted(0);
  to["sorted_32"] = sorted(1, 32);
  to["sorted_256"] = sorted(1, 256);
  to["sorted_512"] = sorted(1, 512);
  to["sorted_1024"] = sorted(1, 1024);
  // The largest of each row of 256, as many as fit.
  to["top_k"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t rows = a[0].count / 256, k = a[1].count / rows;
    std::vector<double> values = before(a[0]);
    for (size_t r = 0; r < rows; ++r)
      std::sort(values.begin() + r * 256, values.begin() + r * 256 + 256,
                std::greater<double>());
    return all(a[1], [&](size_t i) { return values[i / k * 256 + i % k]; });
  };
  to["merged"] = [](const Case &c) {
    const auto &a = c.arguments;
    std::vector<double> values = before(a[0]), more = before(a[1]);
    values.insert(values.end(), more.begin(), more.end());
    llvm::sort(values);
    return all(a[2], [&](size_t i) { return values[i]; });
  };
  to["lower_bound"] = [](const Case &c) {
    const auto &a = c.arguments;
    std::vector<double> values = before(a[0]);
    return all(a[2], [&](size_t i) {
      return std::lower_bound(values.begin(), values.end(), a[1].was(i)) -
             values.begin();
    });
  };
  to["transpose"] = [](const Case &c) {
    const auto &a = c.arguments; // In, out, rows, columns.
    size_t rows = a[2].was(0), columns = a[3].was(0);
    return all(a[1], [&](size_t i) {
      return a[0].was(i % rows * columns + i / rows);
    });
  };
  to["permute_0213"] = [](const Case &c) {
    const auto &a = c.arguments; // In, out, B, S, H, D.
    size_t S = a[3].was(0), H = a[4].was(0), D = a[5].was(0);
    return all(a[1], [&](size_t i) {
      size_t d = i % D, s = i / D % S, h = i / D / S % H, b = i / D / S / H;
      return a[0].was(((b * S + s) * H + h) * D + d);
    });
  };
  to["gather"] = [](const Case &c) {
    const auto &a = c.arguments; // From, index, to.
    size_t width = a[2].count / a[1].count;
    return all(a[2], [&](size_t i) {
      return a[0].was(a[1].was(i / width) * width + i % width);
    });
  };
  to["scatter"] = [](const Case &c) {
    const auto &a = c.arguments; // From, a permutation, to.
    for (size_t i = 0; i < a[1].count; ++i)
      if (a[2].is(a[1].was(i)) != a[0].was(i))
        return differs(i, a[2].is(a[1].was(i)), a[0].was(i));
    return std::string();
  };
  to["scatter_add"] = [](const Case &c) {
    const auto &a = c.arguments;
    std::vector<double> sums = before(a[2]);
    for (size_t i = 0; i < a[1].count; ++i)
      sums[a[1].was(i)] += a[0].was(i);
    return all(a[2], [&](size_t i) { return sums[i]; });
  };
  to["embedding_bag"] = [](const Case &c) {
    const auto &a = c.arguments; // Table, indices, offsets, out, width.
    size_t width = a[4].was(0);
    return all(a[3], [&](size_t i) {
      double sum = 0;
      for (size_t k = a[2].was(i / width); k < a[2].was(i / width + 1); ++k)
        sum += a[0].was(a[1].was(k) * width + i % width);
      return sum;
    });
  };
  to["all_zero"] = [](const Case &c) {
    return all(c.arguments[1], [](size_t) { return 0; });
  };
  to["copy_padded"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1],
               [&](size_t i) { return i < a[0].count ? a[0].was(i) : 0; });
  };
  to["doubled"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[0].count;
    return all(a[1], [&](size_t i) {
      return i < n ? 2 * a[0].was(i) : 2 * a[0].was(i - n) + 1;
    });
  };
  to["reversed_64"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) { return a[0].was(i ^ 63); });
  };
  to["lane_plus_64"] = [](const Case &c) {
    return all(c.arguments[0], [&](size_t i) { return i % 32 + 64; });
  };
  to["matching"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      int same = 0, any = 0;
      for (size_t k = i / 32 * 32; k < i / 32 * 32 + 32; ++k) {
        same += a[0].was(k) == a[0].was(i);
        any |= a[0].was(k) == 3;
      }
      return same + 100 * any;
    });
  };
  to["chased"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[1], [&](size_t i) { return (i + size_t(a[2].was(0))) % a[0].count; });
  };
  to["copy"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) { return a[0].was(i); });
  };
  to["reverse"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) { return a[0].was(a[0].count - 1 - i); });
  };
  to["popc"] = bits([](uint32_t x) { return double(llvm::popcount(x)); });
  to["brev"] = bits([](uint32_t x) { return double(reversed(x)); });
  to["clz_ffs"] = bits([](uint32_t x) {
    return double(llvm::countl_zero(x) * 100 +
                  (x ? llvm::countr_zero(x) + 1 : 0));
  });
  to["byte_swap"] =
      bits([](uint32_t x) { return double(__builtin_bswap32(x)); });
  to["rotate_7"] = bits([](uint32_t x) { return double(x << 7 | x >> 25); });
  to["gray"] = bits([](uint32_t x) {
    uint32_t g = x ^ x >> 1;
    return double(g);
  });
  to["majority_bits"] = bits([](uint32_t x) {
    uint32_t y = reversed(x), z = ~(x << 3);
    return double((x & y) | (y & z) | (x & z));
  });
  to["bfe_bfi"] = bits([](uint32_t x) {
    uint32_t field = x >> 5 & 0x7ff;
    return double((0xabcdef01u & ~(0x7ffu << 9)) | field << 9);
  });
  to["morton"] = bits([](uint32_t x) {
    uint32_t code = 0;
    for (int i = 0; i < 16; ++i)
      code |= (x >> i & 1) << (2 * i) | (x >> (16 + i) & 1) << (2 * i + 1);
    return double(code);
  });
  to["matches"] = [](const Case &c) {
    const auto &a = c.arguments; // Text, pattern, count.
    double count = 0;
    for (size_t i = 0; i + a[1].count <= a[0].count; ++i) {
      bool same = true;
      for (size_t k = 0; k < a[1].count; ++k)
        same &= a[0].was(i + k) == a[1].was(k);
      count += same;
    }
    return all(a[2], [&](size_t) { return count; });
  };
}

} // namespace fsr::ptx
