// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What orders accesses and what does not: barriers, warp synchronisation,
// fences and flags, in the patterns that kernels use and with one piece of each
// left out. All run under each schedule.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

#include "../../../lib/PTX/Ordering.h"

using namespace fsr::ptx;

namespace {

constexpr unsigned blocks = 6, threads = 64;

class OrderingTest : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    // Buffers of a word a thread at 0, 4096 and 8192; flags at 12288.
    words.assign(4096, 0);
    shape = {{blocks, 1, 1}, {threads, 1, 1}, {1, 1, 1}, 0, true};
    options.instructionBudget = 1 << 22;
  }

  /// `%rd1`: the thread's word of the first buffer; `%rd2` the flags; `%r1` the
  /// block, `%p1` whether this is thread 0, `%r2` the thread of the grid.
  static std::string grid(const std::string &body) {
    return kernel("mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %t, 0;\n"
                  "mad.lo.u32 %r2, %r1, 64, %t;\n"
                  "mul.wide.u32 %rd1, %r2, 4;\nadd.u64 %rd1, %rd1, %out;\n"
                  "add.u64 %rd2, %out, 12288;\nmov.u32 %r30, sm;\n"
                  "mul.lo.u32 %r31, %t, 4;\nadd.u32 %r31, %r31, %r30;\n" +
                      body + "\nret;",
                  ".shared .align 16 .b8 sm[1024];");
  }

  template <typename Look>
  void forSchedules(const std::string &ptx, Look look) {
    for (Schedule schedule :
         {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps})
      for (unsigned hostThreads : {1u, 3u}) {
        options.schedule = schedule;
        options.hostThreads = hostThreads;
        std::fill(words.begin(), words.end(), 0);
        LaunchResult result = run(ptx);
        SCOPED_TRACE(nameOf(schedule).str());
        look(result);
      }
  }
  void expectClean(const std::string &ptx, size_t remarks = 0) {
    forSchedules(ptx, [&](const LaunchResult &result) {
      EXPECT_TRUE(result.completed);
      for (const Finding &finding : result.findings)
        ADD_FAILURE() << finding.text();
      EXPECT_EQ(result.remarks.size(), remarks)
          << (result.remarks.empty() ? "" : result.remarks[0].text());
    });
  }
  /// Findings of these kinds and no others, under each schedule.
  void expect(const std::string &ptx, std::vector<FindingKind> kinds) {
    forSchedules(ptx, [&](const LaunchResult &result) {
      EXPECT_FALSE(result.findings.empty());
      for (const Finding &finding : result.findings)
        EXPECT_TRUE(llvm::is_contained(kinds, finding.kind)) << finding.text();
    });
  }
};

// Within a block. -------------------------------------------------------------

TEST_F(OrderingTest, Barriers) {
  auto ptx = [](const std::string &between) {
    return grid("st.shared.u32 [%r31], %t;\n" + between +
                "sub.u32 %r3, 63, %t;\nmad.lo.u32 %r3, %r3, 4, %r30;\n"
                "ld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd1], %r4;\n");
  };
  expectClean(ptx("bar.sync 0;\n"));
  expect(ptx(""), {FindingKind::SharedRace, FindingKind::Uninitialized});
  // A warp's own synchronisation does not order other warps.
  expect(ptx("bar.warp.sync -1;\n"),
         {FindingKind::SharedRace, FindingKind::Uninitialized});
}

TEST_F(OrderingTest, ReadsAreOrderedBeforeWrites) {
  auto ptx = [](const std::string &between) {
    return grid("st.shared.u32 [%r31], %t;\nbar.sync 0;\n"
                "ld.shared.u32 %r4, [%r30+8];\n" +
                between +
                "@%p1 st.shared.u32 [%r30+8], %r2;\n"
                "st.global.u32 [%rd1], %r4;\n");
  };
  expectClean(ptx("bar.sync 0;\n"));
  expect(ptx(""), {FindingKind::SharedRace});
}

