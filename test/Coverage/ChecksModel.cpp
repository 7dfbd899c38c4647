// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of what neural networks are made of.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

namespace fsr::ptx {

/// Arguments 0 to 3 are Q, K, V and the answer, in rows of `d`.
static Check attention(size_t d, double scale, bool isCausal,
                       double tolerance) {
  return [=](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[1].count / d;
    std::vector<double> wanted(a[3].count);
    for (size_t row = 0; row < a[3].count / d; ++row) {
      double sum = 0;
      for (size_t j = 0; j < (isCausal ? row + 1 : n); ++j) {
        double s = 0;
        for (size_t i = 0; i < d; ++i)
          s += a[0].was(row * d + i) * a[1].was(j * d + i);
        double p = std::exp(s * scale);
        sum += p;
        for (size_t i = 0; i < d; ++i)
          wanted[row * d + i] += p * a[2].was(j * d + i);
      }
      for (size_t i = 0; i < d; ++i)
        wanted[row * d + i] /= sum;
    }
    return all(a[3], [&](size_t i) { return wanted[i]; }, tolerance);
  };
}

/// Sum of `function` over the `n` elements of the row that holds `i`.
template <typename F>
static double overRow(size_t i, size_t n, F function) {
  double sum = 0;
  for (size_t k = i / n * n; k < i / n * n + n; ++k)
    sum += function(k);
  return sum;
}

static Check rmsNorm(double tolerance) {
  return [=](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[1].count;
    return all(
        a[2],
        [&](size_t i) {
          double squares = overRow(
              i, n, [&](size_t k) { return a[0].was(k) * a[0].was(k); });
          return a[0].was(i) / std::sqrt(squares / n + 1e-5) * a[1].was(i % n);
        },
        tolerance);
  };
}

/// NCHW with one batch: the sum of a K x K window of channel `from`.
static double window(const Argument &in, const Argument &weight, size_t h,
                     size_t w, size_t from, size_t filter, long y, long x,
                     size_t k) {
  double sum = 0;
  long radius = long(k) / 2;
  for (long dy = -radius; dy <= radius; ++dy)
    for (long dx = -radius; dx <= radius; ++dx) {
      long yy = y + dy, xx = x + dx;
      if (yy < 0 || xx < 0 || yy >= long(h) || xx >= long(w))
        continue;
      sum += in.was((from * h + yy) * w + xx) *
             weight.was((filter * k + dy + radius) * k + dx + radius);
    }
  return sum;
}

static Check pool(bool isMaximum) {
  return [=](const Case &c) {
    const auto &a = c.arguments; // In, out, height, width: windows of 2 x 2.
    size_t w = a[3].was(0), ow = w / 2, oh = size_t(a[2].was(0)) / 2;
    return all(a[1], [&](size_t i) {
      size_t channel = i / (ow * oh), y = i / ow % oh, x = i % ow;
      double most = -1e300, sum = 0;
      for (size_t k = 0; k < 4; ++k) {
        double v =
            a[0].was((channel * oh * 2 + y * 2 + k / 2) * w + x * 2 + k % 2);
        most = std::fmax(most, v);
        sum += v / 4;
      }
      return isMaximum ? most : sum;
    });
  };
}

void addModelChecks(Checks &to) {
  to["attention"] = attention(16, 0.25, false, 1e-4);
  to["attention_causal"] = attention(16, 0.25, true, 1e-4);
  to["attention_64"] = attention(64, 0.125, false, 1e-2);
  to["attention_split"] = [](const Case &c) {
    const auto &a = c.arguments; // q, K, V, parts, maxima and sums, n, scale.
    size_t n = a[5].was(0), parts = a[4].count / 2;
    double total = 0;
    std::vector<double> wanted(32), got(32);
    for (size_t j = 0; j < n; ++j) {
      double s = 0;
      for (size_t i = 0; i < 32; ++i)
        s += a[0].was(i) * a[1].was(j * 32 + i) * a[6].was(0);
      total += std::exp(s);
      for (size_t i = 0; i < 32; ++i)
        wanted[i] += std::exp(s) * a[2].was(j * 32 + i);
    }
    double sum = 0;
    for (size_t p = 0; p < parts; ++p) {
      double weight = std::exp(a[4].is(p * 2));
      sum += weight * a[4].is(p * 2 + 1);
      for (size_t i = 0; i < 32; ++i)
        got[i] += weight * a[3].is(p * 32 + i);
    }
    for (size_t i = 0; i < 32; ++i)
      if (!(std::fabs(got[i] / sum - wanted[i] / total) < 1e-4))
        return differs(i, got[i] / sum, wanted[i] / total);
    return std::string();
  };
  to["rope"] = [](const Case &c) {
    const auto &a = c.arguments; // x, rows, heads, d.
    size_t heads = a[2].was(0), d = a[3].was(0);
    return all(
        a[0],
        [&](size_t i) {
          size_t row = i / d / heads, pair = i % d / 2;
          double angle = row * std::pow(10000.0, -2.0 * pair / d);
          double x = a[0].was(i - i % 2), y = a[0].was(i - i % 2 + 1);
          return i % 2 ? x * std::sin(angle) + y * std::cos(angle)
                       : x * std::cos(angle) - y * std::sin(angle);
        },
        1e-4);
  };
  to["rope_halves"] = [](const Case &c) {
    const auto &a = c.arguments; // x, cosines, sines, out, d.
    size_t d = a[4].was(0), h = d / 2;
    return all(a[3], [&](size_t i) {
      size_t row = i / d, k = i % h;
      double x = a[0].was(row * d + k), y = a[0].was(row * d + k + h);
      double cosine = a[1].was(row * h + k), sine = a[2].was(row * h + k);
      return i % d < h ? x * cosine - y * sine : y * cosine + x * sine;
    });
  };
  to["cache_rows"] = [](const Case &c) {
    const auto &a = c.arguments; // Rows, cache, slots, width.
    size_t d = a[3].was(0);
    for (size_t i = 0; i < a[0].count; ++i)
      if (double is = a[1].is(a[2].was(i / d) * d + i % d); is != a[0].was(i))
        return differs(i, is, a[0].was(i));
    return std::string();
  };
  to["softmax_100"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      return std::exp(a[0].was(i)) /
             overRow(i, 100, [&](size_t k) { return std::exp(a[0].was(k)); });
    });
  };
  to["log_softmax_100"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[1], [&](size_t i) {
      return a[0].was(i) - std::log(overRow(i, 100, [&](size_t k) {
               return std::exp(a[0].was(k));
             }));
    });
  };
  to["layer_norm"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[1].count;
    return all(
        a[3],
        [&](size_t i) {
          double mean =
              overRow(i, n, [&](size_t k) { return a[0].was(k); }) / n;
          double variance = overRow(i, n,
                                    [&](size_t k) {
                                      return std::pow(a[0].was(k) - mean, 2);
                                    }) /
                            n;
          return (a[0].was(i) - mean) / std::sqrt(variance + 1e-5) *
                     a[1].was(i % n) +
                 a[2].was(i % n);
        },
        1e-4);
  };
  to["rms_norm"] = rmsNorm(1e-4);
  to["rms_norm_half"] = rmsNorm(1e-2);
  to["batch_norm"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t pixels = a[5].was(0);
    return all(a[3], [&](size_t i) {
      size_t channel = i / pixels % a[1].count;
      return (a[0].was(i) - a[1].was(channel)) /
             std::sqrt(a[2].was(channel) + 1e-5);
    });
  };
  to["cross_entropy"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[2], [&](size_t row) {
      double sum = overRow(row * 100, 100,
                           [&](size_t k) { return std::exp(a[0].was(k)); });
      return std::log(sum) - a[0].was(row * 100 + a[1].was(row));
    });
  };
  to["softmax_backward"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(
        a[2],
        [&](size_t i) {
          double dot = overRow(
              i, 100, [&](size_t k) { return a[0].was(k) * a[1].was(k); });
          return a[0].was(i) * (a[1].was(i) - dot);
        },
        1e-4);
  };
  // In, weights, out, channels, height, width; filters by the output.
  to["conv_same"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t channels = a[3].was(0), h = a[4].was(0), w = a[5].was(0);
    size_t filters = a[2].count / (h * w);
    size_t k = size_t(
        std::lround(std::sqrt(double(a[1].count) / (filters * channels))));
    return all(
        a[2],
        [&](size_t i) {
          size_t filter = i / (h * w);
          double sum = 0;
          for (size_t from = 0; from < channels; ++from)
            sum += window(a[0], a[1], h, w, from, filter * channels + from,
                          i / w % h, i % w, k);
          return sum;
        },
        1e-4);
  };
  to["conv_depthwise"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t channels = a[3].was(0), h = a[4].was(0), w = a[5].was(0);
    size_t k = size_t(std::lround(std::sqrt(double(a[1].count) / channels)));
    return all(a[2], [&](size_t i) {
      size_t channel = i / (h * w);
      return window(a[0], a[1], h, w, channel, channel, i / w % h, i % w, k);
    });
  };
  // In, filter, out: a one-dimensional one, zeros outside.
  to["conv_1d"] = [](const Case &c) {
    const auto &a = c.arguments;
    long k = a[1].count;
    return all(a[2], [&](size_t i) {
      double sum = 0;
      for (long x = 0; x < k; ++x) {
        long at = long(i) + x - k / 2;
        if (at >= 0 && at < long(a[0].count))
          sum += a[0].was(at) * a[1].was(x);
      }
      return sum;
    });
  };
  // In, columns, channels, height, width: 3 x 3, zeros outside.
  to["im2col"] = [](const Case &c) {
    const auto &a = c.arguments;
    long h = a[3].was(0), w = a[4].was(0);
    return all(a[1], [&](size_t i) {
      long x = i % w, y = i / w % h, tap = i / (h * w);
      long yy = y + tap / 3 % 3 - 1, xx = x + tap % 3 - 1;
      return yy < 0 || xx < 0 || yy >= h || xx >= w
                 ? 0
                 : a[0].was((tap / 9 * h + yy) * w + xx);
    });
  };
  to["max_pool"] = pool(true);
  to["average_pool"] = pool(false);
  to["upsample"] = [](const Case &c) {
    const auto &a = c.arguments; // In, out, height, width.
    size_t h = a[2].was(0), w = a[3].was(0);
    return all(a[1], [&](size_t i) {
      size_t x = i % (2 * w), y = i / (2 * w) % (2 * h), n = i / (4 * w * h);
      return a[0].was((n * h + y / 2) * w + x / 2);
    });
  };
  to["global_average"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[0].count / a[1].count;
    return all(a[1], [&](size_t i) {
      return overRow(i * n, n, [&](size_t k) { return a[0].was(k); }) / n;
    });
  };
  // In, quantised rows, scales.
  to["quantised_rows"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[0].count / a[2].count;
    for (size_t i = 0; i < a[0].count; ++i) {
      double back = a[1].is(i) * a[2].is(i / n);
      // Half a step of 8 bits, or 3 bits of mantissa.
      double step = a[1].type == Type::S8
                        ? a[2].is(i / n) * 0.51
                        : std::fabs(a[0].was(i)) / 15 + a[2].is(i / n) / 512;
      if (!(std::fabs(back - a[0].was(i)) <= step))
        return differs(i, back, a[0].was(i));
    }
    return std::string();
  };
  to["dequantised"] = [](const Case &c) {
    const auto &a = c.arguments; // Quantised, scales, out.
    size_t n = a[0].count / a[1].count;
    return all(
        a[2], [&](size_t i) { return a[0].was(i) * a[1].was(i / n); }, 1e-3);
  };
  to["unpacked_int4"] = [](const Case &c) {
    const auto &a = c.arguments; // Bytes, scales of 32 each, out.
    return all(a[2], [&](size_t i) {
      int byte = a[0].was(i / 2);
      return ((i % 2 ? byte >> 4 : byte & 15) - 8) * a[1].was(i / 32);
    });
  };
}

} // namespace fsr::ptx
