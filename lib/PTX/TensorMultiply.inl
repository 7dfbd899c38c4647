// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Products of matrices. Included inside a namespace behind FloatMath.inl, once
// for each set of CPU features.
//
// Factors are widened until products are exact, summed in double and rounded
// once, so the result is the true one but for that rounding. f64 is a chain of
// fused operations, k upwards. Integers are exact.
//
//===----------------------------------------------------------------------===//

// The types of factors. `widen` takes the 32 cells of a register.
struct HalfFactor {
  using Number = double;
  static constexpr unsigned perCell = 2;
  static void widen(const uint8_t *cells, double *to, const MultiplyInfo &,
                    bool) {
    const uint16_t *from = reinterpret_cast<const uint16_t *>(cells);
    for (unsigned i = 0; i < 64; ++i)
      to[i] = double(widenHalf(from[i]));
  }
};
struct BrainFactor {
  using Number = double;
  static constexpr unsigned perCell = 2;
  static void widen(const uint8_t *cells, double *to, const MultiplyInfo &,
                    bool) {
    const uint16_t *from = reinterpret_cast<const uint16_t *>(cells);
    for (unsigned i = 0; i < 64; ++i)
      to[i] = double(widenBrain(from[i]));
  }
};
struct Tf32Factor {
  using Number = double;
  static constexpr unsigned perCell = 1;
  static void widen(const uint8_t *cells, double *to, const MultiplyInfo &,
                    bool) {
    const uint32_t *from = reinterpret_cast<const uint32_t *>(cells);
    for (unsigned i = 0; i < 32; ++i)
      to[i] = double(asFloat(from[i] & 0xffffe000));
  }
};
struct DoubleFactor {
  using Number = double;
  static constexpr unsigned perCell = 1;
  static void widen(const uint8_t *cells, double *to, const MultiplyInfo &,
                    bool) {
    __builtin_memcpy(to, cells, 32 * sizeof(double));
  }
};
struct EighthFactor {
  using Number = double;
  static constexpr unsigned perCell = 4;
  static void widen(const uint8_t *cells, double *to, const MultiplyInfo &info,
                    bool isB) {
    const float *values = isB ? info.eighthsB : info.eighthsA;
    for (unsigned i = 0; i < 128; ++i)
      to[i] = double(values[cells[i]]);
  }
};
struct ByteFactor {
  using Number = int32_t;
  static constexpr unsigned perCell = 4;
  static void widen(const uint8_t *cells, int32_t *to, const MultiplyInfo &info,
                    bool isB) {
    if (isB ? info.isSignedB : info.isSignedA)
      for (unsigned i = 0; i < 128; ++i)
        to[i] = int8_t(cells[i]);
    else
      for (unsigned i = 0; i < 128; ++i)
        to[i] = cells[i];
  }
};

template <typename Factor>
constexpr bool isDouble = __is_same(Factor, DoubleFactor);

/// Numbers that are computed with at once.
template <typename Number>
struct VectorOf {
  typedef Number Type
      __attribute__((vector_size(32), aligned(sizeof(Number)), may_alias));
  static constexpr unsigned size = 32 / sizeof(Number);
};

/// One sum of f64 that is a NaN, with the bits that `fma` gives: the host's
/// depend on how it is compiled.
template <unsigned N, unsigned K>
inline double nanOfSum(const double *a, const double *b, double sum) {
  for (unsigned k = 0; k < K; ++k) {
    double next = __builtin_elementwise_fma(a[k], b[k * N], sum);
    sum = next == next ? next
                       : asDouble(propagatedNan64(bitsOf(b[k * N]), bitsOf(sum),
                                                  bitsOf(a[k])));
  }
  return sum;
}

