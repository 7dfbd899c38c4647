// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a PTX text may do, as far as its instructions tell: whether the order of
// threads can show in its results, and whether blocks, warps of a block, or
// lanes of a warp can look at one another. Of the whole module: what may be
// called is not followed.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_PTXFACTS_H
#define FSR_LIB_WORKER_PTXFACTS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace fsr {

struct PtxFacts {
  /// An atomic sum of floats, or a compare-and-swap, by which compilers and
  /// people make one where the chip has none.
  bool addsFloatsAtomically = false;
  /// "`atom.global.add.u32`": the first instruction by which one block may
  /// learn of another; empty: there is none.
  std::string blocksTalk;
  /// The same of warps of one block.
  std::string warpsTalk;
  /// And of lanes of one warp.
  std::string lanesTalk;
};

llvm::Expected<PtxFacts> readPtxFacts(llvm::StringRef ptx);

/// Whether a text that cannot be read may declare a variable in device memory.
/// That a parameter points there declares none.
bool mayDeclareGlobal(llvm::StringRef ptx);

} // namespace fsr

#endif // FSR_LIB_WORKER_PTXFACTS_H
