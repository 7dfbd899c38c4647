// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Text of others for people: an LLM, a peer or whoever wrote a store chose each
// byte, and none of them may steer the terminal, break the line, or make text
// look like other text.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_PRINTABLE_H
#define FSR_SUPPORT_PRINTABLE_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace fsr {

/// `text` with `other` for each character that controls or formats: C0, C1,
/// separators of lines and paragraphs, directions of writing, invisible ones
/// but those that join letters. Characters of `keep` stay. What is no UTF-8 is
/// replaced by U+FFFD.
std::string withoutControls(llvm::StringRef text, char other,
                            llvm::StringRef keep = "");

/// With "?" for what controls or formats. A line end or tab becomes a blank, or
/// stays where `keepLines`.
std::string printable(llvm::StringRef text, bool keepLines = false);

/// An identifier made of `name` that C++, PTX and every file system take:
/// letters, digits and underscores, no digit first. `name` itself where it is
/// one; else what is left of it, with a piece of its hash.
std::string identifierOf(llvm::StringRef name);

} // namespace fsr

#endif // FSR_SUPPORT_PRINTABLE_H
