// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Elements as bits: load, store, and conversion of every float type to double
// and back, in plain integer arithmetic that nvcc and the host compile alike.
// The includer defines FSR_DEVICE, how a function's head begins.
//
//===----------------------------------------------------------------------===//

#include "abi.h"

union FsrFloatBits {
  float value;
  FsrU32 bits;
};
union FsrDoubleBits {
  double value;
  FsrU64 bits;
};

FSR_DEVICE FsrU32 fsrBits(float value) {
  FsrFloatBits u;
  u.value = value;
  return u.bits;
}
FSR_DEVICE FsrU64 fsrBits(double value) {
  FsrDoubleBits u;
  u.value = value;
  return u.bits;
}
FSR_DEVICE float fsrFloat(FsrU32 bits) {
  FsrFloatBits u;
  u.bits = bits;
  return u.value;
}
FSR_DEVICE double fsrDouble(FsrU64 bits) {
  FsrDoubleBits u;
  u.bits = bits;
  return u.value;
}

FSR_DEVICE FsrU32 fsrSize(FsrU32 element) {
  switch (element) {
  case FsrI1:
  case FsrInt8:
    return 1;
  case FsrInt16:
  case FsrF16:
  case FsrBF16:
    return 2;
  case FsrInt32:
  case FsrF32:
    return 4;
  default:
    return 8;
  }
}

FSR_DEVICE FsrU64 fsrLoad(FsrU64 base, FsrU64 index, FsrU32 size) {
  switch (size) {
  case 1:
    return ((const FsrU8 *)base)[index];
  case 2:
    return ((const FsrU16 *)base)[index];
  case 4:
    return ((const FsrU32 *)base)[index];
  default:
    return ((const FsrU64 *)base)[index];
  }
}

FSR_DEVICE void fsrStore(FsrU64 base, FsrU64 index, FsrU32 size, FsrU64 bits) {
  switch (size) {
  case 1:
    ((FsrU8 *)base)[index] = (FsrU8)bits;
    break;
  case 2:
    ((FsrU16 *)base)[index] = (FsrU16)bits;
    break;
  case 4:
    ((FsrU32 *)base)[index] = (FsrU32)bits;
    break;
  default:
    ((FsrU64 *)base)[index] = bits;
    break;
  }
}

// Both conversions round to nearest, ties to even.
FSR_DEVICE FsrU32 fsrToHalf(float value) {
  FsrU32 bits = fsrBits(value), sign = (bits >> 16) & 0x8000u;
  FsrU32 magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u)
    return sign | 0x7E00u;
  if (magnitude >= 0x477FF000u) // Rounds to 65536 or more.
    return sign | 0x7C00u;
  if (magnitude < 0x33000001u) // At most half of the smallest denormal.
    return sign;
  FsrU32 exponent = magnitude >> 23;
  FsrU32 mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
  FsrU32 shift = exponent >= 113 ? 13 : 126 - exponent;
  FsrU32 half = mantissa >> shift;
  FsrU32 rest = mantissa & ((1u << shift) - 1), middle = 1u << (shift - 1);
  if (rest > middle || (rest == middle && (half & 1)))
    ++half;
  // The implicit bit of a normal adds one to the exponent.
  return sign | (exponent >= 113 ? half + ((exponent - 113) << 10) : half);
}

FSR_DEVICE FsrU32 fsrToBFloat(float value) {
  FsrU32 bits = fsrBits(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
    return (bits >> 16) | 0x40u;
  return (bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16;
}

FSR_DEVICE double fsrToDouble(FsrU64 bits, FsrU32 element) {
  switch (element) {
  case FsrF16: {
    FsrU32 exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    FsrU32 sign = (FsrU32)(bits & 0x8000u) << 16;
    if (exponent == 31)
      return fsrFloat(sign | 0x7F800000u | (mantissa << 13));
    if (exponent == 0) {
      float value = (float)mantissa * 5.9604644775390625e-8f; // 2^-24
      return sign ? -value : value;
    }
    return fsrFloat(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }
  case FsrBF16:
    return fsrFloat((FsrU32)bits << 16);
  case FsrF32:
    return fsrFloat((FsrU32)bits);
  default:
    return fsrDouble(bits);
  }
}

// Towards zero; what does not fit becomes the nearest that does, a NaN zero.
FSR_DEVICE FsrI64 fsrToInteger(double value) {
  if (value >= 9223372036854775808.0)
    return 0x7FFFFFFFFFFFFFFFll;
  if (value <= -9223372036854775808.0)
    return -0x7FFFFFFFFFFFFFFFll - 1;
  return value == value ? (FsrI64)value : 0;
}

FSR_DEVICE FsrU64 fsrFromDouble(double value, FsrU32 element) {
  switch (element) {
  case FsrI1:
    return value != 0;
  case FsrInt8:
  case FsrInt16:
  case FsrInt32:
  case FsrInt64:
    return (FsrU64)fsrToInteger(value);
  case FsrF16:
    return fsrToHalf((float)value);
  case FsrBF16:
    return fsrToBFloat((float)value);
  case FsrF32:
    return fsrBits((float)value);
  default:
    return fsrBits(value);
  }
}

FSR_DEVICE bool fsrIsFloat(FsrU32 element) { return element >= FsrF16; }
FSR_DEVICE bool fsrIsNaN(double value) { return value != value; }
FSR_DEVICE bool fsrIsFinite(double value) {
  return (fsrBits(value) & 0x7FF0000000000000ull) != 0x7FF0000000000000ull;
}
