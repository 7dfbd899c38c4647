// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parameter structures of the helper kernels, for both sides of a launch:
// nvcc and the worker. 64-bit fields first, so that both lay them out alike.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_KERNELS_ABI_H
#define FSR_LIB_WORKER_KERNELS_ABI_H

typedef unsigned char FsrU8;
typedef unsigned short FsrU16;
typedef unsigned int FsrU32;
typedef unsigned long long FsrU64;
typedef long long FsrI64;

// In the order of fsr::ElementType.
enum FsrElement {
  FsrI1,
  FsrInt8,
  FsrInt16,
  FsrInt32,
  FsrInt64,
  FsrF16,
  FsrBF16,
  FsrF32,
  FsrF64
};

// In the order of the table in Helpers.cpp.
enum FsrFamily {
  FsrNormal,
  FsrUniform,
  FsrLogUniform,
  FsrBernoulli,
  FsrSigns,
  FsrIntegers,
  FsrEqual,
  FsrOneHot,
  FsrAlternating,
  FsrZeros,
  FsrDenormal,
  FsrIota,
  FsrTails,
  FsrSpike,
  FsrShiftedNormal,
  FsrShiftedUniform,
  FsrSines,
  FsrZipf,
  FsrSorted,
  FsrReversed,
  FsrGram,
  FsrSpecials,
  FsrPeaks,
  FsrMasked,
  FsrScaled,
  FsrDominated
};

enum FsrMode { FsrBits, FsrValue, FsrBound };

struct FsrFill {
  FsrU64 to, count, seed;
  FsrU64 other; // Seed of what `changed` and `kept` are of.
  FsrU64 row;   // Elements a row, for the families that have rows.
  FsrU64 turn;  // Which signs `perturb` has, from 0 to 7.
  double a, b, c;
  double perturb; // Each value is scaled by 1 + or - this.
  double changed; // Share of the elements that are as under another seed.
  double kept;    // Share of the elements that are not zero; 0: all.
  FsrU32 element, family;
};

struct FsrLayout {
  FsrI64 rank;
  FsrI64 size[8], stride[8];
};

struct FsrCompare {
  FsrU64 out, reference;
  FsrU64 rowMaximum; // A double a row; 0: none.
  FsrU64 noise;      // A double a row, added to what is allowed; 0: none.
  FsrU64 result;     // FsrDifference, cleared before.
  FsrU64 count, row, poison;
  double factor, tiny;
  double
      ceiling; // The original's values from here on are not compared; 0: all.
  FsrLayout layout;
  FsrU32 element, mode, hasPoison;
};

// What a dummy writes. Elements that the original leaves alone stay.
enum FsrRule {
  FsrPlayBits,     // `bits`.
  FsrPlayRight,    // The original's, where `limit` and `unit` let it.
  FsrPlayReversed, // The original's, from the end.
  FsrPlayOther,    // What stands in `other`.
  FsrPlayNormal,   // Normal numbers of `mean` and `deviation`.
  FsrPlayAdd       // What stands there, and the original's.
};

struct FsrPlay {
  FsrU64 out, right, other;
  FsrU64 count, poison, bits, seed;
  FsrU64 limit; // Elements from this one on stay.
  FsrU64 unit;  // Of every two runs of so many elements one stays; 0: none.
  double mean, deviation;
  FsrLayout layout, otherLayout;
  FsrU32 element, rule, hasPoison;
};

struct FsrDifference {
  FsrU64 failing, bitsDiffer, unwritten;
  FsrU64 first;   // Index of the first failing element; all ones: none.
  FsrU64 worst;   // Bits of the largest error over what is allowed.
  FsrU64 skipped; // Not compared, though the bits differ.
};

// Both results against true values, which are f64 at the same places.
struct FsrJudge {
  FsrU64 out, reference, truth;
  FsrU64 rowTruth; // A double a row: the largest finite |true value|.
  FsrU64 rowError; // A double a row: the original's largest error.
  FsrU64 result;   // FsrJudgement, cleared before.
  FsrU64 count, row, poison;
  double factor;    // Of rowTruth: what is allowed.
  double explained; // Of rowTruth: what rounding does to the original at most.
  double roundoff, tiny;
  double ceiling; // As in FsrCompare.
  FsrLayout layout;
  FsrU32 element, hasPoison;
};

struct FsrJudgement {
  FsrU64 compared, failing, outside, unknown;
  FsrU64 lost;  // The original has them to 10 bits, the candidate not to one.
  FsrU64 first; // Index of the first failing element; all ones: none.
  FsrU64 worst; // Bits of the largest error over what is allowed.
  // Of those that pass, likewise.
  FsrU64 worstPassing;
  FsrU64 summed;
  // Squares of errors, and of half a unit in the last place, over rowTruth.
  double ofOriginal, ofCandidate, ofUlp;
};

/// What a hold saw of its multiprocessor's clock: clocks and nanoseconds that
/// passed, and both at its start.
struct FsrSpin {
  FsrU64 clocks, passed, multiprocessor, clock, nanos;
};

/// One multiprocessor's clock as the stamp began, and then both clocks at a
/// step of the nanoseconds.
struct FsrStamp {
  FsrU64 turn, first, clock, nanos;
};

#endif // FSR_LIB_WORKER_KERNELS_ABI_H
