// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MemoryOps.h"
namespace fsr::ptx {
Decoded decodeAsyncCopy(Decoder &, Op &) { return Decoded::NotMine; }
} // namespace fsr::ptx
