// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The template files and what fills them, shared by the request of the first
// round and the feedback of the later ones.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_SEARCH_TEMPLATES_H
#define FSR_LIB_SEARCH_TEMPLATES_H

#include "fsr/Search/Search.h"

#include "llvm/Support/JSON.h"

namespace fsr::search {

/// The texts of lib/Search/prompts, or the files of the same names in the
/// folder of the option `prompts`.
struct Templates {
  std::string request, strategies;       ///< Every round; the first one's.
  std::string feedback, laterStrategies; ///< From the second round on.
};

/// Errors (BadInput): a folder that replaces nothing, text that is not UTF-8.
llvm::Expected<Templates> readTemplates(llvm::StringRef folder);

/// The line of a slot; the list starts again behind its end. `file` is for the
/// error where there is no line at all.
llvm::Expected<std::string> strategyOf(llvm::StringRef strategies,
                                       llvm::StringRef file, unsigned slot);

std::string renderTemplate(llvm::StringRef text, llvm::json::Object data);

/// The request of one slot with this strategy.
std::string renderRequest(const Templates &templates, const KernelTask &task,
                          const DeviceDescription &device, unsigned slot,
                          llvm::StringRef strategy);

/// Symbols, facts and logs come from elsewhere and may hold any byte.
std::string clean(llvm::StringRef text);

std::string formatted(const char *format, double value);

} // namespace fsr::search

#endif // FSR_LIB_SEARCH_TEMPLATES_H
