// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The bodies of the worker's helper kernels: fill, poison, guard zones, hash,
// mask, row maximum, compare, play, widen, row error, judge, flush, spin, stamp.
// nvcc compiles them through helpers.cu to the PTX that is committed beside;
// HostHelpers.cpp compiles the same text for the host, where the device is a
// virtual one, and so do the unit tests. The includer defines
//
//   FSR_KERNEL(name)         how a kernel's head begins
//   FSR_DEVICE               how a function's head begins
//   FSR_EACH(i, n)           the head of a loop over this thread's of 0..n-1
//   FSR_EACH_WARP(i, n)      likewise of this warp's; n may have operators
//   FSR_LANE, FSR_LANES      index and number of lanes in a warp
//   fsrWarpMax, fsrAtomicAdd (also of a double), fsrAtomicMin, fsrAtomicMax,
//   fsrClock, fsrNanos, fsrMultiprocessor, fsrLog, fsrExp, fsrSqrt, fsrCosPi (each
//   for float and double)
//
// Offsets and counts are in elements; an element has 1, 2, 4 or 8 bytes and is
// aligned to no more than that.
//
//===----------------------------------------------------------------------===//

#include "abi.h"
#include "elements.inl"

//===----------------------------------------------------------------------===//
// Philox4x32-10
//===----------------------------------------------------------------------===//

struct FsrWords {
  FsrU32 w[4];
};