TEST_F(OrderingTest, NamedBarriers) {
  // Warps 0 and 1 meet at barrier 1; a block of three warps.
  shape.block = {96, 1, 1};
  auto ptx = [](const std::string &number) {
    return grid("setp.gt.u32 %p2, %t, 63;\n@%p2 bra third;\n"
                "st.shared.u32 [%r31], %t;\nbar.sync 1, 64;\n"
                "xor.b32 %r3, %t, 32;\nmad.lo.u32 %r3, %r3, 4, %r30;\n"
                "ld.shared.u32 %r4, [%r3];\nbra end;\n"
                "third: bar.sync 2, 32;\nend: " +
                number);
  };
  expectClean(ptx(""));
  // The third warp was not there.
  expect(ptx("@!%p2 bra out;\nld.shared.u32 %r4, [%r30];\nout: bar.sync 0;"),
         {FindingKind::SharedRace, FindingKind::Uninitialized});
  // It is transitive: all meet after.
  expectClean(ptx("bar.sync 0;\n@!%p2 bra out;\nld.shared.u32 %r4, [%r30];\n"
                  "out:"));
}

TEST_F(OrderingTest, WarpSynchronisation) {
  auto ptx = [](const std::string &between) {
    return grid("st.shared.u32 [%r31], %t;\n" + between +
                "xor.b32 %r3, %t, 1;\nmad.lo.u32 %r3, %r3, 4, %r30;\n"
                "ld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd1], %r4;\n");
  };
  expectClean(ptx("bar.warp.sync -1;\n"));
  expect(ptx(""), {FindingKind::SharedRace, FindingKind::Uninitialized});
  // Only lanes of one mask meet.
  expectClean(ptx("and.b32 %r6, %t, 2;\nsetp.eq.u32 %p2, %r6, 0;\n"
                  "@%p2 bar.warp.sync 0x33333333;\n"
                  "@!%p2 bar.warp.sync 0xcccccccc;\n"));
  expect(ptx("and.b32 %r6, %t, 1;\nsetp.eq.u32 %p2, %r6, 0;\n"
             "@%p2 bar.warp.sync 0x55555555;\n"
             "@!%p2 bar.warp.sync 0xaaaaaaaa;\n"),
         {FindingKind::SharedRace, FindingKind::Uninitialized});
}

TEST_F(OrderingTest, HalvesOfAWordAreApart) {
  shape.grid = {1, 1, 1};
  std::string halves = "mul.lo.u32 %r3, %t, 2;\nadd.u32 %r3, %r3, %r30;\n"
                       "cvt.u16.u32 %h1, %t;\nst.shared.u16 [%r3], %h1;\n"
                       "ld.shared.u16 %h2, [%r3];\n"
                       "st.shared.u16 [%r3], %h2;\n";
  expectClean(grid(".reg .b16 %h<4>;\n" + halves));
  // An odd stride, so that a word is shared by two warps.
  expectClean(
      grid(".reg .b16 %h<4>;\nmul.lo.u32 %r3, %t, 2;\nadd.u32 %r3, %r3, 2;\n"
           "add.u32 %r3, %r3, %r30;\ncvt.u16.u32 %h1, %t;\n"
           "st.shared.u16 [%r3], %h1;\nld.shared.u16 %h2, [%r3];\n"
           "st.shared.u16 [%r3], %h2;\n"));
}

TEST_F(OrderingTest, SameValueIsARemark) {
  expectClean(grid("mov.u32 %r3, 7;\nst.global.u32 [%out], %r3;\n"), 1);
  expect(grid("st.global.u32 [%out], %r2;\n"), {FindingKind::GlobalRace});
  shape.grid = {1, 1, 1};
  expectClean(grid("mov.u32 %r3, 7;\nst.shared.u32 [%r30], %r3;\n"), 1);
  expect(grid("st.shared.u32 [%r30], %t;\n"), {FindingKind::SharedRace});
}

