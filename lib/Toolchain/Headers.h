// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Headers in memory. The child that compiles LLM text cannot open files, so
// everything that the text includes, from the toolkit, is read here and handed
// over. NVRTC looks such a header up by the very spelling of the directive,
// with no folder of the including file; so directives inside toolkit headers
// are rewritten to the name from the include folder. Conditionals are ignored:
// more is handed over than needed, never less.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_TOOLCHAIN_HEADERS_H
#define FSR_LIB_TOOLCHAIN_HEADERS_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fsr {

/// A header as handed to NVRTC. The text lives as long as the library.
struct MemoryHeader {
  std::string name;
  llvm::StringRef text;
};

/// The headers of one toolkit; reads each file once. Safe to use from several
/// threads.
class HeaderLibrary {
public:
  /// More bytes than this are never handed over for one source.
  static constexpr size_t maxBytes = size_t(64) << 20;

  explicit HeaderLibrary(llvm::StringRef includeFolder);
  HeaderLibrary(const HeaderLibrary &) = delete;
  HeaderLibrary &operator=(const HeaderLibrary &) = delete;

  /// What `source` includes, transitively, in the order found. A name that is
  /// not in the toolkit is left out, and NVRTC says so.
  std::vector<MemoryHeader> collect(llvm::StringRef source);

private:
  struct Header {
    std::string text;
    std::vector<std::string> includes; ///< By canonical name.
  };
  /// The header of that canonical name, or null.
  const Header *get(llvm::StringRef canonical);
  /// The canonical name of what a directive in `folder` means; empty: none.
  std::string resolve(llvm::StringRef spelled, llvm::StringRef folder);
  std::string rewrite(llvm::StringRef text, llvm::StringRef folder,
                      std::vector<std::string> &includes);

  std::vector<std::string> roots;
  std::mutex mutex;
  llvm::StringMap<std::unique_ptr<Header>> headers; ///< Null: not there.
};

/// What stands before every source; lines are counted anew behind it.
llvm::StringRef preludeText();

/// Headers of a host's library that LLM text habitually includes: empty, or a
/// few names brought into `std`. Null where `name` is none.
const llvm::StringRef *hostHeader(llvm::StringRef name);

} // namespace fsr

#endif // FSR_LIB_TOOLCHAIN_HEADERS_H
