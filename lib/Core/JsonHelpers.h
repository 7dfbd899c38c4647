// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What llvm::json lacks for the structs of this library: triples, doubles that
// may be infinite, enums by name, and strings that may hold bytes of any kind.
// `llvm::json::ObjectMapper` finds the `fromJSON` of these thin wrappers by
// their namespace.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_CORE_JSONHELPERS_H
#define FSR_LIB_CORE_JSONHELPERS_H

#include "fsr/Core/Types.h"

#include "llvm/Support/JSON.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fsr::detail {

/// A string value; bytes that are not UTF-8 become U+FFFD, since LLM text and
/// tool output are not always UTF-8 and JSON must be.
inline llvm::json::Value text(llvm::StringRef value) {
  return llvm::json::fixUTF8(value);
}

inline llvm::json::Array texts(const std::vector<std::string> &values) {
  llvm::json::Array array;
  for (const std::string &value : values)
    array.push_back(text(value));
  return array;
}

/// Finite values as numbers; what a JSON number would lose (infinities, NaN,
/// the sign of zero) as 16 hex digits.
inline llvm::json::Value real(double value) {
  if (!std::isfinite(value) || (value == 0 && std::signbit(value)))
    return doubleToHex(value);
  return value;
}

inline llvm::json::Array reals(const std::vector<double> &values) {
  llvm::json::Array array;
  for (double value : values)
    array.push_back(real(value));
  return array;
}

struct Real {
  double value = 0;
};

inline bool fromJSON(const llvm::json::Value &json, Real &out,
                     llvm::json::Path path) {
  if (std::optional<double> number = json.getAsNumber()) {
    out.value = *number;
    return true;
  }
  if (std::optional<llvm::StringRef> hex = json.getAsString())
    if (std::optional<double> number = doubleFromHex(*hex)) {
      out.value = *number;
      return true;
    }
  path.report("expected number");
  return false;
}

/// Maps a mandatory or optional double through `Real`.
inline bool mapReal(llvm::json::ObjectMapper &mapper, llvm::StringLiteral name,
                    double &out) {
  Real real;
  if (!mapper.map(name, real))
    return false;
  out = real.value;
  return true;
}

inline bool mapOptionalReal(llvm::json::ObjectMapper &mapper,
                            llvm::StringLiteral name, double &out) {
  Real real{out};
  if (!mapper.mapOptional(name, real))
    return false;
  out = real.value;
  return true;
}

inline bool mapReals(llvm::json::ObjectMapper &mapper, llvm::StringLiteral name,
                     std::vector<double> &out) {
  std::vector<Real> reals;
  if (!mapper.map(name, reals))
    return false;
  out.clear();
  for (Real real : reals)
    out.push_back(real.value);
  return true;
}

inline llvm::json::Value triple(const std::array<int64_t, 3> &value) {
  return llvm::json::Array{value[0], value[1], value[2]};
}

/// Three integers, each at least 1.
struct Triple {
  std::array<int64_t, 3> value{1, 1, 1};
};

inline bool fromJSON(const llvm::json::Value &json, Triple &out,
                     llvm::json::Path path) {
  const llvm::json::Array *array = json.getAsArray();
  if (!array || array->size() != 3) {
    path.report("expected array of three integers");
    return false;
  }
  for (size_t i = 0; i < 3; ++i) {
    if (!llvm::json::fromJSON((*array)[i], out.value[i], path.index(i)))
      return false;
    if (out.value[i] < 1) {
      path.index(i).report("expected integer of at least 1");
      return false;
    }
  }
  return true;
}

inline bool mapTriple(llvm::json::ObjectMapper &mapper,
                      llvm::StringLiteral name, std::array<int64_t, 3> &out) {
  Triple triple;
  if (!mapper.map(name, triple))
    return false;
  out = triple.value;
  return true;
}

/// An integer of at least 0.
struct Natural {
  int64_t value = 0;
};

inline bool fromJSON(const llvm::json::Value &json, Natural &out,
                     llvm::json::Path path) {
  std::optional<int64_t> number = json.getAsInteger();
  if (!number || *number < 0) {
    path.report("expected integer of at least 0");
    return false;
  }
  out.value = *number;
  return true;
}

inline bool mapNatural(llvm::json::ObjectMapper &mapper,
                       llvm::StringLiteral name, int64_t &out) {
  Natural natural;
  if (!mapper.map(name, natural))
    return false;
  out = natural.value;
  return true;
}

inline bool mapOptionalNatural(llvm::json::ObjectMapper &mapper,
                               llvm::StringLiteral name, int64_t &out) {
  Natural natural{out};
  if (!mapper.mapOptional(name, natural))
    return false;
  out = natural.value;
  return true;
}

/// Refuses any version but `Version` of an object that carries
/// "format_version".
template <int64_t Version>
bool mapVersion(llvm::json::ObjectMapper &mapper, llvm::json::Path path) {
  static_assert(Version == 1 || Version == 2, "the messages name the version");
  int64_t version = 0;
  if (!mapper.map("format_version", version))
    return false;
  if (version == Version)
    return true;
  path.field("format_version")
      .report(Version == 1 ? llvm::StringLiteral("expected format version 1")
                           : llvm::StringLiteral("expected format version 2"));
  return false;
}

/// Refuses names of tunable parameters that device code cannot use, in the
/// object `json[field]`. A path keeps references to the names on it, so they
/// are taken from the JSON, which outlives the error, and not from a copy.
inline bool checkParameterNames(const llvm::json::Value &json,
                                llvm::StringLiteral field,
                                llvm::json::Path path) {
  const llvm::json::Object *object = json.getAsObject()->getObject(field);
  if (!object)
    return true;
  std::optional<llvm::StringRef> bad;
  for (const auto &entry : *object) {
    llvm::StringRef name = entry.first;
    // The least one, since the order of an object's keys is not fixed.
    if (!isUsableName(name) && (!bad || name < *bad))
      bad = name;
  }
  if (bad)
    path.field(field).field(*bad).report(
        "expected a C identifier that is no keyword");
  return !bad;
}

inline bool isSha256(llvm::StringRef text) {
  return text.size() == 64 &&
         text.find_first_not_of("0123456789abcdef") == llvm::StringRef::npos;
}

} // namespace fsr::detail

#endif // FSR_LIB_CORE_JSONHELPERS_H
