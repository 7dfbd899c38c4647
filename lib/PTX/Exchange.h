// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Handlers of the instructions by which lanes exchange values, and of registers
// that change while a thread runs. Sources and results are in the order of the
// instruction's operands.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_EXCHANGE_H
#define FSR_LIB_PTX_EXCHANGE_H

#include "Program.h"

namespace fsr::ptx {

enum class ShuffleMode : uint8_t { Up, Down, Butterfly, Index };
enum class VoteMode : uint8_t { All, Any, Uniform, Ballot };
enum class Reduction : uint8_t {
  Add,
  MinU,
  MaxU,
  MinS,
  MaxS,
  And,
  Or,
  Xor,
  Float, ///< Minimum or maximum, as `Op::immediate` says.
};
/// Bits of `Op::immediate` for floats.
constexpr uint64_t reduceAbs = 1, reduceNan = 2, reduceMax = 4;

/// The lane that `lane` of a shuffle reads, from its operands b and c; its own
/// where what they name is out of range.
struct ShuffleSource {
  unsigned from = 0;
  bool isInRange = false;
};
inline ShuffleSource shuffleSource(ShuffleMode mode, unsigned lane, uint32_t b,
                                   uint32_t c) {
  int own = int(lane), offset = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  int most = (own & segment) | (clamp & ~segment), from = own;
  bool isIn = false;
  switch (mode) {
  case ShuffleMode::Up:
    from = own - offset;
    isIn = from >= most;
    break;
  case ShuffleMode::Down:
    from = own + offset;
    isIn = from <= most;
    break;
  case ShuffleMode::Butterfly:
    from = own ^ offset;
    isIn = from <= most;
    break;
  case ShuffleMode::Index:
    from = (own & segment) | (offset & ~segment & 31);
    isIn = from <= most;
    break;
  }
  return {unsigned(isIn ? from : own), isIn};
}

Handler shuffleHandler(ShuffleMode mode);
/// `Op::immediate` of 1 negates the source.
Handler voteHandler(VoteMode mode);
Handler matchHandler(bool isAll, bool isWide);
Handler reductionHandler(Reduction how);
Handler electHandler();
Handler activeMaskHandler();
/// Of "%clock64" and the like; null for registers that stay the same.
Handler changingRegister(llvm::StringRef name);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_EXCHANGE_H
