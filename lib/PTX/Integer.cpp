// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Integer arithmetic, logic, comparisons and moves: the forms of 32 and 64 bits
// that nearly every kernel has. See Decode.h for what belongs to this family.
//
//===----------------------------------------------------------------------===//

#include "Decode.h"
#include "Warp.h"
#include <type_traits>
namespace fsr::ptx {
#include "Lanes.inl"
#define CELL using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>
template <class T, int K>
void bin(Warp &w, const Op &op, LaneMask act) {
  CELL;
  U *r = w.lanes<U>(op.result(0));
  const U *a = w.lanes<U>(op.operand(0));
  const U *b = w.lanes<U>(op.operand(1));
  forEachLane(act, [=](unsigned l) {
    T x = T(a[l]), y = T(b[l]);
    T z = 0;
    if (K == 0)
      z = T(U(x) + U(y));
    else if (K == 1)
      z = T(U(x) - U(y));
    else if (K == 2)
      z = T(U(x) * U(y));
    else if (K == 3)
      z = x & y;
    else if (K == 4)
      z = x | y;
    else if (K == 5)
      z = x ^ y;
    r[l] = U(z);
  });
}
template <class T, bool L>
void shift(Warp &w, const Op &op, LaneMask act) {
  CELL;
  U *r = w.lanes<U>(op.result(0));
  const U *a = w.lanes<U>(op.operand(0));
  const uint32_t *b = w.lanes<uint32_t>(op.operand(1));
  constexpr unsigned N = sizeof(T) * 8;
  forEachLane(act, [=](unsigned l) {
    unsigned s = b[l];
    r[l] = L ? (s >= N ? 0 : U(a[l]) << (s & (N - 1)))
             : (s >= N ? 0 : U(T(a[l]) >> (s & (N - 1))));
  });
}
template <class U>
void madlo(Warp &w, const Op &op, LaneMask act) {
  U *r = w.lanes<U>(op.result(0));
  const U *a = w.lanes<U>(op.operand(0));
  const U *b = w.lanes<U>(op.operand(1));
  const U *c = w.lanes<U>(op.operand(2));
  forEachLane(act, [=](unsigned l) { r[l] = a[l] * b[l] + c[l]; });
}
template <bool S>
void mulwide(Warp &w, const Op &op, LaneMask act) {
  uint64_t *r = w.lanes<uint64_t>(op.result(0));
  const uint32_t *a = w.lanes<uint32_t>(op.operand(0));
  const uint32_t *b = w.lanes<uint32_t>(op.operand(1));
  forEachLane(act, [=](unsigned l) {
    r[l] = S ? uint64_t(int64_t(int32_t(a[l])) * int32_t(b[l]))
             : uint64_t(a[l]) * b[l];
  });
}
template <class U>
void movv(Warp &w, const Op &op, LaneMask act) {
  U *r = w.lanes<U>(op.result(0));
  const U *a = w.lanes<U>(op.operand(0));
  forEachLane(act, [=](unsigned l) { r[l] = a[l]; });
}
static void movp(Warp &w, const Op &op, LaneMask act) {
  LaneMask v = w.predicate(op.operand(0));
  LaneMask &r = w.predicate(op.result(0));
  r = (r & ~act) | (v & act);
}
template <class T>
void setpp(Warp &w, const Op &op, LaneMask act) {
  CELL;
  const U *a = w.lanes<U>(op.operand(0));
  const U *b = w.lanes<U>(op.operand(1));
  LaneMask v = 0;
  for (unsigned l = 0; l < 32; ++l) {
    T x = T(a[l]), y = T(b[l]);
    bool z = false;
    switch (op.immediate) {
    case 0:
      z = x == y;
      break;
    case 1:
      z = x != y;
      break;
    case 2:
      z = x < y;
      break;
    case 3:
      z = x <= y;
      break;
    case 4:
      z = x > y;
      break;
    case 5:
      z = x >= y;
      break;
    }
    v |= LaneMask(z) << l;
  }
  LaneMask &r = w.predicate(op.result(0));
  r = (r & ~act) | (v & act);
}
template <class U>
void selpp(Warp &w, const Op &op, LaneMask act) {
  U *r = w.lanes<U>(op.result(0));
  const U *a = w.lanes<U>(op.operand(0));
  const U *b = w.lanes<U>(op.operand(1));
  LaneMask p = w.predicate(op.operand(2));
  forEachLane(act, [=](unsigned l) { r[l] = p >> l & 1 ? a[l] : b[l]; });
}
static void andp(Warp &w, const Op &op, LaneMask act) {
  LaneMask v = w.predicate(op.operand(0)) & w.predicate(op.operand(1));
  LaneMask &r = w.predicate(op.result(0));
  r = (r & ~act) | (v & act);
}
Decoded decodeInteger(Decoder &d, Op &op) {
  const Instruction &in = d.instruction();
  llvm::StringRef o = in.opcode;
  Type t = Type::None;
  static constexpr llvm::StringRef known[] = {"add", "sub",  "mul",  "and",
                                              "or",  "xor",  "mov",  "shl",
                                              "shr", "selp", "setp", "mad"};
  if (!llvm::is_contained(known, o))
    return Decoded::NotMine;
  for (auto m : in.modifiers) {
    if (auto p = parseType(m))
      t = *p;
    else if (!((m == "lo" || m == "wide") && (o == "mul" || o == "mad")) &&
             !(o == "setp" && (m == "eq" || m == "ne" || m == "lt" ||
                               m == "le" || m == "gt" || m == "ge")))
      return d.failModifier(m);
  }
  if (bitWidth(t) != 32 && bitWidth(t) != 64 &&
      !(t == Type::Pred && (o == "mov" || o == "and")))
    return d.fail("this width is not supported");
  bool wide = bitWidth(t) == 64, s = isSigned(t);
  auto done = [&](bool ok) { return ok ? Decoded::Done : Decoded::Failed; };
#define BIN(K)                                                                 \
  (wide ? (s ? bin<int64_t, K> : bin<uint64_t, K>)                             \
        : (s ? bin<int32_t, K> : bin<uint32_t, K>))
  if (o == "mov") {
    op.run = t == Type::Pred ? movp : wide ? movv<uint64_t> : movv<uint32_t>;
    return done(d.setOperands(op, t, {t}));
  }
  if (o == "and" && t == Type::Pred) {
    op.run = andp;
    return done(d.setOperands(op, t, {t, t}));
  }
  if (o == "add" || o == "sub" || o == "and" || o == "or" || o == "xor" ||
      (o == "mul" && in.has("lo"))) {
    op.run = o == "add"   ? BIN(0)
             : o == "sub" ? BIN(1)
             : o == "mul" ? BIN(2)
             : o == "and" ? BIN(3)
             : o == "or"  ? BIN(4)
                          : BIN(5);
    return done(d.setOperands(op, t, {t, t}));
  }
  if (o == "mul" && in.has("wide")) {
    op.run = s ? mulwide<true> : mulwide<false>;
    return done(d.setOperands(op, Type::B64, {t, t}));
  }
  if (o == "mad" && in.has("lo")) {
    op.run = wide ? madlo<uint64_t> : madlo<uint32_t>;
    return done(d.setOperands(op, t, {t, t, t}));
  }
  if (o == "shl" || o == "shr") {
    op.run = o == "shl" ? (wide ? shift<uint64_t, true> : shift<uint32_t, true>)
             : wide     ? (s ? shift<int64_t, false> : shift<uint64_t, false>)
                        : (s ? shift<int32_t, false> : shift<uint32_t, false>);
    return done(d.setOperands(op, t, {t, Type::U32}));
  }
  if (o == "selp") {
    op.run = wide ? selpp<uint64_t> : selpp<uint32_t>;
    return done(d.setOperands(op, t, {t, t, Type::Pred}));
  }
  if (o == "setp") {
    llvm::StringRef c = in.modifiers[0];
    op.immediate = c == "eq"   ? 0
                   : c == "ne" ? 1
                   : c == "lt" ? 2
                   : c == "le" ? 3
                   : c == "gt" ? 4
                               : 5;
    op.run = wide ? (s ? setpp<int64_t> : setpp<uint64_t>)
                  : (s ? setpp<int32_t> : setpp<uint32_t>);
    return done(d.setOperands(op, Type::Pred, {t, t}));
  }
  return d.fail("this form is not supported");
}
} // namespace fsr::ptx
