// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From a function of numbers to a handler of lanes, and from a type of PTX to
// one of C++. Included like Lanes.inl, which it needs.
//
//===----------------------------------------------------------------------===//

template <typename T>
inline CellOf<T> toCell(T value) {
  return CellOf<T>(std::make_unsigned_t<T>(value));
}

/// `Each<&f>::run` gives each lane f of its sources.
template <auto Function>
struct Each;

template <typename R, typename A, R (*Function)(A)>
struct Each<Function> {
  static void run(Warp &warp, const Op &op, LaneMask active) {
    CellOf<R> *to = warp.lanes<CellOf<R>>(op.result(0));
    const CellOf<A> *a = warp.lanes<CellOf<A>>(op.operand(0));
    forEachLane(active, [=](unsigned lane) {
      to[lane] = toCell(Function(A(a[lane])));
    });
  }
};

template <typename R, typename A, typename B, R (*Function)(A, B)>
struct Each<Function> {
  static void run(Warp &warp, const Op &op, LaneMask active) {
    CellOf<R> *to = warp.lanes<CellOf<R>>(op.result(0));
    const CellOf<A> *a = warp.lanes<CellOf<A>>(op.operand(0));
    const CellOf<B> *b = warp.lanes<CellOf<B>>(op.operand(1));
    forEachLane(active, [=](unsigned lane) {
      to[lane] = toCell(Function(A(a[lane]), B(b[lane])));
    });
  }
};

template <typename R, typename A, typename B, typename C,
          R (*Function)(A, B, C)>
struct Each<Function> {
  static void run(Warp &warp, const Op &op, LaneMask active) {
    CellOf<R> *to = warp.lanes<CellOf<R>>(op.result(0));
    const CellOf<A> *a = warp.lanes<CellOf<A>>(op.operand(0));
    const CellOf<B> *b = warp.lanes<CellOf<B>>(op.operand(1));
    const CellOf<C> *c = warp.lanes<CellOf<C>>(op.operand(2));
    forEachLane(active, [=](unsigned lane) {
      to[lane] = toCell(Function(A(a[lane]), B(b[lane]), C(c[lane])));
    });
  }
};

template <typename R, typename A, typename B, typename C, typename D,
          R (*Function)(A, B, C, D)>
struct Each<Function> {
  static void run(Warp &warp, const Op &op, LaneMask active) {
    CellOf<R> *to = warp.lanes<CellOf<R>>(op.result(0));
    const CellOf<A> *a = warp.lanes<CellOf<A>>(op.operand(0));
    const CellOf<B> *b = warp.lanes<CellOf<B>>(op.operand(1));
    const CellOf<C> *c = warp.lanes<CellOf<C>>(op.operand(2));
    const CellOf<D> *d = warp.lanes<CellOf<D>>(op.operand(3));
    forEachLane(active, [=](unsigned lane) {
      to[lane] =
          toCell(Function(A(a[lane]), B(b[lane]), C(c[lane]), D(d[lane])));
    });
  }
};

inline void storePredicate(Warp &warp, Slot slot, LaneMask active,
                           LaneMask mask) {
  LaneMask &to = warp.predicate(slot);
  to = (to & ~active) | (mask & active);
}

/// What `pick` gives for a number of `type`; `b` types are unsigned.
template <typename Pick>
inline Handler ofType(Type type, Pick pick) {
  switch (type) {
  case Type::U16:
  case Type::B16:
    return pick(uint16_t());
  case Type::S16:
    return pick(int16_t());
  case Type::U32:
  case Type::B32:
    return pick(uint32_t());
  case Type::S32:
    return pick(int32_t());
  case Type::U64:
  case Type::B64:
    return pick(uint64_t());
  case Type::S64:
    return pick(int64_t());
  default:
    return nullptr;
  }
}