TEST_F(OrderingTest, StrongAccessesDoNotRace) {
  expectClean(grid("st.volatile.global.u32 [%rd2], %r2;\n"
                   "ld.volatile.global.u32 %r3, [%rd2];\n"
                   "red.global.add.u32 [%rd2], 1;\n"));
  expect(grid("st.volatile.global.u32 [%rd2], %r2;\n"
              "ld.global.u32 %r3, [%rd2];\n"),
         {FindingKind::GlobalRace, FindingKind::UnorderedMessage});
}

TEST_F(OrderingTest, BlocksAreNotOrdered) {
  // Each reads its neighbour's.
  expect(grid("st.global.u32 [%rd1], %r2;\nxor.b32 %r3, %r2, 64;\n"
              "mul.wide.u32 %rd3, %r3, 4;\n"
              "add.u64 %rd3, %rd3, %out;\nld.global.u32 %r4, [%rd3];\n"),
         {FindingKind::GlobalRace});
  // All read what one writes: whoever comes last is told.
  expect(grid("ld.global.u32 %r3, [%out];\nsetp.eq.u32 %p2, %r2, 70;\n"
              "@%p2 st.global.u32 [%out], %r3;\n"),
         {FindingKind::GlobalRace});
}

// Between blocks. -------------------------------------------------------------

/// Each block writes; the last one to count reads all.
std::string lastBlock(const std::string &beforeCount,
                      const std::string &afterCount,
                      const std::string &afterBarrier = "") {
  return "st.global.u32 [%rd1], %r2;\n" + beforeCount +
         "@!%p1 bra counted;\natom.global.add.u32 %r4, [%rd2], 1;\n" +
         afterCount +
         "st.shared.u32 [%r30+512], %r4;\ncounted: bar.sync 0;\n"
         "ld.shared.u32 %r4, [%r30+512];\nsetp.ne.u32 %p2, %r4, 5;\n"
         "@%p2 bra end;\n" +
         afterBarrier +
         "mul.wide.u32 %rd3, %t, 4;\nadd.u64 %rd3, %rd3, %out;\n"
         "mov.u32 %r6, 0;\nmov.u32 %r7, 0;\n"
         "more: ld.global.u32 %r5, [%rd3];\nadd.u32 %r6, %r6, %r5;\n"
         "add.u64 %rd3, %rd3, 256;\nadd.u32 %r7, %r7, 1;\n"
         "setp.lt.u32 %p3, %r7, 6;\n@%p3 bra more;\n"
         "mul.wide.u32 %rd4, %t, 4;\nadd.u64 %rd4, %rd4, %out;\n"
         "st.global.u32 [%rd4+8192], %r6;\n"
         "@%p1 st.global.u32 [%rd2], 0;\nend:";
}

TEST_F(OrderingTest, LastBlock) {
  const std::string fence = "@%p1 membar.gl;\n";
  expectClean(grid(lastBlock("bar.sync 0;\n" + fence, "membar.gl;\n")));
  EXPECT_EQ(words[2048 + 5], 6u * 5 + 64 * 15);
  // The counting thread alone releases and acquires.
  expectClean(grid(lastBlock("bar.sync 0;\n@%p1 fence.acq_rel.gpu;\n",
                             "fence.acq_rel.gpu;\n")));
  // Each thread makes its own fence, and the barrier comes after.
  expectClean(grid(lastBlock("membar.gl;\nbar.sync 0;\n", "membar.gl;\n")));
  // All readers make theirs.
  expectClean(
      grid(lastBlock("bar.sync 0;\n" + fence, "", "fence.acq_rel.gpu;\n")));
}

