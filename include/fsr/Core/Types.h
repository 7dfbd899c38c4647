// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Element types of buffers and scalars, the target of a compile, and floats as
// bit patterns: `llvm::json` prints infinities bare, so no float that decides
// anything travels as a JSON number.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_TYPES_H
#define FSR_CORE_TYPES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fsr {

enum class ElementType { I1, I8, I16, I32, I64, F16, BF16, F32, F64 };

/// "f32", "bf16", "i64"…; `index` is i64 in both ABIs of FSR.
llvm::StringRef nameOf(ElementType type);
std::optional<ElementType> parseElementType(llvm::StringRef name);
/// Bytes of one element in memory; an i1 takes one.
unsigned byteSize(ElementType type);
bool isFloat(ElementType type);
/// Unit round-off of a float type: 2^-24 for f32; 0 for integers.
double unitRoundoff(ElementType type);
/// How CUDA C++ spells the type: "float", "__half", "long long"…
llvm::StringRef cudaName(ElementType type);

/// True for letters, digits and underscores, no digit first, at most 255.
bool isCIdentifier(llvm::StringRef text);
/// A C identifier that device code can use as a name: no keyword of C++ or
/// CUDA, and none that begins with two underscores. Arguments, scratch buffers
/// and tunable parameters are called so.
bool isUsableName(llvm::StringRef text);

/// "sm_90" and "sm_90a" are one target for look-up.
struct Target {
  std::string chip; ///< As built: "sm_90a".

  /// Parses "sm_" digits and at most one of `a` and `f`.
  static llvm::Expected<Target> parse(llvm::StringRef text);
  /// The name that keys and stores use: "sm_90" for both.
  std::string family() const;
  /// 90 for "sm_90a", 100 for "sm_100".
  unsigned computeCapability() const;
};

/// 16 hex digits of the IEEE bits of `value`, and back.
std::string doubleToHex(double value);
std::optional<double> doubleFromHex(llvm::StringRef hex);

} // namespace fsr

#endif // FSR_CORE_TYPES_H
