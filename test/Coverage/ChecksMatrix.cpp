// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Checks of products of matrices, dense and sparse.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

namespace fsr::ptx {

/// Arguments 0 to 2 are A, B and C = A B of `m` rows; `isTransposed`: B lies
/// with its columns as rows.
static std::string product(const Case &c, size_t m, bool isTransposed,
                           double tolerance) {
  const auto &a = c.arguments;
  size_t k = a[0].count / m, n = a[2].count / m;
  return all(
      a[2],
      [&](size_t i) {
        size_t row = i / n, column = i % n;
        double sum = 0;
        for (size_t x = 0; x < k; ++x)
          sum += a[0].was(row * k + x) *
                 a[1].was(isTransposed ? column * k + x : x * n + column);
        return sum;
      },
      tolerance);
}

static Check rows(size_t m, bool isTransposed, double tolerance) {
  return [=](const Case &c) { return product(c, m, isTransposed, tolerance); };
}

void addMatrixChecks(Checks &to) {
  to["matmul"] = [](const Case &c) { // The rows are argument 3.
    return product(c, c.arguments[3].was(0), false, 1e-4);
  };
  to["matmul_64"] = rows(64, false, 1e-4);
  to["matmul_64_columns"] = rows(64, true, 1e-4);
  to["matmul_16"] = rows(16, false, 1e-4);
  to["matmul_16_half"] = rows(16, false, 2e-2);
  to["matmul_32_half"] = rows(32, false, 2e-2);
  to["matmul_16_columns"] = rows(16, true, 1e-4);
  to["matmul_16_columns_tf32"] = rows(16, true, 1e-2);
  to["matmul_16_tf32"] = rows(16, false, 1e-2);
  to["matmul_8_f64"] = rows(8, true, 1e-12);
  to["matmul_batched"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[3].was(0);
    return all(a[2], [&](size_t i) {
      size_t base = i / (n * n) * n * n, row = i / n % n, column = i % n;
      double sum = 0;
      for (size_t x = 0; x < n; ++x)
        sum += a[0].was(base + row * n + x) * a[1].was(base + x * n + column);
      return sum;
    });
  };
  to["gemv"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t k = a[1].count;
    return all(a[2], [&](size_t i) {
      double sum = 0;
      for (size_t x = 0; x < k; ++x)
        sum += a[0].was(i * k + x) * a[1].was(x);
      return sum;
    });
  };
  to["dp4a"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[4].was(0), k = a[5].was(0);
    auto byte = [](const Argument &of, size_t i) {
      return int8_t(of.before[i]);
    };
    return all(a[2], [&](size_t i) {
      double sum = 0;
      for (size_t x = 0; x < k * 4; ++x)
        sum += byte(a[0], i / n * k * 4 + x) * byte(a[1], i % n * k * 4 + x);
      return sum;
    });
  };
  // CSR: offsets, columns, values, x, y.
  to["spmv_csr"] = [](const Case &c) {
    const auto &a = c.arguments;
    return all(a[4], [&](size_t row) {
      double sum = 0;
      for (size_t k = a[0].was(row); k < a[0].was(row + 1); ++k)
        sum += a[2].was(k) * a[3].was(a[1].was(k));
      return sum;
    });
  };
  // Rows, columns, values, x, y.
  to["spmv_coo"] = [](const Case &c) {
    const auto &a = c.arguments;
    std::vector<double> sums(a[4].count);
    for (size_t k = 0; k < a[2].count; ++k)
      sums[a[0].was(k)] += a[2].was(k) * a[3].was(a[1].was(k));
    return all(a[4], [&](size_t i) { return sums[i]; });
  };
  // ELLPACK, column-major: columns, values, x, y, per row.
  to["spmv_ell"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[3].count;
    return all(a[3], [&](size_t row) {
      double sum = 0;
      for (size_t k = 0; k < a[4].was(0); ++k)
        sum += a[1].was(k * n + row) * a[2].was(a[0].was(k * n + row));
      return sum;
    });
  };
  // CSR times dense: offsets, columns, values, B, C, width.
  to["spmm_csr"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t width = a[5].was(0);
    return all(a[4], [&](size_t i) {
      double sum = 0;
      for (size_t k = a[0].was(i / width); k < a[0].was(i / width + 1); ++k)
        sum += a[2].was(k) * a[3].was(a[1].was(k) * width + i % width);
      return sum;
    });
  };
  // Lower triangle L and right side: x is argument 2, n argument 3.
  to["triangular"] = [](const Case &c) {
    const auto &a = c.arguments;
    size_t n = a[1].count;
    std::vector<double> x(n);
    for (size_t i = 0; i < n; ++i) {
      x[i] = a[1].was(i);
      for (size_t k = 0; k < i; ++k)
        x[i] -= a[0].was(i * n + k) * x[k];
    }
    return all(a[2], [&](size_t i) { return x[i]; }, 1e-3);
  };
}

} // namespace fsr::ptx
