// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Digests against published ones, and borders of fields.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Hash.h"

#include "gtest/gtest.h"

using namespace fsr;

TEST(Hash, KnownDigests) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb924"
                        "27ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223"
                           "b00361a396177a9cb410ff61f20015ad");
}

TEST(Hash, ZeroBytesCount) {
  EXPECT_NE(sha256(llvm::StringRef("a\0b", 3)), sha256("a"));
}

TEST(FieldHasher, BordersCount) {
  EXPECT_NE(FieldHasher().add("ab").add("c").digest(),
            FieldHasher().add("a").add("bc").digest());
  EXPECT_NE(FieldHasher().add("a").digest(),
            FieldHasher().add("a").add("").digest());
  EXPECT_NE(FieldHasher().add(int64_t(1)).add(int64_t(23)).digest(),
            FieldHasher().add(int64_t(12)).add(int64_t(3)).digest());
}

// Keys of stores on disk depend on it.
TEST(FieldHasher, StaysAsItIs) {
  EXPECT_EQ(
      FieldHasher().add("ab").add(int64_t(-7)).digest(),
      sha256(llvm::StringRef("\2\0\0\0\0\0\0\0ab\2\0\0\0\0\0\0\0-7", 20)));
}

TEST(Hash, ShortHash) {
  EXPECT_EQ(shortHash("0123456789abcdef"), "0123456789ab");
  EXPECT_EQ(shortHash("01"), "01");
}
