// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Allocations, what the host does with them, and what is said of addresses.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/PTX/Memory.h"

#include "llvm/ADT/StringExtras.h"

#include "gtest/gtest.h"

using namespace fsr::ptx;

namespace {

constexpr uint64_t gibibyte = uint64_t(1) << 30;

std::string messageOf(llvm::Error error) { return toString(std::move(error)); }

TEST(MemoryTest, AllocationsAreApart) {
  Memory memory(gibibyte);
  uint64_t last = 0, lastBytes = 0;
  for (uint64_t bytes : {1, 255, 256, 4096, 1 << 20, 3}) {
    uint64_t address = cantFail(memory.allocate(bytes));
    EXPECT_EQ(address % 256, 0u);
    EXPECT_GE(address, last + lastBytes + (64 << 10));
    ASSERT_NE(memory.find(address), nullptr);
    EXPECT_EQ(memory.find(address)->bytes, bytes);
    EXPECT_EQ(memory.find(address + bytes - 1), memory.find(address));
    EXPECT_EQ(memory.find(address + bytes), nullptr);
    EXPECT_EQ(memory.find(address - 1), nullptr);
    last = address;
    lastBytes = bytes;
  }
  EXPECT_EQ(cantFail(memory.allocate(8, 1 << 16)) % (1 << 16), 0u);
}

TEST(MemoryTest, AddressesAreNotReused) {
  Memory memory(gibibyte);
  uint64_t first = cantFail(memory.allocate(4096));
  cantFail(memory.release(first));
  for (int i = 0; i < 1000; ++i) {
    uint64_t address = cantFail(memory.allocate(4096));
    EXPECT_GT(address, first);
    cantFail(memory.release(address));
  }
  EXPECT_EQ(memory.find(first), nullptr);
  EXPECT_EQ(memory.freeBytes(), gibibyte);
}

TEST(MemoryTest, AddressSpaceStartsOver) {
  // Each allocation takes as much again for its zone: the space is used up
  // after some, and the next ones find the gaps.
  Memory memory(~uint64_t(0) >> 1);
  uint64_t kept = cantFail(memory.allocate(4096));
  bool hasStartedOver = false;
  for (int i = 0; i < 3000 && !hasStartedOver; ++i) {
    uint64_t address = cantFail(memory.allocate(uint64_t(64) << 30));
    hasStartedOver = address < kept + (uint64_t(256) << 30) && i > 100;
    EXPECT_NE(address, kept);
    cantFail(memory.release(address));
  }
  EXPECT_TRUE(hasStartedOver);
  EXPECT_NE(memory.find(kept), nullptr);
}

TEST(MemoryTest, LimitsAndErrors) {
  Memory memory(1 << 20);
  uint64_t address = cantFail(memory.allocate(1 << 19));
  EXPECT_EQ(memory.freeBytes(), uint64_t(1) << 19);
  llvm::Expected<uint64_t> tooMuch = memory.allocate((1 << 19) + 1);
  ASSERT_FALSE(bool(tooMuch));
  EXPECT_EQ(messageOf(tooMuch.takeError()),
            "out of device memory: 524289 bytes wanted, 524288 of 1048576 "
            "free");
  llvm::Expected<uint64_t> none = memory.allocate(0);
  EXPECT_EQ(messageOf(none.takeError()), "an allocation of no bytes");
  EXPECT_NE(messageOf(memory.release(address + 4)), "");
  EXPECT_NE(messageOf(memory.release(0)), "");
  cantFail(memory.release(address));
  EXPECT_NE(messageOf(memory.release(address)), "");
  EXPECT_EQ(memory.freeBytes(), uint64_t(1) << 20);
}

TEST(MemoryTest, LargeAllocationsCostLittle) {
  Memory memory(64 * gibibyte);
  for (int i = 0; i < 16; ++i) {
    uint64_t address = cantFail(memory.allocate(gibibyte));
    uint32_t value = 7;
    cantFail(memory.write(address + gibibyte - 4, &value, 4));
    uint32_t back = 0;
    cantFail(memory.read(&back, address + gibibyte - 4, 4));
    EXPECT_EQ(back, 7u);
  }
}

TEST(MemoryTest, HostAccess) {
  Memory memory(gibibyte);
  uint64_t a = cantFail(memory.allocate(64)), b = cantFail(memory.allocate(64));
  uint32_t words[4] = {1, 2, 3, 4};
  cantFail(memory.write(a, words, sizeof(words)));
  cantFail(memory.copy(b + 8, a + 4, 24));
  uint32_t back[2] = {};
  cantFail(memory.read(back, b + 8, 8));
  EXPECT_EQ(back[0], 2u);
  EXPECT_EQ(back[1], 3u);
  // What was not written stays so on its way.
  Region *region = memory.find(b);
  EXPECT_EQ(region->state[8] & Written, Written);
  EXPECT_EQ(region->state[19] & Written, Written);
  EXPECT_EQ(region->state[20] & Written, 0);
  EXPECT_EQ(region->state[7] & Written, 0);

  cantFail(memory.fill(a, 0x01020304, 4, 16));
  cantFail(memory.read(back, a + 60, 4));
  EXPECT_EQ(back[0], 0x01020304u);
  cantFail(memory.fill(a, 0x0506, 2, 2));
  cantFail(memory.read(back, a, 4));
  EXPECT_EQ(back[0], 0x05060506u);
  cantFail(memory.fill(a + 1, 9, 1, 1));
  cantFail(memory.read(back, a, 4));
  EXPECT_EQ(back[0], 0x05060906u);

  cantFail(memory.setTainted(a, 8, true));
  EXPECT_EQ(memory.find(a)->state[7], Written | Tainted);
  EXPECT_EQ(memory.find(a)->state[8], Written);
  cantFail(memory.setTainted(a, 4, false));
  EXPECT_EQ(memory.find(a)->state[3], Written);
  cantFail(memory.setUninitialized(a, 4));
  EXPECT_EQ(memory.find(a)->state[3], 0);
  cantFail(memory.setConst(a, true));
  EXPECT_TRUE(memory.find(a)->isConst);

  EXPECT_EQ(messageOf(memory.write(a + 60, words, 8)),
            "a write of 8 bytes at 0x" + llvm::utohexstr(a + 60, true) +
                ": the allocation of 64 bytes has 4 left there");
  EXPECT_NE(messageOf(memory.read(back, a + 64, 4)), "");
  EXPECT_NE(messageOf(memory.copy(a, b, 65)), "");
  EXPECT_NE(messageOf(memory.fill(a, 0, 4, ~uint64_t(0) / 2)), "");
  EXPECT_NE(messageOf(memory.fill(a, 0, 3, 1)), "");
  EXPECT_NE(messageOf(memory.fill(a + 2, 0, 4, 1)), "");
  EXPECT_NE(messageOf(memory.setConst(0, true)), "");
}

TEST(MemoryTest, ViewsAreTheMemory) {
  Memory memory(gibibyte);
  uint64_t at = cantFail(memory.allocate(100));
  uint8_t *read = cantFail(memory.view(at + 10, 90, /*writes=*/false));
  const Region &region = *memory.find(at);
  EXPECT_EQ(region.state[10], 0);
  uint8_t *written = cantFail(memory.view(at + 10, 20, /*writes=*/true));
  EXPECT_EQ(read, written);
  EXPECT_EQ(region.state[9], 0);
  EXPECT_EQ(region.state[10], Written);
  EXPECT_EQ(region.state[29], Written);
  EXPECT_EQ(region.state[30], 0);
  written[0] = 77;
  uint8_t byte = 0;
  cantFail(memory.read(&byte, at + 10, 1));
  EXPECT_EQ(byte, 77);
  EXPECT_TRUE(
      llvm::StringRef(messageOf(memory.view(at + 10, 91, false).takeError()))
          .contains("has 90 left there"));
  EXPECT_TRUE(bool(memory.view(at, 100, false)));
  llvm::consumeError(memory.view(at - 1, 1, true).takeError());
}

TEST(MemoryTest, Describes) {
  Memory memory(gibibyte);
  uint64_t a = cantFail(memory.allocate(4096));
  uint64_t b = cantFail(memory.allocate(16, 256, "table"));
  EXPECT_EQ(memory.describe(a + 4096 + 40),
            "40 bytes past the end of an allocation of 4096 bytes");
  EXPECT_EQ(memory.describe(a + 4096),
            "the end of an allocation of 4096 bytes");
  EXPECT_EQ(memory.describe(a + 1), "1 byte into an allocation of 4096 bytes");
  EXPECT_EQ(memory.describe(b - 8), "8 bytes before `table` of 16 bytes");
  EXPECT_EQ(memory.describe(0), "null");
  EXPECT_EQ(memory.describe(16), "16 bytes from null");
  EXPECT_EQ(memory.describe(sharedWindow + 8),
            "8 bytes into the window of shared memory");
  EXPECT_EQ(memory.describe(a + (uint64_t(1) << 40)), "no allocation is near");
}

TEST(MemoryTest, MapsHostMemory) {
  Memory memory(gibibyte);
  std::vector<uint32_t> own(16, 5);
  cantFail(memory.mapHost(own.data(), 64));
  uint64_t address = reinterpret_cast<uintptr_t>(own.data());
  ASSERT_NE(memory.find(address + 60), nullptr);
  EXPECT_TRUE(memory.find(address)->isMapped);
  EXPECT_EQ(memory.find(address)->state[63], Written);
  uint32_t value = 9;
  cantFail(memory.write(address + 4, &value, 4));
  EXPECT_EQ(own[1], 9u);
  EXPECT_NE(messageOf(memory.mapHost(own.data() + 1, 8)), "");
  EXPECT_NE(messageOf(memory.release(address)), "");
  cantFail(memory.unmapHost(own.data()));
  EXPECT_EQ(memory.find(address), nullptr);
  EXPECT_NE(messageOf(memory.unmapHost(own.data())), "");
}

TEST(MemoryTest, LaunchesForgetCells) {
  Memory memory(gibibyte);
  Region *region = memory.find(cantFail(memory.allocate(4096)));
  unsigned before = 0;
  for (int i = 0; i < 200; ++i) {
    memory.beginLaunch();
    EXPECT_NE(memory.launchStamp(), before);
    before = memory.launchStamp();
    EXPECT_GE(before, 1u);
    EXPECT_LE(before, 15u);
    // No cell of an earlier launch carries this one's stamp.
    for (int word = 0; word < i; ++word)
      ASSERT_NE(region->writers[word] >> cell::launchShift & 15, before);
    region->writers[i] = uint64_t(before) << cell::launchShift;
    EXPECT_EQ(region->sectors[0], 0u);
    region->sectors[0] = 1;
  }
}

TEST(MemoryTest, SharedMemoryStartsAnew) {
  SharedMemory shared;
  uint32_t generation = 0;
  for (uint64_t bytes : {64, 1024, 48}) {
    shared.reset(bytes, /*owner=*/nullptr, /*rank=*/std::nullopt);
    Region &region = shared.region();
    EXPECT_EQ(region.bytes, bytes);
    EXPECT_NE(region.generation, generation);
    generation = region.generation;
    for (uint64_t i = 0; i < bytes; ++i)
      EXPECT_EQ(region.state[i], 0);
    region.state[0] = Written;
  }
}

TEST(MemoryTest, LocalMemoryGrows) {
  LocalMemory local;
  local.grow(16);
  local.data(3)[15] = 7;
  local.state(3)[15] = Written;
  local.grow(64);
  local.grow(8);
  EXPECT_EQ(local.size(), 64u);
  EXPECT_EQ(local.data(3)[15], 7);
  EXPECT_EQ(local.state(3)[15], Written);
  EXPECT_EQ(local.state(3)[16], 0);
}

} // namespace
