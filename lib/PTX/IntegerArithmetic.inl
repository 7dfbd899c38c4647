// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Arithmetic of integers; see IntegerLanes.inl for how it is included. Sums and
// products are those of unsigned numbers, which wrap around.
//
//===----------------------------------------------------------------------===//

template <size_t Bytes, bool IsSigned>
struct Double;
template <>
struct Double<2, true> {
  using Type = int32_t;
};
template <>
struct Double<2, false> {
  using Type = uint32_t;
};
template <>
struct Double<4, true> {
  using Type = int64_t;
};
template <>
struct Double<4, false> {
  using Type = uint64_t;
};
template <>
struct Double<8, true> {
  using Type = __int128;
};
template <>
struct Double<8, false> {
  using Type = unsigned __int128;
};
template <typename T>
using DoubleOf = typename Double<sizeof(T), std::is_signed_v<T>>::Type;

inline int32_t saturate(int64_t value) {
  return value > INT32_MAX   ? INT32_MAX
         : value < INT32_MIN ? INT32_MIN
                             : int32_t(value);
}

template <typename T>
inline T add(T a, T b) {
  return T(CellOf<T>(a) + CellOf<T>(b));
}
template <typename T>
inline T subtract(T a, T b) {
  return T(CellOf<T>(a) - CellOf<T>(b));
}
inline int32_t addSaturated(int32_t a, int32_t b) {
  return saturate(int64_t(a) + b);
}
inline int32_t subtractSaturated(int32_t a, int32_t b) {
  return saturate(int64_t(a) - b);
}

template <typename T>
inline T multiply(T a, T b) {
  return T(CellOf<T>(a) * CellOf<T>(b));
}
template <typename T>
inline DoubleOf<T> multiplyWide(T a, T b) {
  return DoubleOf<T>(a) * DoubleOf<T>(b);
}
template <typename T>
inline T multiplyHigh(T a, T b) {
  return T(multiplyWide(a, b) >> (sizeof(T) * 8));
}
template <typename T>
inline T multiplyAdd(T a, T b, T c) {
  return add(multiply(a, b), c);
}
template <typename T>
inline T multiplyHighAdd(T a, T b, T c) {
  return add(multiplyHigh(a, b), c);
}
template <typename T>
inline DoubleOf<T> multiplyWideAdd(T a, T b, DoubleOf<T> c) {
  return add<DoubleOf<T>>(multiplyWide(a, b), c);
}
inline int32_t multiplyHighAddSaturated(int32_t a, int32_t b, int32_t c) {
  return addSaturated(multiplyHigh(a, b), c);
}

template <typename T>
inline int64_t multiply24Wide(T a, T b) {
  // The upper eight bits do not count.
  T low = T(CellOf<T>(a) << 8) >> 8, other = T(CellOf<T>(b) << 8) >> 8;
  return int64_t(low) * int64_t(other);
}
template <typename T>
inline T multiply24(T a, T b) {
  return T(multiply24Wide(a, b));
}
template <typename T>
inline T multiply24High(T a, T b) {
  return T(multiply24Wide(a, b) >> 16);
}
template <typename T>
inline T multiply24Add(T a, T b, T c) {
  return add(multiply24(a, b), c);
}
template <typename T>
inline T multiply24HighAdd(T a, T b, T c) {
  return add(multiply24High(a, b), c);
}
inline int32_t multiply24HighAddSaturated(int32_t a, int32_t b, int32_t c) {
  return addSaturated(multiply24High(a, b), c);
}

/// PTX leaves a division by zero to the machine, which gives all ones.
template <typename T>
inline T divide(T a, T b) {
  if (b == 0)
    return T(-1);
  if (std::is_signed_v<T> && b == T(-1))
    return subtract(T(0), a);
  return T(a / b);
}
template <typename T>
inline T remainder(T a, T b) {
  if (b == 0)
    return T(-1);
  if (std::is_signed_v<T> && b == T(-1))
    return 0;
  return T(a % b);
}
template <typename T>
inline T addDifference(T a, T b, T c) {
  return add(c, a < b ? subtract(b, a) : subtract(a, b));
}

