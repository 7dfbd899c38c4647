// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The commands that read. Both print on standard output; an error of kind
// BadInput is about what stood on the command line.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TOOLS_FSRSTORE_COMMANDS_H
#define FSR_TOOLS_FSRSTORE_COMMANDS_H

#include "fsr/Store/Inventory.h"

namespace fsr {

void listStore(const StoreHistory &history, llvm::raw_ostream &os);

struct ShowOptions {
  /// Candidates by name, "r1-s2". With `source`, the one whose source is
  /// printed; empty: the best record's.
  bool source = false;
  std::string sourceOf;
  std::vector<std::string> diff; ///< None or two.
  std::string trial;             ///< Whose trials are printed whole.
};

void printTrial(const Trial &trial, const TaskHistory &task,
                llvm::raw_ostream &os);

/// Shows the one task of `history` whose key begins with `prefix`.
llvm::Error showTask(const StoreHistory &history, llvm::StringRef prefix,
                     const ShowOptions &options, llvm::raw_ostream &os);

} // namespace fsr

#endif // FSR_TOOLS_FSRSTORE_COMMANDS_H
