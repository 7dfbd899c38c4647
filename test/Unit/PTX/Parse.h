// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Parses short texts in tests: a head is put in front, so that line 1 of what a
// test writes is line 4 of the text.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_PTX_PARSE_H
#define FSR_TEST_UNIT_PTX_PARSE_H

#include "fsr/PTX/Module.h"

#include "gtest/gtest.h"

namespace fsr::ptx {

inline std::string withHead(llvm::StringRef text) {
  return (".version 8.6\n.target sm_90a\n.address_size 64\n" + text).str();
}

/// Null, and a failure with the message, where the text does not parse.
inline std::unique_ptr<Module> parse(llvm::StringRef text) {
  llvm::Expected<std::unique_ptr<Module>> module = parseModule(withHead(text));
  if (module)
    return std::move(*module);
  ADD_FAILURE() << llvm::toString(module.takeError());
  return nullptr;
}

/// The same for what stands in a kernel `k`; its line 1 is line 5 of the text.
inline std::unique_ptr<Module> parseBody(llvm::StringRef text) {
  return parse((".visible .entry k(.param .u64 p) {\n" + text + "}\n").str());
}

/// The message; empty, and a failure, where the text parses.
inline std::string errorOf(llvm::StringRef text) {
  llvm::Expected<std::unique_ptr<Module>> module = parseModule(withHead(text));
  if (!module)
    return llvm::toString(module.takeError());
  ADD_FAILURE() << "it parses";
  return {};
}

inline std::string errorOfBody(llvm::StringRef text) {
  return errorOf((".visible .entry k(.param .u64 p) {\n" + text + "}\n").str());
}

} // namespace fsr::ptx

#endif // FSR_TEST_UNIT_PTX_PARSE_H
