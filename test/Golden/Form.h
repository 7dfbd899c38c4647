// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One form of an instruction, as a line of forms.txt names it, and the kernel
// that runs it once a thread. A line is PTX in which the first mention of an
// operand names its type:
//
//   add.rn.ftz.f32 d:f32, a:f32, b:f32
//   atom.shared.add.u32 d:b32, [s:b32], a:b32
//   add.cc.u32 d0:b32, a0:b32, b0:b32; addc.u32 d1:b32, a1:b32, b1:b32
//   sin.approx.f32 d:f32, a:angle ~a2^-20
//
// What begins with d is a result, with t a temporary, with g and s a cell of
// the thread in global and in shared memory (an input, and its bytes afterwards
// a result), with all other letters an input. `*4` makes an array in a cell.
// `~` names the bounds of an approximate form, of which a number has to keep
// one: u ulps, r relative, a absolute.
//
// Inputs are not stored anywhere: they follow from the line's text up to its
// first bound, so that a bound may be added to a form that is recorded.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_GOLDEN_FORM_H
#define FSR_TEST_GOLDEN_FORM_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fsr::golden {

/// Numbers that are the same on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// Below `limit`, which is not 0.
  unsigned below(unsigned limit) { return unsigned(next() % limit); }

private:
  uint64_t state;
};
uint64_t hashOf(llvm::StringRef bytes, uint64_t start = 0xcbf29ce484222325);

/// What an operand holds, and how its values are drawn.
enum class Draw : uint8_t {
  Bits,       ///< Integers: edges, small ones and any bits.
  Few,        ///< Of a few values, so that lanes meet.
  Shift,      ///< Counts up to and past the width.
  Half,       ///< A float of the layout that `float*` of the type say.
  SmallFloat, ///< -8 to 8 in whole numbers: sums of products are exact.
  Unit,       ///< Magnitudes of 1/4 to 2.
  Angle,      ///< -pi to pi.
  Odd,        ///< 0, 1, -1, infinities, NaNs.
  Every,      ///< The thread's number.
};

struct ValueType {
  llvm::StringRef name;
  unsigned bits;         ///< Of the register; 1: a predicate.
  unsigned part;         ///< Bits of each part of a packed type.
  unsigned exponent = 0; ///< Bits of the exponent of a part; 0: an integer.
  unsigned mantissa = 0;
  Draw draw = Draw::Bits;
};

struct Operand {
  enum class Kind : uint8_t { Result, Temporary, Global, Shared, Input } kind;
  std::string name;
  const ValueType *type;
  unsigned count = 1;
  unsigned bytes() const {
    return (type->bits < 8 ? 1 : type->bits / 8) * count;
  }
  bool isCell() const { return kind == Kind::Global || kind == Kind::Shared; }
  bool isInput() const { return kind == Kind::Input || isCell(); }
  bool isOutput() const { return kind == Kind::Result || isCell(); }
};

struct Bound {
  enum class Kind : uint8_t { Ulps, Relative, Absolute } kind;
  double value;
};

struct Form {
  std::string line; ///< As written.
  std::string seed; ///< What inputs follow from.
  std::string code; ///< Without the types.
  std::vector<Operand> operands;
  std::vector<Bound> bounds; ///< None: exact.
  unsigned threads = 256;
  bool isEvery = false; ///< 65536 threads, of which hashes are kept.

  /// Bytes of the results of all threads, operand by operand.
  size_t outputBytes() const;
  std::vector<uint8_t> inputs() const;
  /// A kernel of this name, of threads in blocks of 128, that takes the
  /// addresses of the inputs and of the results.
  std::string kernel(llvm::StringRef name) const;
  /// Of the results what is stored in a golden file.
  std::string kept(llvm::ArrayRef<uint8_t> output) const;
  size_t keptBytes() const;
  /// What a golden file holds of this form, a vector a line; of a form of
  /// hashes its name alone.
  std::string table(llvm::StringRef kept) const;
  /// The first vector whose kept result is none of those allowed, in words;
  /// empty where there is none.
  std::string difference(llvm::StringRef expected, llvm::StringRef got) const;

private:
  /// The operands of a thread, in words.
  std::string vector(llvm::ArrayRef<uint8_t> given, unsigned thread) const;
};

constexpr unsigned formBlock = 128;

llvm::Expected<Form> parseForm(llvm::StringRef line);
/// The lines that are neither empty nor comments.
llvm::Expected<std::vector<Form>> parseForms(llvm::StringRef text);

/// What stands before the kernels of a module.
extern const char *const moduleHeader;

} // namespace fsr::golden

#endif // FSR_TEST_GOLDEN_FORM_H