/// Adds the product of `a` (M rows of K) and `b` (K rows of N) to `sums`.
template <typename Factor, unsigned M, unsigned N, unsigned K, typename Number>
inline void addProduct(const Number *a, const Number *b, Number *sums) {
  using Vector = typename VectorOf<Number>::Type;
  constexpr unsigned count = N / VectorOf<Number>::size;
  const Vector *from = reinterpret_cast<const Vector *>(b);
  Vector *to = reinterpret_cast<Vector *>(sums);
  for (unsigned m = 0; m < M; ++m) {
    Vector row[count];
    for (unsigned n = 0; n < count; ++n)
      row[n] = to[m * count + n];
    for (unsigned k = 0; k < K; ++k) {
      Number one = a[m * K + k];
      Vector by = one - Vector{};
      for (unsigned n = 0; n < count; ++n) {
        Vector other = from[k * count + n];
        // Where the product is exact, fusing changes nothing but the time.
        if constexpr (isDouble<Factor> ||
                      (FSR_PTX_WIDE && !__is_same(Number, int32_t)))
          row[n] = __builtin_elementwise_fma(by, other, row[n]);
        else
          row[n] += by * other;
      }
    }
    if constexpr (isDouble<Factor>) {
      const Number *results = reinterpret_cast<const Number *>(row);
      for (unsigned n = 0; n < N; ++n)
        sums[m * N + n] =
            results[n] == results[n]
                ? results[n]
                : nanOfSum<N, K>(a + m * K, b + n, sums[m * N + n]);
      continue;
    }
    for (unsigned n = 0; n < count; ++n)
      to[m * count + n] = row[n];
  }
}

/// One cell of an accumulator of f32.
inline uint32_t roundSum(double sum) { return canonical32(float(sum)); }
inline uint32_t roundHalfSum(double sum) {
  return sum == sum ? narrowHalf<Rounding::Nearest>(narrowOdd(sum))
                    : canonicalNan16;
}
inline uint32_t addSum(uint32_t c, int32_t sum, bool saturates) {
  if (!saturates)
    return c + uint32_t(sum);
  int64_t whole = int64_t(int32_t(c)) + sum;
  whole = whole > INT32_MAX ? INT32_MAX : whole;
  return uint32_t(int32_t(whole < INT32_MIN ? INT32_MIN : whole));
}

/// Where the `i`th number of an accumulator's register `r` lies in its matrix
/// of 8 columns: `cell` counts lanes.
inline unsigned placeOf(unsigned cell, unsigned row, unsigned column) {
  return (row + cell / 4) * 8 + cell % 4 * 2 + column;
}