TEST_F(OrderingTest, LastBlockIncomplete) {
  const std::vector<FindingKind> kinds = {FindingKind::UnorderedMessage,
                                          FindingKind::GlobalRace};
  // No fence; a fence of the block alone; no barrier before the fence.
  expect(grid(lastBlock("bar.sync 0;\n", "membar.gl;\n")), kinds);
  expect(grid(lastBlock("bar.sync 0;\nmembar.cta;\n", "membar.gl;\n")), kinds);
  expect(grid(lastBlock("@%p1 membar.gl;\n", "membar.gl;\n")), kinds);
  // A fence before the data is none for it.
  expect(grid("membar.gl;\n" + lastBlock("bar.sync 0;\n", "membar.gl;\n")),
         kinds);
}

TEST_F(OrderingTest, LastBlockWithoutAcquireIsARemark) {
  expectClean(grid(lastBlock("bar.sync 0;\n@%p1 membar.gl;\n", "")), 1);
}

/// Thread 0 of each block waits for its predecessor, reads what it left, adds
/// its own and passes it on.
std::string chain(const std::string &wait, const std::string &afterWait,
                  const std::string &beforeFlag, const std::string &flag) {
  return "@!%p1 bra end;\nmul.wide.u32 %rd3, %r1, 4;\n"
         "add.u64 %rd4, %rd3, %out;\nadd.u64 %rd3, %rd3, %rd2;\n"
         "mov.u32 %r4, 0;\nsetp.eq.u32 %p2, %r1, 0;\n@%p2 bra first;\n"
         "wait: " +
         wait + "setp.eq.u32 %p3, %r5, 0;\n@%p3 bra wait;\n" + afterWait +
         "ld.global.u32 %r4, [%rd4+-4];\n"
         "first: add.u32 %r4, %r4, 3;\nst.global.u32 [%rd4], %r4;\n"
         "mov.u32 %r6, 1;\n" +
         beforeFlag + flag + "end:";
}
const std::string volatileWait = "ld.volatile.global.u32 %r5, [%rd3+-4];\n",
                  acquireWait = "ld.acquire.gpu.global.u32 %r5, [%rd3+-4];\n",
                  atomicWait = "atom.global.or.b32 %r5, [%rd3+-4], 0;\n",
                  volatileFlag = "st.volatile.global.u32 [%rd3], %r6;\n",
                  releaseFlag = "st.release.gpu.global.u32 [%rd3], %r6;\n",
                  atomicFlag = "atom.global.exch.b32 %r7, [%rd3], %r6;\n";

TEST_F(OrderingTest, Chains) {
  expectClean(
      grid(chain(volatileWait, "membar.gl;\n", "membar.gl;\n", volatileFlag)));
  EXPECT_EQ(words[5], 18u);
  expectClean(grid(chain(acquireWait, "", "", releaseFlag)));
  expectClean(grid(chain(acquireWait, "", "membar.gl;\n", volatileFlag)));
  expectClean(grid(chain(volatileWait, "membar.gl;\n", "", releaseFlag)));
  expectClean(
      grid(chain(atomicWait, "membar.gl;\n", "membar.gl;\n", atomicFlag)));
  expectClean(
      grid(chain("atom.acq_rel.gpu.global.or.b32 %r5, [%rd3+-4], 0;\n", "", "",
                 "red.release.gpu.global.add.u32 [%rd3], 1;\n")));
}

TEST_F(OrderingTest, ChainsIncomplete) {
  const std::vector<FindingKind> kinds = {FindingKind::UnorderedMessage};
  expect(grid(chain(volatileWait, "", "membar.gl;\n", volatileFlag)), kinds);
  expect(grid(chain(volatileWait, "membar.gl;\n", "", volatileFlag)), kinds);
  expect(grid(chain(acquireWait, "", "", volatileFlag)), kinds);
  expect(grid(chain(volatileWait, "", "", releaseFlag)), kinds);
  // Of too narrow a scope.
  expect(grid(chain("ld.acquire.cta.global.u32 %r5, [%rd3+-4];\n", "", "",
                    releaseFlag)),
         {FindingKind::UnorderedMessage, FindingKind::GlobalRace});
  expect(grid(chain(acquireWait, "", "",
                    "st.release.cta.global.u32 [%rd3], %r6;\n")),
         {FindingKind::UnorderedMessage, FindingKind::GlobalRace});
}

