// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of stencils, simulation, transforms, texts and 16-bit arithmetic.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"

#include <complex>
#include <cstring>
#include <set>
#include <utility>

namespace fsr::ptx {

/// A step of Jacobi's iteration on rows of `w`.
static std::string jacobi(const Case &c, size_t w) {
  const auto &a = c.arguments;
  size_t h = a[0].count / w;
  return all(a[1], [&](size_t i) {
    size_t x = i % w, y = i / w;
    if (!x || !y || x == w - 1 || y == h - 1)
      return a[0].was(i);
    return (a[0].was(i - 1) + a[0].was(i + 1) + a[0].was(i - w) +
            a[0].was(i + w)) /
           4;
  });
}

/// Argument 1 is `function` of argument 0.
static Check map(double (*function)(double), double tolerance) {
  return [=](const Case &c) {
    return all(
        c.arguments[1],
        [&](size_t i) { return function(c.arguments[0].was(i)); }, tolerance);
  };
}

static std::array<uint32_t, 4> philox(uint32_t index, uint32_t seed) {
  std::array<uint32_t, 4> x{index, 0, 0, 0};
  uint32_t key[2] = {seed, 0};
  for (int r = 0; r < 10; ++r) {
    uint64_t a = uint64_t(0xD2511F53) * x[0], b = uint64_t(0xCD9E8D57) * x[2];
    x = {uint32_t(b >> 32) ^ x[1] ^ key[0], uint32_t(b),
         uint32_t(a >> 32) ^ x[3] ^ key[1], uint32_t(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return x;
}

static double normalCdf(double x) { return std::erfc(-x / std::sqrt(2.)) / 2; }

/// Of each byte or half of two words.
template <typename F>
static uint32_t lanes(uint32_t a, uint32_t b, unsigned width, F function) {
  uint32_t result = 0, mask = (1u << width) - 1;
  for (unsigned s = 0; s < 32; s += width)
    result |= (function(a >> s & mask, b >> s & mask) & mask) << s;
  return result;
}

static void addTextChecks(Checks &to) {
  to["upper"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      double v = a[0].was(i);
      return v >= 'a' && v <= 'z' ? v - 32 : v;
    });
  };
  to["fnv"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t width = a[3].was(0);
    return all(
        a[1],
        [&](size_t i) {
          uint32_t h = 2166136261u;
          for (size_t k = 0; k < width; ++k)
            h = (h ^ uint32_t(a[0].was(i * width + k))) * 16777619u;
          return double(h);
        },
        0);
  };
  to["edit_distance"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[0].count;
    std::vector<int> row(n + 1);
    for (size_t j = 0; j <= n; ++j)
      row[j] = j;
    for (size_t i = 1; i <= n; ++i) {
      int corner = row[0];
      row[0] = i;
      for (size_t j = 1; j <= n; ++j) {
        int best = std::min({corner + (a[0].was(i - 1) != a[1].was(j - 1)),
                             row[j] + 1, row[j - 1] + 1});
        corner = row[j];
        row[j] = best;
      }
    }
    return all(a[2], [&](size_t) { return row[n]; });
  };
  // Keys plus one in a table, each once, zeros elsewhere.
  to["hash_set"] = [](const Case &c) {
    const auto &a = c.arguments;
    std::multiset<double> wanted, got;
    for (size_t i = 0; i < a[0].count; ++i)
      if (!wanted.count(a[0].was(i) + 1))
        wanted.insert(a[0].was(i) + 1);
    for (size_t i = 0; i < a[1].count; ++i)
      if (a[1].is(i))
        got.insert(a[1].is(i));
    return std::string(wanted == got ? "" : "other keys are in the table");
  };
}

static void addHalfChecks(Checks &to) {
  to["half_functions"] = map(
      [](double x) {
        double y = std::fmax(x * x + .5 + std::exp(-x) + std::sqrt(x), x);
        return y > 2 ? y / 2 : y;
      },
      1e-2);
  to["half_relu_product"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[2], [&](size_t i) { return std::fmax(a[0].was(i) * a[1].was(i), 0); },
        1e-3);
  };
  to["rounded_bf16"] = map([](double x) { return x; }, 4e-3);
  to["half_dot"] = [](const Case &c) {
    const auto &a = c.arguments;
    double sum = 0;
    for (size_t i = 0; i < a[0].count; ++i)
      sum += a[0].was(i) * a[1].was(i);
    return all(a[2], [&](size_t) { return sum; }, 2e-2);
  };
  to["half_sums"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[1],
        [&](size_t i) {
          double sum = 0;
          for (size_t k = i; k < a[0].count; k += 2)
            sum += a[0].was(k);
          return sum;
        },
        5e-2);
  };
}

