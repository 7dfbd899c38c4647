// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The handlers of a family of floating-point instructions, twice: in namespace
// base for any CPU, and in v3 for one with AVX2, FMA and F16C; elsewhere v3 is
// base. FSR_PTX_FAMILY names the file of the family, which sees FloatMath.inl.
//
//===----------------------------------------------------------------------===//

namespace base {
#define FSR_PTX_WIDE 0
#include "FloatMath.inl"
// Needs the one above.
#include FSR_PTX_FAMILY
#undef FSR_PTX_WIDE
} // namespace base

#if defined(__x86_64__)
#pragma clang attribute push(                                                  \
    __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt"))),                   \
    apply_to = function)
namespace v3 {
#define FSR_PTX_WIDE 1
#include "FloatMath.inl"
// Needs the one above.
#include FSR_PTX_FAMILY
#undef FSR_PTX_WIDE
} // namespace v3
#pragma clang attribute pop
#else
namespace v3 = base;
#endif
