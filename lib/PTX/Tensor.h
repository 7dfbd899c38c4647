// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Products of small matrices that a warp holds: what the parts of this family
// share. The fragments of `mma` lie in registers as PTX documents; those of
// `wmma`, which PTX leaves open, are the matrix in the order of its rows:
// register by register, lane by lane.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_TENSOR_H
#define FSR_LIB_PTX_TENSOR_H

#include "Decode.h"
#include "Warp.h"

namespace fsr::ptx {

struct MatrixShape {
  unsigned m = 0, n = 0, k = 0;
  bool is(unsigned m_, unsigned n_, unsigned k_) const {
    return m == m_ && n == n_ && k == k_;
  }
};
/// "m16n8k16"
std::optional<MatrixShape> parseMatrixShape(llvm::StringRef modifier);

/// What `Op::info` of a product points to.
struct MultiplyInfo {
  bool isSignedA = false, isSignedB = false, saturates = false;
  bool halfC = false, halfD = false; ///< Accumulators of f16.
  /// Values of the 8-bit floats.
  const float *eighthsA = nullptr, *eighthsB = nullptr;
  unsigned registersA = 0, registersB = 0, registersC = 0;
};

/// All lanes of the warp have to take part; reported where they do not.
bool allTakePart(Warp &warp, const Op &op, LaneMask active);

/// Sets `op` up to run once all lanes of the warp have come: `mask` follows the
/// sources.
void setCollective(Decoder &decoder, Op &op, llvm::ArrayRef<Slot> results,
                   llvm::ArrayRef<Slot> sources, Handler run);
/// The slots of `operand`, a vector of `count` registers of `type` or, where
/// `count` is 1, also one register. False: `fail` was called.
bool fragmentSlots(Decoder &decoder, const Operand &operand, Type type,
                   unsigned count, bool isResult,
                   llvm::SmallVectorImpl<Slot> &to);

/// Null: no such product. `type` is that of the factors, S8 for all bytes and
/// E4M3 for all 8-bit floats. `wide`: for CPUs that `hasWideVectors` says.
Handler mmaHandler(Type type, const MatrixShape &shape, bool wide);
Handler wmmaHandler(Type type, const MatrixShape &shape, bool wide);

Decoded decodeMma(Decoder &decoder, Op &op);
Decoded decodeWmma(Decoder &decoder, Op &op);
Decoded decodeMatrixMove(Decoder &decoder, Op &op);

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_TENSOR_H