template <typename T>
inline T least(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
inline T greatest(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
inline T leastNotNegative(T a, T b) {
  return greatest(least(a, b), T(0));
}
template <typename T>
inline T greatestNotNegative(T a, T b) {
  return greatest(greatest(a, b), T(0));
}
template <typename T>
inline T negate(T a) {
  return subtract(T(0), a);
}
template <typename T>
inline T absolute(T a) {
  return a < 0 ? subtract(T(0), a) : a;
}

/// Both halves of a word, each for itself.
template <typename T, T (*Function)(T, T)>
inline uint32_t halves(uint32_t a, uint32_t b) {
  uint32_t low = uint16_t(Function(T(a), T(b)));
  uint32_t high = uint16_t(Function(T(a >> 16), T(b >> 16)));
  return low | high << 16;
}

template <typename A, typename B>
inline uint32_t dotBytes(uint32_t a, uint32_t b, uint32_t c) {
  for (unsigned at = 0; at < 32; at += 8)
    c += uint32_t(int32_t(A(a >> at)) * int32_t(B(b >> at)));
  return c;
}
/// `From`: the bit that the two bytes of b begin at.
template <typename A, typename B, unsigned From>
inline uint32_t dotWords(uint32_t a, uint32_t b, uint32_t c) {
  for (unsigned i = 0; i < 2; ++i)
    c += uint32_t(int32_t(A(a >> (16 * i))) * int32_t(B(b >> (From + 8 * i))));
  return c;
}

/// Sums with the carry flag, which is the last source and the last result. A
/// difference is the sum with the complement: there is a carry where there is
/// no borrow.
template <typename T, bool Subtracts, bool Reads, bool Writes>
struct Carry {
  static T apply(T a, T b, bool flag, bool &out) {
    b = Subtracts ? T(~b) : b;
    T first = T(a + b);
    T second = T(first + T(flag));
    out = (first < a) | (second < first);
    return second;
  }
  static void run(Warp &warp, const Op &op, LaneMask active) {
    T *to = warp.lanes<T>(op.result(0));
    const T *a = warp.lanes<T>(op.operand(0));
    const T *b = warp.lanes<T>(op.operand(1));
    LaneMask in = Reads       ? warp.predicate(op.operand(2))
                  : Subtracts ? allLanes
                              : 0;
    LaneMask out = 0;
    for (LaneMask rest = active; rest; rest &= rest - 1) {
      unsigned lane = unsigned(__builtin_ctz(rest));
      bool carry;
      to[lane] = apply(a[lane], b[lane], in >> lane & 1, carry);
      out |= LaneMask(carry) << lane;
    }
    if (Writes)
      storePredicate(warp, op.result(1), active, out);
  }
};
template <typename T, bool High, bool Reads, bool Writes>
struct MultiplyCarry {
  using U = std::make_unsigned_t<T>;
  static void run(Warp &warp, const Op &op, LaneMask active) {
    U *to = warp.lanes<U>(op.result(0));
    const U *a = warp.lanes<U>(op.operand(0));
    const U *b = warp.lanes<U>(op.operand(1));
    const U *c = warp.lanes<U>(op.operand(2));
    LaneMask in = Reads ? warp.predicate(op.operand(3)) : 0, out = 0;
    for (LaneMask rest = active; rest; rest &= rest - 1) {
      unsigned lane = unsigned(__builtin_ctz(rest));
      U product = U(High ? multiplyHigh(T(a[lane]), T(b[lane]))
                         : multiply(T(a[lane]), T(b[lane])));
      bool carry;
      to[lane] = Carry<U, false, true, true>::apply(product, c[lane],
                                                    in >> lane & 1, carry);
      out |= LaneMask(carry) << lane;
    }
    if (Writes)
      storePredicate(warp, op.result(1), active, out);
  }
};

// From a form to its handler. -------------------------------------------------

inline Handler sumHandler(Type type, bool subtracts, bool saturates) {
  if (saturates)
    return subtracts ? &Each<&subtractSaturated>::run
                     : &Each<&addSaturated>::run;
  if (type == Type::U16x2 || type == Type::S16x2)
    return subtracts ? nullptr : &Each<&halves<uint16_t, &add<uint16_t>>>::run;
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    using U = std::make_unsigned_t<T>;
    return subtracts ? &Each<&subtract<U>>::run : &Each<&add<U>>::run;
  });
}

