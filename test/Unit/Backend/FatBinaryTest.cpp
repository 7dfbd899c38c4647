// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX out of fat binaries: which entry is taken, LZ4, and containers that lie.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/VirtualBackend.h"

#include "llvm/Support/Endian.h"
#include "gtest/gtest.h"

namespace fsr {
namespace {

void put(std::string &to, uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    to += char(value >> (8 * i));
}

std::string entry(unsigned kind, unsigned arch, llvm::StringRef payload,
                  uint64_t flags = 0, uint64_t unpacked = 0) {
  std::string made;
  put(made, kind, 2);
  put(made, 0x101, 2);
  put(made, 64, 4);
  size_t padded = (payload.size() + 7) / 8 * 8;
  put(made, padded, 8);
  put(made, flags ? payload.size() : 0, 4);
  put(made, 0, 8);
  put(made, arch, 4);
  put(made, 0, 8);
  put(made, flags, 8);
  put(made, 0, 8);
  put(made, unpacked, 8);
  made += payload;
  made.resize(64 + padded);
  return made;
}

std::string container(llvm::StringRef entries) {
  std::string made;
  put(made, 0xBA55ED50, 4);
  put(made, 1, 2);
  put(made, 16, 2);
  put(made, entries.size(), 8);
  return made + entries.str();
}

std::string error(llvm::StringRef image) {
  auto found = findPtx(image, "sm_90");
  return found ? "none" : toString(found.takeError());
}

TEST(FatBinary, TextIsTakenAsItIs) {
  EXPECT_EQ(cantFail(findPtx(".version 8.0\n", "sm_90")), ".version 8.0\n");
  EXPECT_EQ(cantFail(findPtx(llvm::StringRef(".version\0\0", 10), "sm_90")),
            ".version");
}

TEST(FatBinary, TheNewestThatTheChipTakes) {
  std::string image = container(entry(2, 90,
                                      "\x7f"
                                      "ELF") +
                                entry(1, 80, "old") + entry(1, 90, "mine") +
                                entry(1, 100, "new"));
  EXPECT_EQ(cantFail(findPtx(image, "sm_90")), "mine");
  EXPECT_EQ(cantFail(findPtx(image, "sm_80")), "old");
  EXPECT_EQ(cantFail(findPtx(image, "sm_100")), "new");
}

TEST(FatBinary, NoPtxIsAnError) {
  EXPECT_EQ(error("\x7f"
                  "ELF and more"),
            "the image is a cubin; the virtual device runs PTX");
  EXPECT_EQ(error(container(entry(2, 90,
                                  "\x7f"
                                  "ELF"))),
            "the fat binary holds no PTX, which is what the virtual device "
            "runs");
  EXPECT_EQ(error(container(entry(1, 100, "new"))),
            "the fat binary holds no PTX that a sm_90 takes, only for another "
            "chip");
}

TEST(FatBinary, Lz4) {
  // "abcd", then 12 bytes from 4 back, then 6 letters.
  std::string packed = std::string("\x48") + "abcd" + std::string("\4\0", 2) +
                       std::string("\x60") + "vwxyz.";
  std::string text = "abcdabcdabcdabcdvwxyz.";
  EXPECT_EQ(cantFail(findPtx(
                container(entry(1, 90, packed, 0x2011, text.size())), "sm_90")),
            text);
  // More, or less, than it says; an offset before the start.
  for (uint64_t wrong : {21, 23})
    EXPECT_NE(error(container(entry(1, 90, packed, 0x2011, wrong)))
                  .find("a broken fat binary"),
              std::string::npos);
  packed[5] = 5;
  EXPECT_NE(error(container(entry(1, 90, packed, 0x2011, text.size())))
                .find("does not unpack"),
            std::string::npos);
}

TEST(FatBinary, Zstd) {
  // One raw block of four bytes.
  std::string packed("\x28\xb5\x2f\xfd\x20\x04\x21\x00\x00"
                     "text",
                     13);
  EXPECT_EQ(
      cantFail(findPtx(container(entry(1, 90, packed, 0x8011, 4)), "sm_90")),
      "text");
  EXPECT_NE(
      error(container(entry(1, 90, packed, 0x8011, 5))).find("does not unpack"),
      std::string::npos);
}

TEST(FatBinary, ContainersThatLie) {
  std::string good = container(entry(1, 90, "text", 0, 0));
  EXPECT_EQ(error(good), "none");
  for (size_t size = 16; size < good.size(); ++size)
    EXPECT_NE(error(llvm::StringRef(good).take_front(size)).find("broken"),
              std::string::npos)
        << size;
  for (size_t at : {16 + 4, 16 + 8, 16 + 15}) {
    std::string bad = good;
    bad[at] = char(0xff);
    EXPECT_NE(error(bad).find("broken"), std::string::npos) << at;
  }
}

} // namespace
} // namespace fsr