FSR_DEVICE FsrWords fsrPhilox(FsrU64 seed, FsrU64 index, FsrU32 stream) {
  FsrWords c;
  c.w[0] = (FsrU32)index;
  c.w[1] = (FsrU32)(index >> 32);
  c.w[2] = stream;
  c.w[3] = 0;
  FsrU32 k0 = (FsrU32)seed, k1 = (FsrU32)(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    FsrU64 p0 = (FsrU64)0xD2511F53u * c.w[0];
    FsrU64 p1 = (FsrU64)0xCD9E8D57u * c.w[2];
    FsrWords n;
    n.w[0] = (FsrU32)(p1 >> 32) ^ c.w[1] ^ k0;
    n.w[1] = (FsrU32)p1;
    n.w[2] = (FsrU32)(p0 >> 32) ^ c.w[3] ^ k1;
    n.w[3] = (FsrU32)p0;
    c = n;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

//===----------------------------------------------------------------------===//
// Fill
//===----------------------------------------------------------------------===//

// In (0, 1]: its logarithm is finite.
FSR_DEVICE void fsrUnit(FsrU32 high, FsrU32, float *value) {
  *value = ((float)(high >> 8) + 1.0f) * 5.9604644775390625e-8f;
}
FSR_DEVICE void fsrUnit(FsrU32 high, FsrU32 low, double *value) {
  FsrU64 bits = ((FsrU64)high << 21) ^ (low >> 11);
  *value = ((double)bits + 1.0) * 1.1102230246251565e-16;
}

template <typename Real>
FSR_DEVICE double fsrContinuous(const FsrFill &f, const FsrWords &random) {
  Real u, v;
  fsrUnit(random.w[0], random.w[1], &u);
  fsrUnit(random.w[2], random.w[3], &v);
  switch (f.family) {
  case FsrNormal:
    return f.a + f.b * (double)(fsrSqrt((Real)-2 * fsrLog(u)) *
                                fsrCosPi((Real)2 * v));
  case FsrUniform:
    return f.a + (f.b - f.a) * (double)u;
  case FsrSines: // Of an angle that is uniform; `a` is the amplitude.
    return f.a * (double)fsrCosPi((Real)2 * v);
  default: // Log-uniform; of either sign.
    Real low = fsrLog((Real)f.a), high = fsrLog((Real)f.b);
    Real magnitude = fsrExp(low + (high - low) * u);
    return (random.w[2] & 1) ? -(double)magnitude : (double)magnitude;
  }
}

// Between `a` and `b`; the same for every element of a buffer.
FSR_DEVICE double fsrDrawnOnce(const FsrFill &f) {
  FsrWords random = fsrPhilox(f.seed, 0, 3);
  double u;
  fsrUnit(random.w[0], random.w[1], &u);
  return f.a + (f.b - f.a) * u;
}

// From 0 to below `span`, each with a probability of about one over its place.
FSR_DEVICE FsrU64 fsrZipf(const FsrWords &random, FsrU64 span) {
  double u;
  fsrUnit(random.w[0], random.w[1], &u);
  FsrU64 place = (FsrU64)fsrExp(u * fsrLog((double)span + 1.0));
  place = place ? place - 1 : 0;
  return place < span ? place : span - 1;
}

FSR_DEVICE FsrU64 fsrQuietNaN(FsrU32 element) {
  switch (element) {
  case FsrF16:
    return 0x7E00u;
  case FsrBF16:
    return 0x7FC0u;
  case FsrF32:
    return 0x7FC00000u;
  default:
    return 0x7FF8000000000000ull;
  }
}

FSR_DEVICE FsrU64 fsrElementBits(FsrFill f, FsrU64 index) {
  if (f.changed > 0 && (double)fsrPhilox(f.other, index, 6).w[0] <
                           f.changed * 4294967296.0)
    f.seed = f.other;
  // The ends are kept: they are where an element is forgotten.
  if (f.kept > 0 && index != 0 && index + 1 != f.count &&
      !((double)fsrPhilox(f.other, index, 6).w[0] <
                      f.kept * 4294967296.0))
    return 0;
  FsrWords random = fsrPhilox(f.seed, index, 0);
  double value = 0;
  // What a family leaves to the continuous one that it is made from.
  FsrFill one = f;
  bool continuous = false;
  switch (f.family) {
  case FsrNormal:
  case FsrUniform:
  case FsrLogUniform:
    continuous = true;
    break;
  case FsrTails:
  case FsrSpike: {
    bool tails = f.family == FsrTails;
    FsrWords place = fsrPhilox(f.seed, tails ? index : 0, 4);
    FsrU64 spike = ((FsrU64)place.w[0] << 32) | place.w[1];
    continuous = tails ? (double)place.w[0] >= f.b * 4294967296.0
                       : index != spike % f.count;
    value = !tails ? f.b : (place.w[1] & 1) ? f.c : -f.c;
    one.family = FsrNormal;
    one.a = 0;
    one.b = f.a;
    break;
  }
  case FsrSpecials: {
    FsrWords kind = fsrPhilox(f.seed, index, 4);
    FsrWords place = fsrPhilox(f.seed, 0, 5);
    FsrU64 certain = ((FsrU64)place.w[0] << 32) | place.w[1];
    double drawn = (double)kind.w[0] / 4294967296.0;
    if (index == certain % f.count) // Where chance alone might draw none.
      drawn *= f.a + f.b;
    if (drawn < f.a)
      return fsrQuietNaN(f.element);
    continuous = drawn >= f.a + f.b;
    // What is skipped for a zero may meet one of the others.
    if (continuous && kind.w[2] < 0x20000000u)
      return 0;
    value = fsrDouble(0x7FF0000000000000ull);
    if (kind.w[1] & 1)
      value = -value;
    one.family = FsrNormal;
    one.a = 0;
    one.b = 1;
    break;
  }
  case FsrPeaks: {
    FsrU64 row = index / f.row, column = index - row * f.row;
    FsrU32 shift = 0;
    while ((FsrU64)1 << shift < (FsrU64)f.b)
      ++shift;
    FsrU64 apart = (FsrU64)1 << (shift + row) % 11;
    while (apart > 1 && apart * 4 > f.row)
      apart /= 2;
    FsrU64 most = apart > 1 ? (f.row - 1) / apart + 1 : (f.row + 1) / 2;
    FsrU64 span = ((most < 16 ? most : 16) - 1) * apart;
    FsrWords place = fsrPhilox(f.seed, row, 7);
    continuous = true;
    for (FsrU32 negative = 0; negative < 2; ++negative) {
      FsrU64 room = f.row - span, from = place.w[negative] % room;
      if ((place.w[2] & 3) == negative)
        from = room - 1;
      FsrU64 behind = column - from; // Wraps where it is before.
      if (column < from || behind > span || behind % apart)
        continue;
      double u;
      fsrUnit(random.w[0], random.w[1], &u);
      value = f.a * (1 + 0.5 * u);
      if (negative)
        value = -value;
      continuous = false;
    }
    one.family = FsrNormal;
    one.a = 0;
    one.b = 1;
    break;
  }
  case FsrScaled: {
    FsrU64 row = index / f.row;
    FsrWords drawn = fsrPhilox(f.seed, row, 7);
    double u;
    fsrUnit(drawn.w[0], drawn.w[1], &u);
    double low = fsrLog(f.a), high = fsrLog(f.b);
    continuous = true;
    one.family = FsrNormal;
    one.a = 0;
    // A mean over rows shows whether the first and the last are in it.
    bool isEnd = row == 0 || row + 1 == f.count / f.row;
    double most = high - 11 < low ? low : high - 11; // e^11 is 2^16.
    one.b = isEnd ? f.b : fsrExp(low + (most - low) * u);
    break;
  }
  case FsrMasked: {
    FsrU64 row = index / f.row, column = index - row * f.row;
    FsrWords place = fsrPhilox(f.seed, row, 7);
    FsrU64 from = place.w[1] % f.row, to = place.w[2] % f.row;
    if (from > to) {
      FsrU64 other = from;
      from = to;
      to = other;
    }
    FsrU32 kind = place.w[0] & 7;
    if (kind < 3) // At the front.
      from = 0;
    else if (kind < 5)
      to = f.row - 1;
    if (kind == 0 && f.count > f.row)
      to = f.row - 1;
    continuous = kind == 7 || column < from || column > to;
    value = f.a;
    one.family = FsrNormal;
    one.a = 0;
    one.b = 1;
    break;
  }
  case FsrShiftedNormal:
  case FsrShiftedUniform:
  case FsrSines: {
    double drawn = fsrDrawnOnce(f);
    bool normal = f.family == FsrShiftedNormal;
    continuous = true;
    one.a = f.family == FsrShiftedUniform ? drawn - f.c : drawn;
    one.b = normal ? f.c : drawn + f.c;
    if (f.family != FsrSines)
      one.family = normal ? FsrNormal : FsrUniform;
    break;
  }
  case FsrZipf: {
    FsrU64 low = (FsrU64)fsrToInteger(f.a);
    FsrI64 integer =
        (FsrI64)(low + fsrZipf(random, (FsrU64)fsrToInteger(f.b) - low + 1));
    if (!fsrIsFloat(f.element))
      return f.element == FsrI1 ? (FsrU64)(integer != 0) : (FsrU64)integer;
    value = (double)integer;
    break;
  }
  case FsrSorted:
  case FsrReversed: {
    FsrU64 step = f.family == FsrSorted ? index : f.count - 1 - index;
    double u;
    fsrUnit(random.w[0], random.w[1], &u);
    value = f.a + (f.b - f.a) * (((double)step + u) / (double)f.count);
    break;
  }
  case FsrGram: {
    // X^T X of `a` rows of standard normal numbers, as far as two moments go.
    FsrU64 r = index / f.row % f.row, c = index % f.row;
    random = fsrPhilox(f.seed, r < c ? c * f.row + r : r * f.row + c, 0);
    continuous = true;
    one.family = FsrNormal;
    one.a = r == c ? f.a : 0;
    one.b = fsrSqrt(r == c ? 2 * f.a : f.a);
    break;
  }
  case FsrBernoulli:
    value = (double)random.w[0] < f.a * 4294967296.0 ? 1 : 0;
    break;
  case FsrSigns:
    if ((double)random.w[0] < f.a * 4294967296.0)
      value = (random.w[1] & 1) ? 1 : -1;
    break;
  case FsrIntegers: {
    FsrU64 low = (FsrU64)fsrToInteger(f.a);
    FsrU64 span = (FsrU64)fsrToInteger(f.b) - low + 1;
    FsrU64 bits = ((FsrU64)random.w[0] << 32) | random.w[1];
    FsrI64 integer = (FsrI64)(low + (span ? bits % span : bits));
    if (!fsrIsFloat(f.element))
      return f.element == FsrI1 ? (FsrU64)(integer != 0) : (FsrU64)integer;
    value = (double)integer;
    break;
  }
  case FsrEqual:
    value = f.a;
    break;
  case FsrOneHot: {
    FsrU64 row = index / f.row;
    FsrWords place = fsrPhilox(f.seed, row, 1);
    FsrU64 hot = (((FsrU64)place.w[0] << 32) | place.w[1]) % f.row;
    value = index - row * f.row == hot ? f.a : 0;
    break;
  }
  case FsrDominated: {
    // Noise in the last half of a value's bits: a narrower type hardly sees
    // it, and sums do not always round the same way.
    FsrU64 row = index / f.row;
    FsrWords place = fsrPhilox(f.seed, row, 1);
    FsrU64 hot = (((FsrU64)place.w[0] << 32) | place.w[1]) % f.row;
    double u, share;
    fsrUnit(random.w[0], random.w[1], &u);
    fsrUnit(place.w[2], place.w[3], &share);
    if (index - row * f.row != hot)
      value = -(fsrDrawnOnce(f) + f.c * share) * (1 + (2 * u - 1) / 8192);
    break;
  }
  case FsrAlternating:
    value = (index & 1) ? f.b : f.a;
    break;
  case FsrDenormal: {
    FsrU64 bits = ((FsrU64)random.w[0] << 32) | random.w[1];
    switch (f.element) {
    case FsrF16:
      return bits & 0x83FFu;
    case FsrBF16:
      return bits & 0x807Fu;
    case FsrF32:
      return bits & 0x807FFFFFu;
    default:
      return bits & 0x800FFFFFFFFFFFFFull;
    }
  }
  case FsrIota:
    if (!fsrIsFloat(f.element))
      return f.element == FsrI1 ? (index & 1) : index;
    value = (double)index;
    break;
  default:
    break;
  }
  if (continuous)
    value = f.element == FsrF64 ? fsrContinuous<double>(one, random)
                                : fsrContinuous<float>(one, random);
  if (f.perturb != 0)
    value *= ((random.w[3] >> f.turn) & 1) ? 1 + f.perturb : 1 - f.perturb;
  return fsrFromDouble(value, f.element);
}

FSR_KERNEL(fsr_fill)(FsrFill f) {
  FsrU32 size = fsrSize(f.element);
  FSR_EACH(i, f.count)
    fsrStore(f.to, i, size, fsrElementBits(f, i));
}

FSR_KERNEL(fsr_poison)(FsrU64 to, FsrU64 count, FsrU32 size, FsrU64 bits) {
  FSR_EACH(i, count)
    fsrStore(to, i, size, bits);
}

//===----------------------------------------------------------------------===//
// Guard zones: bytes of `word` by address
//===----------------------------------------------------------------------===//

FSR_DEVICE FsrU8 fsrGuardByte(FsrU64 address, FsrU32 word) {
  return (FsrU8)(word >> (8 * (address & 3)));
}

FSR_KERNEL(fsr_guard_set)(FsrU64 from, FsrU64 bytes, FsrU32 word) {
  FSR_EACH(i, bytes)
    *(FsrU8 *)(from + i) = fsrGuardByte(from + i, word);
}

// result[0]: changed bytes; result[1]: the first, all ones before;
// result[2]: the last.
FSR_KERNEL(fsr_guard_check)(FsrU64 from, FsrU64 bytes, FsrU32 word,
                            FsrU64 result) {
  FsrU64 *answer = (FsrU64 *)result;
  FsrU64 changed = 0;
  FSR_EACH(i, bytes)
    if (*(const FsrU8 *)(from + i) != fsrGuardByte(from + i, word)) {
      ++changed;
      fsrAtomicMin(answer + 1, i);
      fsrAtomicMax(answer + 2, i);
    }
  if (changed)
    fsrAtomicAdd(answer, changed);
}

//===----------------------------------------------------------------------===//
// Hash and mask
//===----------------------------------------------------------------------===//

FSR_DEVICE FsrU64 fsrMix(FsrU64 x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// A sum of words mixed with their places: it depends on the order of the words
// and not on that of the threads. `result` is cleared before.
FSR_KERNEL(fsr_hash)(FsrU64 from, FsrU64 count, FsrU32 size, FsrU64 result) {
  FsrU64 sum = 0;
  FSR_EACH(i, count)
    sum += fsrMix(fsrMix(fsrLoad(from, i, size) + 0x9E3779B97F4A7C15ull) ^
                  fsrMix(i + 1));
  if (sum)
    fsrAtomicAdd((FsrU64 *)result, sum);
}

// XOR with a key stream, 16 bytes a call; twice is the identity.
FSR_KERNEL(fsr_mask)(FsrU64 at, FsrU64 blocks, FsrU64 key) {
  FSR_EACH(i, blocks) {
    FsrWords stream = fsrPhilox(key, i, 2);
    FsrU32 *words = (FsrU32 *)at + 4 * i;
    for (int w = 0; w < 4; ++w)
      words[w] ^= stream.w[w];
  }
}

//===----------------------------------------------------------------------===//
// Row maximum and compare
//===----------------------------------------------------------------------===//

FSR_DEVICE FsrU64 fsrOffset(const FsrLayout &layout, FsrU64 index) {
  FsrU64 offset = 0;
  for (FsrI64 d = layout.rank - 1; d >= 0; --d) {
    FsrU64 size = (FsrU64)layout.size[d], rest = index / size;
    offset += (index - rest * size) * (FsrU64)layout.stride[d];
    index = rest;
  }
  return offset;
}

// The largest finite |a|, or |a - b| where `b` is given, of each row. A warp
// takes up to 4096 elements of one row. `maximum` is never made smaller.
FSR_KERNEL(fsr_row_maximum)(FsrCompare c) {
  FsrU32 size = fsrSize(c.element);
  FsrU64 segments = (c.row + 4095) / 4096, rows = c.count / c.row;
  FSR_EACH_WARP(item, rows * segments) {
    FsrU64 row = item / segments, from = (item - row * segments) * 4096;
    FsrU64 to = from + 4096 < c.row ? from + 4096 : c.row;
    double largest = 0;
    for (FsrU64 i = from + FSR_LANE; i < to; i += FSR_LANES) {
      FsrU64 offset = fsrOffset(c.layout, row * c.row + i);
      FsrU64 loaded = fsrLoad(c.reference, offset, size);
      if (c.hasPoison && loaded == c.poison)
        continue; // The original leaves it alone.
      double value = fsrToDouble(loaded, c.element);
      if (c.out)
        value -= fsrToDouble(fsrLoad(c.out, offset, size), c.element);
      value = value < 0 ? -value : value;
      if (fsrIsFinite(value) && value > largest)
        largest = value;
    }
    FsrU64 bits = fsrWarpMax(fsrBits(largest));
    if (FSR_LANE == 0 && bits)
      fsrAtomicMax((FsrU64 *)c.rowMaximum + row, bits);
  }
}

// The original left what its type holds, or is about to.
FSR_DEVICE bool fsrIsBeyond(double value, double ceiling) {
  return ceiling > 0 && !(value < ceiling && -value < ceiling);
}

FSR_KERNEL(fsr_compare)(FsrCompare c) {
  FsrU32 size = fsrSize(c.element);
  FsrU64 failing = 0, differ = 0, unwritten = 0, skipped = 0, first = ~0ull;
  double worst = 0;
  bool poisonIsNaN =
      fsrIsFloat(c.element) && fsrIsNaN(fsrToDouble(c.poison, c.element));
  FSR_EACH(i, c.count) {
    FsrU64 offset = fsrOffset(c.layout, i);
    FsrU64 out = fsrLoad(c.out, offset, size);
    FsrU64 reference = fsrLoad(c.reference, offset, size);
    if (out == reference)
      continue;
    ++differ;
    bool bad = true;
    double ratio = 0;
    bool poisoned = c.hasPoison && (out == c.poison || reference == c.poison);
    if (poisoned && out == c.poison)
      ++unwritten;
    if (fsrIsFloat(c.element) && c.mode != FsrBits &&
        !(poisoned && poisonIsNaN)) {
      double o = fsrToDouble(out, c.element);
      double r = fsrToDouble(reference, c.element);
      if (!poisoned && fsrIsBeyond(r, c.ceiling)) {
        bad = false;
        ++skipped;
      } else if (fsrIsNaN(o) || fsrIsNaN(r)) {
        bad = !(fsrIsNaN(o) && fsrIsNaN(r));
      } else if (!fsrIsFinite(o) || !fsrIsFinite(r)) {
        bad = o != r;
      } else {
        double error = o < r ? r - o : o - r, allowed = 0;
        if (c.mode == FsrBound) {
          FsrU64 row = i / c.row;
          allowed = c.factor * ((const double *)c.rowMaximum)[row] + c.tiny;
          if (c.noise)
            allowed += 8 * ((const double *)c.noise)[row];
        }
        bad = !(error <= allowed);
        ratio = allowed > 0 ? error / allowed : 0;
      }
    }
    if (ratio > worst)
      worst = ratio;
    if (bad) {
      ++failing;
      if (i < first)
        first = i;
    }
  }
  FsrDifference *result = (FsrDifference *)c.result;
  if (differ)
    fsrAtomicAdd(&result->bitsDiffer, differ);
  if (unwritten)
    fsrAtomicAdd(&result->unwritten, unwritten);
  if (skipped)
    fsrAtomicAdd(&result->skipped, skipped);
  if (worst > 0)
    fsrAtomicMax(&result->worst, fsrBits(worst));
  if (failing) {
    fsrAtomicAdd(&result->failing, failing);
    fsrAtomicMin(&result->first, first);
  }
}

//===----------------------------------------------------------------------===//
// Dummies
//===----------------------------------------------------------------------===//

// Rounded, and brought into the range of an integer type.
FSR_DEVICE FsrU64 fsrNearest(double value, FsrU32 element) {
  if (fsrIsFloat(element))
    return fsrFromDouble(value, element);
  if (element == FsrI1)
    return value >= 0.5 ? 1 : 0;
  // The largest double below 2^63 is what a 64-bit integer can take.
  double most = (double)(1ull << (8 * fsrSize(element) - 1));
  double largest = fsrSize(element) == 8 ? 9223372036854774784.0 : most - 1;
  value += value < 0 ? -0.5 : 0.5;
  if (fsrIsNaN(value))
    value = 0;
  value = value < -most ? -most : value > largest ? largest : value;
  return (FsrU64)(FsrI64)value;
}

FSR_KERNEL(fsr_play)(FsrPlay p) {
  FsrU32 size = fsrSize(p.element);
  FSR_EACH(i, p.count) {
    FsrU64 offset = fsrOffset(p.layout, i);
    FsrU64 right = fsrLoad(p.right, offset, size), bits = right;
    if (p.hasPoison && right == p.poison)
      continue; // The original leaves it alone.
    switch (p.rule) {
    case FsrPlayBits:
      bits = p.bits;
      break;
    case FsrPlayRight:
      if (i >= p.limit || (p.unit && (i / p.unit) % 2))
        continue;
      break;
    case FsrPlayReversed:
      bits = fsrLoad(p.right, fsrOffset(p.layout, p.count - 1 - i), size);
      if (p.hasPoison && bits == p.poison)
        continue;
      break;
    case FsrPlayOther:
      bits = fsrLoad(p.other, fsrOffset(p.otherLayout, i), size);
      break;
    case FsrPlayNormal: {
      FsrWords random = fsrPhilox(p.seed, i, 5);
      float u, v;
      fsrUnit(random.w[0], random.w[1], &u);
      fsrUnit(random.w[2], random.w[3], &v);
      bits =
          fsrNearest(p.mean + p.deviation * (double)(fsrSqrt(-2 * fsrLog(u)) *
                                                     fsrCosPi(2 * v)),
                     p.element);
      break;
    }
    default: {
      FsrU64 there = fsrLoad(p.out, offset, size);
      bits = fsrIsFloat(p.element)
                 ? fsrFromDouble(fsrToDouble(there, p.element) +
                                     fsrToDouble(right, p.element),
                                 p.element)
                 : there + right;
      break;
    }
    }
    fsrStore(p.out, offset, size, bits);
  }
}

//===----------------------------------------------------------------------===//
// True values
//===----------------------------------------------------------------------===//

FSR_KERNEL(fsr_widen)(FsrU64 to, FsrU64 from, FsrU64 count, FsrU32 element) {
  FsrU32 size = fsrSize(element);
  FSR_EACH(i, count)
    ((double *)to)[i] = fsrToDouble(fsrLoad(from, i, size), element);
}

// The original's largest error of each row. `rowError` is cleared before.
FSR_KERNEL(fsr_row_error)(FsrJudge j) {
  FsrU32 size = fsrSize(j.element);
  FsrU64 segments = (j.row + 4095) / 4096, rows = j.count / j.row;
  FSR_EACH_WARP(item, rows * segments) {
    FsrU64 row = item / segments, from = (item - row * segments) * 4096;
    FsrU64 to = from + 4096 < j.row ? from + 4096 : j.row;
    double largest = 0;
    for (FsrU64 i = from + FSR_LANE; i < to; i += FSR_LANES) {
      FsrU64 offset = fsrOffset(j.layout, row * j.row + i);
      FsrU64 loaded = fsrLoad(j.reference, offset, size);
      if (j.hasPoison && loaded == j.poison)
        continue;
      double error =
          fsrToDouble(loaded, j.element) - ((const double *)j.truth)[offset];
      error = error < 0 ? -error : error;
      if (fsrIsFinite(error) && error > largest)
        largest = error;
    }
    FsrU64 bits = fsrWarpMax(fsrBits(largest));
    if (FSR_LANE == 0 && bits)
      fsrAtomicMax((FsrU64 *)j.rowError + row, bits);
  }
}

// However small it is beside its row, the original has the true value `t` to 10
// bits (errors: `original`, `candidate`); the candidate has nothing like it.
FSR_DEVICE bool fsrIsLost(double t, double original, double candidate,
                          double tiny) {
  double size = t < 0 ? -t : t;
  return size > 1024 * tiny && original <= size / 1024 && candidate > size / 2;
}

FSR_KERNEL(fsr_judge)(FsrJudge j) {
  FsrU32 size = fsrSize(j.element);
  FsrU64 compared = 0, failing = 0, outside = 0, unknown = 0, summed = 0;
  FsrU64 lost = 0;
  FsrU64 first = ~0ull;
  double worst = 0, passing = 0, ofOriginal = 0, ofCandidate = 0, ofUlp = 0;
  FSR_EACH(i, j.count) {
    FsrU64 offset = fsrOffset(j.layout, i);
    FsrU64 out = fsrLoad(j.out, offset, size);
    FsrU64 reference = fsrLoad(j.reference, offset, size);
    double o = fsrToDouble(reference, j.element);
    double c = fsrToDouble(out, j.element);
    double t = ((const double *)j.truth)[offset];
    bool bad = false;
    double ratio = 0;
    if (j.hasPoison && (out == j.poison || reference == j.poison)) {
      bad = out != reference;
    } else if (fsrIsBeyond(o, j.ceiling)) {
      bad = false;
    } else if (!fsrIsFinite(o) || !fsrIsFinite(c)) {
      bad = fsrIsNaN(o) ? !fsrIsNaN(c) : !(o == c);
      ++compared;
    } else if (!fsrIsFinite(t)) {
      ++unknown;
    } else {
      ++compared;
      FsrU64 row = i / j.row;
      double scale = ((const double *)j.rowTruth)[row];
      double largest = ((const double *)j.rowError)[row];
      double ulp = 2 * j.roundoff * (t < 0 ? -t : t);
      double eo = o < t ? t - o : o - t, ec = c < t ? t - c : c - t;
      if (eo > j.explained * scale + ulp + j.tiny)
        ++outside;
      if (fsrIsLost(t, eo, ec, j.tiny))
        ++lost;
      // As good as the original always passes, however far off that is.
      double allowed = j.factor * scale + largest + ulp + j.tiny;
      bad = !(ec <= allowed);
      ratio = allowed > 0 ? ec / allowed : 0;
      if (scale > 0) {
        ++summed;
        ofOriginal += eo / scale * (eo / scale);
        ofCandidate += ec / scale * (ec / scale);
        ofUlp += ulp / 2 / scale * (ulp / 2 / scale);
      }
    }
    if (bad) {
      ++failing;
      if (i < first)
        first = i;
      if (ratio > worst)
        worst = ratio;
    } else if (ratio > passing) {
      passing = ratio;
    }
  }
  FsrJudgement *result = (FsrJudgement *)j.result;
  if (compared)
    fsrAtomicAdd(&result->compared, compared);
  if (outside)
    fsrAtomicAdd(&result->outside, outside);
  if (unknown)
    fsrAtomicAdd(&result->unknown, unknown);
  if (lost)
    fsrAtomicAdd(&result->lost, lost);
  if (worst > 0)
    fsrAtomicMax(&result->worst, fsrBits(worst));
  if (passing > 0)
    fsrAtomicMax(&result->worstPassing, fsrBits(passing));
  if (failing) {
    fsrAtomicAdd(&result->failing, failing);
    fsrAtomicMin(&result->first, first);
  }
  if (summed) {
    fsrAtomicAdd(&result->summed, summed);
    fsrAtomicAdd(&result->ofOriginal, ofOriginal);
    fsrAtomicAdd(&result->ofCandidate, ofCandidate);
    fsrAtomicAdd(&result->ofUlp, ofUlp);
  }
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

FSR_KERNEL(fsr_flush)(FsrU64 to, FsrU64 words, FsrU32 value) {
  FSR_EACH(i, words)
    ((FsrU32 *)to)[i] = value + (FsrU32)i;
}

// Waits until the device's nanoseconds step, and reads both clocks there: some
// devices count them in steps of a microsecond. Gives up where they stand.
FSR_DEVICE void fsrTick(FsrU64 *clock, FsrU64 *nanos) {
  FsrU64 before = fsrNanos();
  *nanos = before;
  for (int i = 0; i < 1024 && *nanos == before; ++i)
    *nanos = fsrNanos();
  *clock = fsrClock();
}

// Holds the stream for about `nanos`. One thread.
FSR_KERNEL(fsr_spin)(FsrU64 nanos, FsrU64 result) {
  FsrU64 start, clock;
  fsrTick(&clock, &start);
  FsrU64 now = start;
  while (now - start < nanos)
    now = fsrNanos();
  FsrSpin *to = (FsrSpin *)result;
  to->multiprocessor = fsrMultiprocessor();
  to->clock = clock;
  to->nanos = start;
  to->clocks = fsrClock() - clock;
  to->passed = now - start;
}

// What each multiprocessor's clock shows; a block of one thread on each.
// `turn` tells these stamps from those of other samples.
FSR_KERNEL(fsr_stamp)(FsrU64 to, FsrU64 slots, FsrU64 turn) {
  FsrU64 first = fsrClock();
  FsrU64 own = fsrMultiprocessor();
  if (own >= slots)
    return;
  FsrStamp stamp;
  fsrTick(&stamp.clock, &stamp.nanos);
  stamp.first = first;
  stamp.turn = turn;
  ((FsrStamp *)to)[own] = stamp;
}