/// `mode`: 0 low, 1 high, 2 wide.
inline Handler productHandler(Type type, unsigned mode, bool adds) {
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    using U = std::make_unsigned_t<T>;
    if (mode == 0)
      return adds ? &Each<&multiplyAdd<U>>::run : &Each<&multiply<U>>::run;
    if (mode == 1)
      return adds ? &Each<&multiplyHighAdd<T>>::run
                  : &Each<&multiplyHigh<T>>::run;
    if constexpr (sizeof(T) < 8)
      return adds ? &Each<&multiplyWideAdd<T>>::run
                  : &Each<&multiplyWide<T>>::run;
    return nullptr;
  });
}
inline Handler product24Handler(bool isSigned, bool high, bool adds) {
  auto pick = [=](auto zero) -> Handler {
    using T = decltype(zero);
    if (high)
      return adds ? &Each<&multiply24HighAdd<T>>::run
                  : &Each<&multiply24High<T>>::run;
    return adds ? &Each<&multiply24Add<T>>::run : &Each<&multiply24<T>>::run;
  };
  return isSigned ? pick(int32_t()) : pick(uint32_t());
}
inline Handler saturatedProductHandler(bool is24) {
  return is24 ? &Each<&multiply24HighAddSaturated>::run
              : &Each<&multiplyHighAddSaturated>::run;
}

/// `which`: 0 div, 1 rem, 2 sad.
inline Handler plainHandler(Type type, unsigned which) {
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    return which == 0   ? &Each<&divide<T>>::run
           : which == 1 ? &Each<&remainder<T>>::run
                        : &Each<&addDifference<T>>::run;
  });
}

template <typename T>
inline Handler extremeOfHalves(bool isMax, bool relu) {
  if (relu)
    return isMax ? &Each<&halves<T, &greatestNotNegative<T>>>::run
                 : &Each<&halves<T, &leastNotNegative<T>>>::run;
  return isMax ? &Each<&halves<T, &greatest<T>>>::run
               : &Each<&halves<T, &least<T>>>::run;
}
inline Handler extremeHandler(Type type, bool isMax, bool relu) {
  if (type == Type::S16x2)
    return extremeOfHalves<int16_t>(isMax, relu);
  if (type == Type::U16x2)
    return extremeOfHalves<uint16_t>(isMax, relu);
  if (relu)
    return isMax ? &Each<&greatestNotNegative<int32_t>>::run
                 : &Each<&leastNotNegative<int32_t>>::run;
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    return isMax ? &Each<&greatest<T>>::run : &Each<&least<T>>::run;
  });
}
inline Handler magnitudeHandler(Type type, bool negates) {
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    return negates ? &Each<&negate<T>>::run : &Each<&absolute<T>>::run;
  });
}

template <typename A, typename B>
inline Handler dotOf(bool isWords, bool high) {
  using WordA = std::conditional_t<std::is_signed_v<A>, int16_t, uint16_t>;
  if (!isWords)
    return &Each<&dotBytes<A, B>>::run;
  return high ? &Each<&dotWords<WordA, B, 16>>::run
              : &Each<&dotWords<WordA, B, 0>>::run;
}
inline Handler dotHandler(bool isWords, bool high, bool signedA, bool signedB) {
  if (signedA)
    return signedB ? dotOf<int8_t, int8_t>(isWords, high)
                   : dotOf<int8_t, uint8_t>(isWords, high);
  return signedB ? dotOf<uint8_t, int8_t>(isWords, high)
                 : dotOf<uint8_t, uint8_t>(isWords, high);
}

template <typename T, bool Flag>
inline Handler carryOf(bool reads, bool writes) {
  if (reads)
    return writes ? &Carry<T, Flag, true, true>::run
                  : &Carry<T, Flag, true, false>::run;
  return &Carry<T, Flag, false, true>::run;
}
inline Handler carryHandler(Type type, bool subtracts, bool reads,
                            bool writes) {
  if (bitWidth(type) == 64)
    return subtracts ? carryOf<uint64_t, true>(reads, writes)
                     : carryOf<uint64_t, false>(reads, writes);
  return subtracts ? carryOf<uint32_t, true>(reads, writes)
                   : carryOf<uint32_t, false>(reads, writes);
}
template <typename T, bool High>
inline Handler multiplyCarryOf(bool reads, bool writes) {
  if (reads)
    return writes ? &MultiplyCarry<T, High, true, true>::run
                  : &MultiplyCarry<T, High, true, false>::run;
  return &MultiplyCarry<T, High, false, true>::run;
}
inline Handler multiplyCarryHandler(Type type, bool high, bool reads,
                                    bool writes) {
  return ofType(type, [=](auto zero) -> Handler {
    using T = decltype(zero);
    if constexpr (sizeof(T) >= 4)
      return high ? multiplyCarryOf<T, true>(reads, writes)
                  : multiplyCarryOf<std::make_unsigned_t<T>, false>(reads,
                                                                    writes);
    return nullptr;
  });
}
