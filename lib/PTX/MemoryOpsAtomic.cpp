// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "MemoryOps.h"
namespace fsr::ptx {
Decoded decodeAtomic(Decoder &decoder, Op &) { return decoder.fail("not yet"); }
} // namespace fsr::ptx