/// As cooperative groups make it: thread 0 counts with a release, waits with an
/// acquire, between two barriers of the block.
std::string gridSync(unsigned number, bool releases = true) {
  std::string n = std::to_string(number);
  return "bar.sync 0;\n@!%p1 bra met" + n + ";\natom.add." +
         (releases ? "release" : "relaxed") + ".gpu.global.u32 %r20, [%rd2+" +
         std::to_string(number * 4) + "], 1;\nspin" + n +
         ": ld.acquire.gpu.global.u32 %r20, [%rd2+" +
         std::to_string(number * 4) +
         "];\nsetp.ne.u32 %p9, %r20, 6;\n@%p9 bra spin" + n + ";\nmet" + n +
         ": bar.sync 0;\n";
}

TEST_F(OrderingTest, GridSync) {
  // Reverse the buffer across the grid, in place, between grid barriers.
  auto ptx = [](const std::string &first, const std::string &second,
                const std::string &third) {
    return grid("st.global.u32 [%rd1], %r2;\n" + first +
                "sub.u32 %r3, 383, %r2;\nmul.wide.u32 %rd3, %r3, 4;\n"
                "add.u64 %rd3, %rd3, %out;\nld.global.u32 %r4, [%rd3];\n" +
                second + "st.global.u32 [%rd1], %r4;\n" + third +
                "ld.global.u32 %r5, [%rd3];\nst.global.u32 [%rd1+4096], %r5;\n"
                "ld.global.u32 %r6, [%out+256];\n");
  };
  expectClean(ptx(gridSync(0), gridSync(1), gridSync(2)));
  EXPECT_EQ(words[1024 + 7], 7u);
  const std::vector<FindingKind> kinds = {FindingKind::UnorderedMessage,
                                          FindingKind::GlobalRace};
  expect(ptx("", gridSync(1), gridSync(2)), kinds);
  expect(ptx(gridSync(0), "", gridSync(2)), kinds);
  expect(ptx(gridSync(0), gridSync(1), ""), kinds);
  expect(ptx(gridSync(0, false), gridSync(1), gridSync(2)), kinds);
}

TEST_F(OrderingTest, FlagsInSharedMemory) {
  // Warp 1 waits for warp 0 by a flag.
  auto ptx = [](const std::string &beforeFlag, const std::string &afterWait) {
    return grid("st.volatile.shared.u32 [%r30+600], 0;\nbar.sync 0;\n"
                "setp.gt.u32 %p2, %t, 31;\n@%p2 bra second;\n"
                "st.shared.u32 [%r31], %t;\nbar.warp.sync -1;\n" +
                beforeFlag +
                "mov.u32 %r6, 1;\n@%p1 st.volatile.shared.u32 [%r30+600], "
                "%r6;\nbra end;\n"
                "second: ld.volatile.shared.u32 %r5, [%r30+600];\n"
                "setp.eq.u32 %p3, %r5, 0;\n@%p3 bra second;\n" +
                afterWait +
                "add.u32 %r3, %r31, -128;\nld.shared.u32 %r4, [%r3];\n"
                "st.global.u32 [%rd1], %r4;\nend:");
  };
  expectClean(ptx("membar.cta;\n", "membar.cta;\n"));
  expect(ptx("", "membar.cta;\n"), {FindingKind::SharedRace});
  expect(ptx("membar.cta;\n", ""), {FindingKind::SharedRace});
}

// Knowledge. ------------------------------------------------------------------

KnowledgePtr knowledge(std::vector<Knowledge::Entry> entries) {
  auto made = std::make_shared<Knowledge>();
  made->entries = std::move(entries);
  return made;
}