/// The fragments of `mma`: 8 columns, groups of four lanes to a row.
template <typename Factor, unsigned M, unsigned K>
void mma(Warp &warp, const Op &op, LaneMask active) {
  using Number = typename Factor::Number;
  if (!allTakePart(warp, op, active))
    return;
  const auto &info = *static_cast<const MultiplyInfo *>(op.info);
  constexpr unsigned perRow = 4 * Factor::perCell, tiles = M / 8;
  constexpr unsigned registersA = tiles * (K / perRow), registersB = K / perRow;
  Number a[M * K], b[K * 8], tile[32 * Factor::perCell];
  for (unsigned r = 0; r < registersA; ++r) {
    Factor::widen(warp.lanes<uint8_t>(op.operand(r)), tile, info, false);
    Number *to = a + (r % tiles * 8) * K + r / tiles * perRow;
    for (unsigned row = 0; row < 8; ++row)
      for (unsigned i = 0; i < perRow; ++i)
        to[row * K + i] = tile[row * perRow + i];
  }
  for (unsigned r = 0; r < registersB; ++r) {
    Factor::widen(warp.lanes<uint8_t>(op.operand(registersA + r)), tile, info,
                  true);
    for (unsigned i = 0; i < perRow; ++i)
      for (unsigned n = 0; n < 8; ++n)
        b[(r * perRow + i) * 8 + n] = tile[n * perRow + i];
  }
  unsigned firstC = registersA + registersB;
  Number sums[M * 8];
  if constexpr (__is_same(Number, int32_t)) {
    for (unsigned i = 0; i < M * 8; ++i)
      sums[i] = 0;
    addProduct<Factor, M, 8, K>(a, b, sums);
    for (unsigned r = 0; r < M / 4; ++r) {
      const uint32_t *c = warp.lanes<uint32_t>(op.operand(firstC + r));
      uint32_t *d = warp.lanes<uint32_t>(op.result(r));
      for (unsigned l = 0; l < warpLanes; ++l)
        d[l] = addSum(c[l], sums[placeOf(l, r / 2 * 8, r % 2)], info.saturates);
    }
  } else if constexpr (isDouble<Factor>) {
    for (unsigned r = 0; r < M / 4; ++r) {
      const double *c = warp.lanes<double>(op.operand(firstC + r));
      for (unsigned l = 0; l < warpLanes; ++l)
        sums[placeOf(l, r / 2 * 8, r % 2)] = c[l];
    }
    addProduct<Factor, M, 8, K>(a, b, sums);
    for (unsigned r = 0; r < M / 4; ++r) {
      double *d = warp.lanes<double>(op.result(r));
      for (unsigned l = 0; l < warpLanes; ++l)
        d[l] = sums[placeOf(l, r / 2 * 8, r % 2)];
    }
  } else if (info.halfC) {
    for (unsigned r = 0; r < M / 8; ++r) {
      const uint32_t *c = warp.lanes<uint32_t>(op.operand(firstC + r));
      for (unsigned l = 0; l < warpLanes; ++l) {
        sums[placeOf(l, r * 8, 0)] = double(widenHalf(c[l] & 0xffff));
        sums[placeOf(l, r * 8, 1)] = double(widenHalf(c[l] >> 16));
      }
    }
    addProduct<Factor, M, 8, K>(a, b, sums);
    for (unsigned r = 0; r < M / 8; ++r) {
      uint32_t *d = warp.lanes<uint32_t>(op.result(r));
      for (unsigned l = 0; l < warpLanes; ++l)
        d[l] = roundHalfSum(sums[placeOf(l, r * 8, 0)]) |
               roundHalfSum(sums[placeOf(l, r * 8, 1)]) << 16;
    }
  } else {
    for (unsigned r = 0; r < M / 4; ++r) {
      const float *c = warp.lanes<float>(op.operand(firstC + r));
      for (unsigned l = 0; l < warpLanes; ++l)
        sums[placeOf(l, r / 2 * 8, r % 2)] = double(c[l]);
    }
    addProduct<Factor, M, 8, K>(a, b, sums);
    for (unsigned r = 0; r < M / 4; ++r) {
      uint32_t *d = warp.lanes<uint32_t>(op.result(r));
      for (unsigned l = 0; l < warpLanes; ++l)
        d[l] = roundSum(sums[placeOf(l, r / 2 * 8, r % 2)]);
    }
  }
}

/// The fragments of `wmma`: rows one after the other.
template <typename Factor, unsigned M, unsigned N, unsigned K>
void wmma(Warp &warp, const Op &op, LaneMask active) {
  using Number = typename Factor::Number;
  if (!allTakePart(warp, op, active))
    return;
  const auto &info = *static_cast<const MultiplyInfo *>(op.info);
  constexpr unsigned perRegister = 32 * Factor::perCell;
  Number a[M * K], b[K * N], sums[M * N];
  for (unsigned r = 0; r < M * K / perRegister; ++r)
    Factor::widen(warp.lanes<uint8_t>(op.operand(r)), a + r * perRegister, info,
                  false);
  for (unsigned r = 0; r < K * N / perRegister; ++r)
    Factor::widen(warp.lanes<uint8_t>(op.operand(info.registersA + r)),
                  b + r * perRegister, info, true);
  unsigned firstC = info.registersA + info.registersB;
  if constexpr (__is_same(Number, int32_t)) {
    for (unsigned i = 0; i < M * N; ++i)
      sums[i] = 0;
    addProduct<Factor, M, N, K>(a, b, sums);
    for (unsigned i = 0; i < M * N; ++i)
      warp.lanes<uint32_t>(op.result(i / 32))[i % 32] =
          addSum(warp.lanes<uint32_t>(op.operand(firstC + i / 32))[i % 32],
                 sums[i], info.saturates);
  } else if constexpr (isDouble<Factor>) {
    for (unsigned i = 0; i < M * N; ++i)
      sums[i] = warp.lanes<double>(op.operand(firstC + i / 32))[i % 32];
    addProduct<Factor, M, N, K>(a, b, sums);
    for (unsigned i = 0; i < M * N; ++i)
      warp.lanes<double>(op.result(i / 32))[i % 32] = sums[i];
  } else {
    for (unsigned i = 0; i < M * N; ++i)
      sums[i] =
          info.halfC
              ? double(widenHalf(
                    warp.lanes<uint16_t>(op.operand(firstC + i / 64))[i % 64]))
              : double(warp.lanes<float>(op.operand(firstC + i / 32))[i % 32]);
    addProduct<Factor, M, N, K>(a, b, sums);
    for (unsigned i = 0; i < M * N; ++i)
      if (info.halfD)
        warp.lanes<uint16_t>(op.result(i / 64))[i % 64] =
            uint16_t(roundHalfSum(sums[i]));
      else
        warp.lanes<uint32_t>(op.result(i / 32))[i % 32] = roundSum(sums[i]);
  }
}

