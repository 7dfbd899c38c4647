// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// SHA-256, the one hash by which FSR names kernels, sources, images and files.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_HASH_H
#define FSR_SUPPORT_HASH_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <string>

namespace fsr {

/// 64 lower-case hex digits.
std::string sha256(llvm::StringRef bytes);

/// Hashes a list of fields so that their borders count: {"ab", "c"} and
/// {"a", "bc"} differ. Every field is preceded by its length.
class FieldHasher {
public:
  FieldHasher &add(llvm::StringRef field);
  FieldHasher &add(int64_t number);
  std::string digest() const;

private:
  std::string buffer;
};

/// The part of a digest that stands in names a person reads: its first 12
/// digits.
llvm::StringRef shortHash(llvm::StringRef digest);

} // namespace fsr

#endif // FSR_SUPPORT_HASH_H