TEST(KnowledgeTest, JoinsRunsOfBlocks) {
  KnowledgePtr a = knowledge({{2, 5, 10, {}}, {8, 8, 3, {{0, 0, 7}}}});
  KnowledgePtr b = knowledge({{4, 8, 6, {}}, {9, 9, 6, {}}});
  KnowledgePtr both = join(a, b);
  EXPECT_EQ(join(a, nullptr), a);
  EXPECT_EQ(join(nullptr, b), b);
  EXPECT_EQ(join(a, a), a);
  struct {
    uint32_t block, tick;
    bool isKnown;
  } cases[] = {{1, 1, false}, {2, 10, true},  {5, 10, true}, {5, 11, false},
               {6, 6, true},  {6, 7, false},  {8, 6, true},  {8, 7, false},
               {9, 6, true},  {10, 1, false}, {7, 6, true}};
  for (const auto &one : cases)
    EXPECT_EQ(both->covers(one.block, 5, 5, one.tick), one.isKnown)
        << one.block << " " << one.tick;
  EXPECT_TRUE(both->covers(8, 0, 0, 7));
  EXPECT_FALSE(both->covers(8, 0, 1, 7));
  EXPECT_FALSE(both->covers(8, 0, 0, 8));
  // Blocks that are alike are one run, however they came together.
  KnowledgePtr chain;
  for (uint32_t block = 0; block < 100000; ++block)
    if (block < 100 || block % 1000 == 0)
      chain = join(chain, knowledge({{block, block, 4, {{0, 0, 5}}}}));
  EXPECT_EQ(chain->entries.size(), 1u + 99u);
}

TEST(KnowledgeTest, TooMuchIsEverything) {
  std::vector<Knowledge::Entry> many;
  for (uint32_t block = 0; block < 10000; ++block)
    many.push_back({block * 2, block * 2, block % 7 + 1, {}});
  KnowledgePtr joined =
      join(knowledge(std::move(many)), knowledge({{1, 1, 1, {}}}));
  EXPECT_TRUE(joined->knowsAll);
  EXPECT_TRUE(joined->covers(77777, 0, 1023, 99));
}

/// Lanes store a word each and read a neighbour's behind `between`.
TEST_F(OrderingTest, OnlySyncwarpOrdersLanes) {
  shape = {{1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0, false};
  auto withBetween = [](const std::string &between) {
    return grid("st.shared.u32 [%r31], %t;\n" + between +
                "\nxor.b32 %r3, %t, 1;\nmad.lo.u32 %r3, %r3, 4, %r30;\n"
                "ld.shared.u32 %r4, [%r3];\nst.global.u32 [%rd1], %r4;");
  };
  forSchedules(withBetween("bar.warp.sync -1;"), [&](LaunchResult &result) {
    EXPECT_TRUE(result.findings.empty());
    EXPECT_EQ(words[4], 5u);
  });
  for (const char *between :
       {"shfl.sync.bfly.b32 %r5, %t, 1, 31, -1;",
        "setp.lt.u32 %p2, %t, 9;\nvote.sync.ballot.b32 %r5, %p2, -1;",
        "match.any.sync.b32 %r5, %t, -1;", "redux.sync.add.u32 %r5, %t, -1;",
        "elect.sync %r5|%p2, -1;", "activemask.b32 %r5;"}) {
    SCOPED_TRACE(between);
    forSchedules(withBetween(between), [&](LaunchResult &result) {
      ASSERT_FALSE(result.findings.empty());
      for (const Finding &finding : result.findings)
        EXPECT_TRUE(finding.kind == FindingKind::SharedRace ||
                    finding.kind == FindingKind::Uninitialized)
            << finding.text();
      EXPECT_TRUE(llvm::any_of(result.findings, [](const Finding &finding) {
        return finding.kind == FindingKind::SharedRace;
      }));
    });
  }
}

} // namespace
