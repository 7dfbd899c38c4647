// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one way to parse JSON that FSR did not write itself. LLVM's parser calls
// itself once a level of nesting, so a few kilobytes of '[' would end the
// process by a stack overflow; nesting is measured here before it is called.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_JSON_H
#define FSR_SUPPORT_JSON_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace fsr {

/// Far more than any format of FSR nests.
constexpr unsigned maxJsonDepth = 128;

/// Parses `text`. An error (kind Corrupt) says where: nested deeper than
/// `maxJsonDepth`, invalid UTF-8, no JSON.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text);

/// The text form that FSR writes: keys in order, two spaces a level, one line
/// feed at the end. The same value always gives the same bytes.
std::string printJson(const llvm::json::Value &value);

/// The text of `object` with a field "sha256" added: the SHA-256 of the text
/// that printJson gives without that field. It shows every later change of a
/// key or value; whoever makes the hash anew is not found out.
std::string printSealed(llvm::json::Object object);

/// Takes the field "sha256" out of `object`, as it was parsed from such a text.
/// An error (kind Corrupt): it is missing, or not the hash of the rest.
llvm::Error unseal(llvm::json::Object &object);

} // namespace fsr

#endif // FSR_SUPPORT_JSON_H