/// A stack machine of the eight instructions of `switch_interpreter`.
static int32_t interpreted(const Argument &code, int32_t first) {
  std::vector<uint32_t> stack{uint32_t(first)};
  for (size_t pc = 0; pc < code.count; ++pc) {
    uint32_t top = stack.back(), next = top;
    switch (int(code.was(pc)) % 8) {
    case 0:
      next = top + 3;
      break;
    case 1:
      next = top * 5;
      break;
    case 2:
      next = top ^ 0x55;
      break;
    case 3:
      if (stack.size() < 8)
        stack.push_back(top + 1);
      continue;
    case 4:
      if (stack.size() > 1) {
        stack.pop_back();
        stack.back() += top;
      }
      continue;
    case 5:
      next = 0 - top;
      break;
    case 6:
      next = uint32_t(int32_t(top) >> 1);
      break;
    default:
      next = ~top;
    }
    stack.back() = next;
  }
  uint32_t sum = 0;
  for (uint32_t one : stack)
    sum += one;
  return int32_t(sum);
}

static double searched(const Argument &in, size_t from) {
  for (size_t i = from; i < in.count; ++i) {
    int v = in.was(i);
    for (int k = 2; v % 2 == 0 && k < 6 && v % k != 1; ++k)
      if (v % 7 == k)
        return i;
  }
  return -1;
}

static void addControlChecks(Checks &to) {
  to["relu_half"] = map([](double x) { return std::fmax(x, 0); }, 1e-3);
  to["plus_120"] = map([](double x) { return x + 120; }, 0);
  to["four_and_six"] = map([](double x) { return 4 * x + 6; }, 0);
  to["fibonacci"] = map(
      [](double x) {
        double a = 0, b = 1;
        for (; x > 0; --x)
          b += std::exchange(a, b);
        return a;
      },
      0);
  to["forty"] = [](const Case &c) {
    return all(c.arguments[1], [](size_t) { return 40; });
  };
  to["three_functions"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      double x = a[0].was(i);
      return i % 3 == 0 ? 2 * x : i % 3 == 1 ? x * x : -x;
    });
  };
  to["areas"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      double x = a[0].was(i);
      return i % 2 ? 3 * x * x : 2 * x;
    });
  };
  to["interpreted"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[2], [&](size_t i) { return interpreted(a[0], a[1].was(i)); }, 0);
  };
  to["searched"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) { return searched(a[0], i); });
  };
  to["words"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[2].was(0);
    return all(a[1], [&](size_t row) {
      int words = 0;
      for (size_t k = row * n; k < row * n + n; ++k)
        words += a[0].was(k) && (k == row * n || !a[0].was(k - 1));
      return words;
    });
  };
  to["most_frequent"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      int counts[16] = {};
      for (size_t k = 0; k < 32; ++k)
        ++counts[int(a[0].was((i + k) % a[0].count)) & 15];
      return *std::max_element(counts, counts + 16);
    });
  };
  to["atomics"] = [](const Case &c) {
    const auto &a = c.arguments;
    int64_t sum = 0, least = 7, most = 7, every = 7, any = 7, odd = 7;
    for (size_t i = 0; i < a[0].count; ++i) {
      int64_t v = a[0].was(i);
      sum += v;
      least = std::min(least, v);
      most = std::max(most, v);
      every &= v | 0xff00;
      any |= v;
      odd ^= v;
    }
    int64_t n = a[0].count;
    // A decrement at zero starts anew; each passes it once.
    int64_t wanted[] = {7 + sum, 7 - sum,          least, most, every, any, odd,
                        7 + n,   1000000 - (n - 8)};
    std::string wrong = each(a[1], 9, [&](size_t i) { return wanted[i]; }, 0);
    if (!wrong.empty())
      return wrong;
    // Of block 0 alone, of 128 threads.
    return a[1].is(11) == most && a[1].is(12) == 7 + 128 && a[1].is(13) == 7 + n
               ? ""
               : std::string("the last three are wrong");
  };
}

