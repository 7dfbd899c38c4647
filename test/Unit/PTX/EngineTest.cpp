// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Warps on their way: lanes that part and meet, registers that nothing wrote,
// taint, what is counted.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

namespace fsr::ptx {
namespace {

class EngineTest : public KernelTest {};

TEST_F(EngineTest, LanesStoreTheirNumber) {
  LaunchResult result =
      runClean(kernel("add.u32 %r1, %t, 5;\n" + store("%r1") + "exit;"));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i + 5);
  EXPECT_EQ(result.counters.warpInstructions, 7u);
  EXPECT_EQ(result.counters.laneInstructions, 7u * 32);
  EXPECT_TRUE(result.proof.holds) << result.proof.broken;
}

TEST_F(EngineTest, LanesPartAndMeet) {
  LaunchResult result = runClean(kernel(R"(
    and.b32 %r1, %t, 1;
    setp.eq.u32 %p1, %r1, 0;
    @%p1 bra EVEN;
    add.u32 %r2, %t, 100;
    bra.uni JOIN;
  EVEN:
    add.u32 %r2, %t, 200;
  JOIN:
  )" + store("%r2") + "exit;"));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i + (i % 2 ? 100 : 200));
  EXPECT_EQ(result.counters.divergentBranches, 1u);
  // Together again: the store and all behind the label once for the warp.
  EXPECT_EQ(result.counters.warpInstructions, 2u + 3 + 2 + 1 + 3 + 1);
}

TEST_F(EngineTest, LoopsOfDifferentLength) {
  runClean(kernel(R"(
    mov.u32 %r1, 0;
    mov.u32 %r2, 0;
  LOOP:
    add.u32 %r2, %r2, %r1;
    add.u32 %r1, %r1, 1;
    setp.le.u32 %p1, %r1, %t;
    @%p1 bra LOOP;
  )" + store("%r2") +
                  "ret;"));
  for (unsigned i = 0; i < 32; ++i)
    EXPECT_EQ(words[i], i * (i + 1) / 2);
}

} // namespace
} // namespace fsr::ptx
