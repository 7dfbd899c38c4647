// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The handlers of products, for each set of CPU features.
//
//===----------------------------------------------------------------------===//

#include "Float.h"
#include "Tensor.h"

#pragma clang fp contract(off)

namespace fsr::ptx {

namespace base {
#define FSR_PTX_WIDE 0
#include "FloatMath.inl"
// Needs the one above.
#include "TensorMultiply.inl"
#undef FSR_PTX_WIDE
} // namespace base

#if defined(__x86_64__) && defined(__clang__)
#pragma clang attribute push(                                                  \
    __attribute__((target("avx2,fma,f16c,bmi,bmi2,lzcnt"))),                   \
    apply_to = function)
namespace v3 {
#define FSR_PTX_WIDE 1
#include "FloatMath.inl"
// Needs the one above.
#include "TensorMultiply.inl"
#undef FSR_PTX_WIDE
} // namespace v3
#pragma clang attribute pop
#else
namespace v3 = base;
#endif

Handler mmaHandler(Type type, const MatrixShape &shape, bool wide) {
  return wide ? v3::mmaHandler(type, shape) : base::mmaHandler(type, shape);
}

Handler wmmaHandler(Type type, const MatrixShape &shape, bool wide) {
  return wide ? v3::wmmaHandler(type, shape) : base::wmmaHandler(type, shape);
}

} // namespace fsr::ptx