void addScienceChecks(Checks &to) {
  addControlChecks(to);
  addTextChecks(to);
  addHalfChecks(to);
  to["jacobi"] = [](const Case &c) { return jacobi(c, 25); };
  to["jacobi_50"] = [](const Case &c) { return jacobi(c, 50); };
  to["heat"] = [](const Case &c) {
    const auto &a = c.arguments; // In, out, depth, height, width, factor.
    size_t d = a[2].was(0), h = a[3].was(0), w = a[4].was(0);
    return all(a[1], [&](size_t i) {
      size_t x = i % w, y = i / w % h, z = i / (w * h);
      if (!x || !y || !z || x == w - 1 || y == h - 1 || z == d - 1)
        return 0.;
      auto in = [&](size_t at) { return a[0].was(at); };
      return in(i) +
             a[5].was(0) * (in(i - 1) + in(i + 1) + in(i - w) + in(i + w) +
                            in(i - w * h) + in(i + w * h) - 6 * in(i));
    });
  };
  to["life"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t h = a[2].was(0), w = a[3].was(0);
    return all(a[1], [&](size_t i) {
      int alive = -int(a[0].was(i));
      for (size_t dy = 0; dy < 3; ++dy)
        for (size_t dx = 0; dx < 3; ++dx)
          alive +=
              a[0].was((i / w + dy + h - 1) % h * w + (i % w + dx + w - 1) % w);
      return alive == 3 || (alive == 2 && a[0].was(i));
    });
  };
  to["rule_30"] = [](const Case &c) {
    const auto &a = c.arguments;
    auto bit = [&](long i) {
      return i >= 0 && i < long(a[0].count) * 32 &&
             (uint32_t(a[0].was(i / 32)) >> i % 32 & 1);
    };
    return all(
        a[1],
        [&](size_t word) {
          uint32_t value = 0;
          for (long k = 0; k < 32; ++k) {
            long i = long(word) * 32 + k;
            value |= uint32_t(bit(i - 1) ^ (bit(i) || bit(i + 1))) << k;
          }
          return double(value);
        },
        0);
  };
  to["smooth"] = [](const Case &c) {
    const auto &a = c.arguments;
    std::vector<double> v(a[0].count + 2);
    for (size_t i = 0; i < a[0].count; ++i)
      v[i + 1] = a[0].was(i);
    for (int s = 0; s < a[1].was(0); ++s) {
      std::vector<double> last = v;
      for (size_t i = 1; i + 1 < v.size(); ++i)
        v[i] = (last[i - 1] + last[i] + last[i + 1]) / 3;
    }
    return all(a[0], [&](size_t i) { return v[i + 1]; });
  };
  to["mandelbrot"] = [](const Case &c) {
    const auto &a = c.arguments;
    int w = a[1].was(0), h = a[2].was(0), most = a[3].was(0), other = 0;
    for (int i = 0; i < w * h; ++i) {
      std::complex<double> p(-2 + 3. * (i % w) / w, -1.5 + 3. * (i / w) / h), z;
      int steps = 0;
      while (steps < most && std::norm(z) <= 4) {
        z = z * z + p;
        ++steps;
      }
      if (a[0].is(i) < 0 || a[0].is(i) > most)
        return differs(i, a[0].is(i), steps);
      other += steps != a[0].is(i); // At the edge rounding decides.
    }
    return other <= 2 ? std::string()
                      : std::to_string(other) + " points differ";
  };
  to["nbody"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[2].was(0);
    std::vector<double> forces(4 * n);
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) {
        double d[3], r2 = 0.01;
        for (int k = 0; k < 3; ++k) {
          d[k] = a[0].was(4 * j + k) - a[0].was(4 * i + k);
          r2 += d[k] * d[k];
        }
        for (int k = 0; k < 3; ++k)
          forces[4 * i + k] += d[k] * a[0].was(4 * j + 3) / std::pow(r2, 1.5);
      }
    return all(a[1], [&](size_t i) { return forces[i]; }, 1e-3);
  };
  to["black_scholes"] = [](const Case &c) {
    const auto &a = c.arguments;
    double r = a[5].was(0), v = a[6].was(0);
    auto value = [&](size_t i, bool isCall) {
      double s = a[0].was(i), k = a[1].was(i), t = a[2].was(i);
      double d1 = (std::log(s / k) + (r + v * v / 2) * t) / (v * std::sqrt(t));
      double d2 = d1 - v * std::sqrt(t), discounted = k * std::exp(-r * t);
      return isCall ? s * normalCdf(d1) - discounted * normalCdf(d2)
                    : discounted * normalCdf(-d2) - s * normalCdf(-d1);
    };
    std::string wrong =
        all(a[3], [&](size_t i) { return value(i, true); }, 1e-12);
    return wrong.empty()
               ? all(
                     a[4], [&](size_t i) { return value(i, false); }, 1e-12)
               : wrong;
  };
  to["fft_128"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[1],
        [&](size_t i) {
          size_t base = i / 256 * 256, k = i / 2 % 128;
          std::complex<double> sum;
          for (size_t x = 0; x < 128; ++x)
            sum += std::complex<double>(a[0].was(base + 2 * x),
                                        a[0].was(base + 2 * x + 1)) *
                   std::polar(1., -2 * M_PI * double(k * x % 128) / 128);
          return i % 2 ? sum.imag() : sum.real();
        },
        1e-4);
  };
  to["philox"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[0],
        [&](size_t i) { return double(philox(i / 4, a[1].was(0))[i % 4]); }, 0);
  };
  // Each is dropped or scaled, and the share is near.
  to["dropout"] = [](const Case &c) {
    const auto &a = c.arguments;
    double p = a[3].was(0), dropped = 0;
    for (size_t i = 0; i < a[1].count; ++i) {
      dropped += a[1].is(i) == 0;
      if (a[1].is(i) &&
          !(std::fabs(a[1].is(i) - a[0].was(i) / (1 - p)) <= 1e-5))
        return differs(i, a[1].is(i), a[0].was(i) / (1 - p));
    }
    return std::fabs(dropped / a[1].count - p) < 0.1
               ? std::string()
               : std::to_string(dropped) + " are dropped";
  };
  to["pi"] = [](const Case &c) {
    double share = c.arguments[0].is(0) / (512 * c.arguments[1].was(0));
    return std::fabs(4 * share - M_PI) < 0.05 ? std::string()
                                              : differs(0, 4 * share, M_PI);
  };
  to["box_muller"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[1],
        [&](size_t i) {
          double u = a[0].was(i & ~size_t(1)), v = a[0].was(i | 1);
          return std::sqrt(-2 * std::log(std::fmin(u, 1))) *
                 (i % 2 ? std::sin(2 * M_PI * v) : std::cos(2 * M_PI * v));
        },
        1e-4);
  };
  to["exp_taylor"] = map([](double x) { return std::exp(x); }, 1e-3);
  to["double_functions"] = map(
      [](double x) {
        return std::sin(x) + std::cos(x) * std::tan(x) + std::exp(x) -
               std::log(x) + std::sqrt(x) / std::cbrt(x) + std::pow(x, 2.5) +
               std::atan(x) + std::tanh(x) + 1 / std::sqrt(x) +
               std::fmod(x, .3) + std::erf(x) + std::log1p(x) +
               std::floor(x * 9);
      },
      1e-12);
  to["collatz"] = map(
      [](double x) {
        uint64_t v = uint64_t(x) + 1;
        double steps = 0;
        for (; v != 1; ++steps)
          v = v % 2 ? 3 * v + 1 : v / 2;
        return steps;
      },
      0);
  to["sieve"] = [](const Case &c) {
    return all(c.arguments[0], [&](size_t i) {
      for (size_t p = 2; p * p <= i; ++p)
        if (i % p == 0)
          return 1;
      return 0;
    });
  };
  to["modular_power"] = [](const Case &c) {
    const auto &a = c.arguments;
    uint64_t modulus = a[3].was(0);
    return all(
        a[1],
        [&](size_t i) {
          uint64_t r = 1, base = uint64_t(a[0].was(i)) % modulus;
          for (int k = 0; k < a[2].was(0); ++k)
            r = r * base % modulus;
          return double(r);
        },
        0);
  };
  to["simd_video"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[2],
        [&](size_t i) {
          uint32_t x = a[0].was(i), y = a[1].was(i);
          auto add = [](uint32_t p, uint32_t q) { return p + q; };
          auto distance = [](uint32_t p, uint32_t q) {
            return p > q ? p - q : q - p;
          };
          auto most = [](uint32_t p, uint32_t q) { return std::max(p, q); };
          auto average = [](uint32_t p, uint32_t q) { return (p + q + 1) / 2; };
          return double(lanes(x, y, 8, add) ^ lanes(x, y, 8, distance) ^
                        lanes(x, y, 16, most) ^ lanes(x, y, 8, average));
        },
        0);
  };
  to["wide_arithmetic"] = [](const Case &c) {
    const auto &a = c.arguments;
    for (size_t i = 0; i < a[2].count; ++i) {
      uint64_t x = a[0].was(i), y = a[1].was(i), is;
      unsigned __int128 sum = (unsigned __int128)(x << 40) + (y << 41);
      uint64_t reversed = 0;
      for (int k = 0; k < 64; ++k)
        reversed |= (x >> k & 1) << (63 - k);
      uint64_t wanted = uint64_t(sum) ^ uint64_t(sum >> 64) ^
                        uint64_t((unsigned __int128)x * y >> 64) ^ 12 ^
                        (x / (y + 1)) ^ (x % (y | 1)) ^ reversed ^
                        llvm::countl_zero(y) ^
                        (x ? llvm::countr_zero(x) + 1 : 0) ^ 10 ^ 7;
      std::memcpy(&is, a[2].after.data() + 8 * i, 8);
      if (is != wanted)
        return differs(i, is, wanted);
    }
    return std::string();
  };
}

} // namespace fsr::ptx
