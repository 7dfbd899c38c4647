// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Text of others, made fit for a terminal and a log: symbol names, what an LLM
// wrote, what a child said. Nothing of it can steer a terminal or turn the
// order of what is read around.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_PRINTABLE_H
#define FSR_SUPPORT_PRINTABLE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace fsr {

/// `text` as valid UTF-8 without control characters, nor those that change the
/// direction of writing: what an LLM wrote must not steer the terminal. A line
/// end or tab becomes a blank, or stays where `keepLines`.
std::string printable(llvm::StringRef text, bool keepLines = false);

/// An identifier made of `name` that C++, PTX and every file system take:
/// letters, digits and underscores, no digit first. `name` itself where it is
/// one; else what is left of it, with a piece of its hash.
std::string identifierOf(llvm::StringRef name);

} // namespace fsr

#endif // FSR_SUPPORT_PRINTABLE_H
