// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The functions that helpers.inl leaves to its includer and that are the same on
// every host. Included inside a namespace, before helpers.inl; needs <cmath>.
//
//===----------------------------------------------------------------------===//

float fsrLog(float x) { return std::log(x); }
double fsrLog(double x) { return std::log(x); }
float fsrExp(float x) { return std::exp(x); }
double fsrExp(double x) { return std::exp(x); }
float fsrSqrt(float x) { return std::sqrt(x); }
double fsrSqrt(double x) { return std::sqrt(x); }
float fsrCosPi(float x) { return std::cos(float(M_PI) * x); }
double fsrCosPi(double x) { return std::cos(M_PI * x); }