inline Handler mmaHandler(Type type, const MatrixShape &shape) {
  switch (type) {
  case Type::F16:
    return shape.is(16, 8, 16)  ? Handler(mma<HalfFactor, 16, 16>)
           : shape.is(16, 8, 8) ? Handler(mma<HalfFactor, 16, 8>)
                                : nullptr;
  case Type::BF16:
    return shape.is(16, 8, 16)  ? Handler(mma<BrainFactor, 16, 16>)
           : shape.is(16, 8, 8) ? Handler(mma<BrainFactor, 16, 8>)
                                : nullptr;
  case Type::TF32:
    return shape.is(16, 8, 8)   ? Handler(mma<Tf32Factor, 16, 8>)
           : shape.is(16, 8, 4) ? Handler(mma<Tf32Factor, 16, 4>)
                                : nullptr;
  case Type::S8:
    return shape.is(16, 8, 32)   ? Handler(mma<ByteFactor, 16, 32>)
           : shape.is(16, 8, 16) ? Handler(mma<ByteFactor, 16, 16>)
           : shape.is(8, 8, 16)  ? Handler(mma<ByteFactor, 8, 16>)
                                 : nullptr;
  case Type::E4M3:
    return shape.is(16, 8, 32)   ? Handler(mma<EighthFactor, 16, 32>)
           : shape.is(16, 8, 16) ? Handler(mma<EighthFactor, 16, 16>)
                                 : nullptr;
  case Type::F64:
    return shape.is(8, 8, 4)     ? Handler(mma<DoubleFactor, 8, 4>)
           : shape.is(16, 8, 4)  ? Handler(mma<DoubleFactor, 16, 4>)
           : shape.is(16, 8, 8)  ? Handler(mma<DoubleFactor, 16, 8>)
           : shape.is(16, 8, 16) ? Handler(mma<DoubleFactor, 16, 16>)
                                 : nullptr;
  default:
    return nullptr;
  }
}

template <typename Factor>
inline Handler wmmaOf(const MatrixShape &shape) {
  return shape.is(16, 16, 16)  ? Handler(wmma<Factor, 16, 16, 16>)
         : shape.is(32, 8, 16) ? Handler(wmma<Factor, 32, 8, 16>)
         : shape.is(8, 32, 16) ? Handler(wmma<Factor, 8, 32, 16>)
                               : nullptr;
}
inline Handler wmmaHandler(Type type, const MatrixShape &shape) {
  switch (type) {
  case Type::F16:
    return wmmaOf<HalfFactor>(shape);
  case Type::BF16:
    return wmmaOf<BrainFactor>(shape);
  case Type::S8:
    return wmmaOf<ByteFactor>(shape);
  case Type::TF32:
    return shape.is(16, 16, 8) ? Handler(wmma<Tf32Factor, 16, 16, 8>) : nullptr;
  case Type::F64:
    return shape.is(8, 8, 4) ? Handler(wmma<DoubleFactor, 8, 8, 4>) : nullptr;
  default:
    return nullptr;
  }
}
