// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A field is its length in bytes, eight of them, little endian, then itself. A
// number is a field of its decimal digits.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Hash.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"

using namespace fsr;

std::string fsr::sha256(llvm::StringRef bytes) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes)),
                     /*LowerCase=*/true);
}

FieldHasher &FieldHasher::add(llvm::StringRef field) {
  char length[8];
  llvm::support::endian::write64le(length, field.size());
  buffer.append(length, sizeof length);
  buffer.append(field.data(), field.size());
  return *this;
}

FieldHasher &FieldHasher::add(int64_t number) {
  return add(llvm::StringRef(std::to_string(number)));
}

std::string FieldHasher::digest() const { return sha256(buffer); }

llvm::StringRef fsr::shortHash(llvm::StringRef digest) {
  return digest.take_front(12);
}
