// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Decode.h for what belongs to this family.
//
//===----------------------------------------------------------------------===//

#include "Decode.h"

namespace fsr::ptx {

Decoded decodeAsync(Decoder &, Op &) { return Decoded::NotMine; }

} // namespace fsr::ptx
