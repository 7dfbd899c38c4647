// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Clusters of several blocks: who they are, how they reach one another's shared
// memory, what orders them, and what they may not do.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

#include "llvm/ADT/STLExtras.h"

namespace fsr::ptx {
namespace {

const std::string sync = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";

class ClusterTest : public KernelTest {
protected:
  void SetUp() override {
    KernelTest::SetUp();
    shape.grid = shape.cluster = {2, 1, 1};
  }

  /// %r1 an mbarrier, %r4 the thread's word in shared memory; %r13 and %r14 the
  /// same of the other block; %r10 the rank, %r11 the other's, %r16 the
  /// thread's number in the grid; %p1: the first thread, %p4: block 0.
  static std::string pair(const std::string &body) {
    return kernel(
        ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 data[1024];\n"
        "mov.u32 %r1, bar;\nmov.u32 %r2, data;\n"
        "mov.u32 %r10, %cluster_ctarank;\nxor.b32 %r11, %r10, 1;\n"
        "mapa.shared::cluster.u32 %r12, %r2, %r11;\n"
        "mapa.shared::cluster.u32 %r13, %r1, %r11;\n"
        "setp.eq.u32 %p1, %t, 0;\nsetp.eq.u32 %p4, %r10, 0;\n"
        "shl.b32 %r3, %t, 2;\nadd.u32 %r4, %r2, %r3;\nadd.u32 %r14, %r12, "
        "%r3;\n"
        "mov.u32 %r15, %ctaid.x;\nmad.lo.u32 %r16, %r15, 32, %t;\n" +
        body + "ret;");
  }
  /// An mbarrier for `count` arrivals in each block, which all may use.
  static std::string make(const std::string &count) {
    return "@%p1 mbarrier.init.shared::cta.b64 [%r1], " + count +
           ";\nfence.mbarrier_init.release.cluster;\n"
           "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n";
  }
  static std::string wait(const std::string &parity) {
    return "w" + parity +
           ":\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], " + parity +
           ";\n@!%p2 bra w" + parity + ";\n";
  }
  static std::string save(const std::string &name) {
    return "mul.wide.u32 %rd39, %r16, 4;\nadd.u64 %rd39, %rd39, %out;\n"
           "st.global.u32 [%rd39], " +
           name + ";\n";
  }

  void everySchedule(llvm::function_ref<void()> run) {
    for (Schedule schedule :
         {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps})
      for (uint64_t seed = 1; seed < 5; ++seed) {
        SCOPED_TRACE(nameOf(schedule).str() + " " + std::to_string(seed));
        options.schedule = schedule;
        options.seed = seed;
        run();
      }
    options = LaunchOptions();
  }
  /// Clean under each schedule, and word i is `wanted(i)`.
  void expectWords(const std::string &text,
                   llvm::function_ref<uint32_t(unsigned)> wanted) {
    std::vector<uint32_t> before = words;
    everySchedule([&] {
      words = before;
      runClean(text);
      for (unsigned i = 0; i < words.size(); ++i)
        EXPECT_EQ(words[i], wanted(i)) << i;
    });
  }
  /// Some finding of that kind (or, where it depends on the schedule, of the
  /// other one) under each schedule.
  void expectFault(const std::string &text, FindingKind kind,
                   std::optional<FindingKind> other = std::nullopt) {
    std::vector<uint32_t> before = words;
    everySchedule([&] {
      words = before;
      LaunchResult result = run(text);
      EXPECT_TRUE(llvm::any_of(result.findings,
                               [&](const Finding &finding) {
                                 return finding.kind == kind ||
                                        finding.kind == other;
                               }))
          << nameOf(kind).str() << " is not found";
      for (const Finding &finding : result.findings)
        last = finding.text();
    });
  }
  std::string message(const std::string &text) {
    llvm::Expected<LaunchResult> result = tryRun(text);
    return result ? std::string() : toString(result.takeError());
  }
  std::string last;
};

TEST_F(ClusterTest, WhoTheyAre) {
  shape.grid = {4, 4, 1};
  shape.cluster = {2, 2, 1};
  shape.block = {1, 1, 1};
  std::string body = "mov.u32 %r1, 0;\n";
  unsigned at = 0;
  for (const char *name :
       {"%cluster_ctarank", "%cluster_nctarank", "%cluster_ctaid.x",
        "%cluster_ctaid.y", "%cluster_nctaid.x", "%nclusterid.y",
        "%clusterid.x", "%clusterid.y"})
    body += std::string("mov.u32 %r2, ") + name + ";\nshl.b32 %r2, %r2, " +
            std::to_string(at++ * 4) + ";\nor.b32 %r1, %r1, %r2;\n";
  body += "mov.u32 %r3, %ctaid.x;\nmov.u32 %r4, %ctaid.y;\n"
          "mad.lo.u32 %r16, %r4, 4, %r3;\n" +
          save("%r1") + "ret;";
  words.assign(16, 0);
  expectWords(kernel(body), [](unsigned i) {
    unsigned x = i % 4, y = i / 4;
    return (x % 2 + y % 2 * 2) | 4u << 4 | (x % 2) << 8 | (y % 2) << 12 |
           2u << 16 | 2u << 20 | (x / 2) << 24 | (y / 2) << 28;
  });
}

TEST_F(ClusterTest, AreExplicit) {
  std::string body = "mov.pred %p1, %is_explicit_cluster;\n"
                     "selp.u32 %r1, 5, 6, %p1;\nst.global.u32 [%out], %r1;\n"
                     "ret;";
  shape.grid = {2, 1, 1};
  shape.block = {1, 1, 1};
  runClean(kernel(body));
  EXPECT_EQ(words[0], 5u);
  shape.cluster = {1, 1, 1};
  runClean(kernel(body));
  EXPECT_EQ(words[0], 6u);
  // The kernel's own clusters count where the launch says nothing.
  std::string text = kernel("mov.u32 %r1, %cluster_nctarank;\n"
                            "st.global.u32 [%out], %r1;\nret;");
  text.insert(text.find(")", text.find("k(")) + 1,
              "\n.explicitcluster\n.reqnctapercluster 2\n");
  runClean(text);
  EXPECT_EQ(words[0], 2u);
}

TEST_F(ClusterTest, ShapesThatCannotBe) {
  std::string text = kernel("ret;");
  shape.grid = {3, 1, 1};
  EXPECT_NE(message(text).find("clusters of 2x1x1 in a grid of 3x1x1"),
            std::string::npos);
  shape.grid = shape.cluster = {17, 1, 1};
  EXPECT_NE(message(text).find("clusters of 17x1x1 blocks; 16 blocks can be "
                               "had"),
            std::string::npos);
  text.insert(text.find(")", text.find("k(")) + 1, "\n.reqnctapercluster 4\n");
  shape.grid = shape.cluster = {8, 1, 1};
  EXPECT_NE(message(text).find(".reqnctapercluster wants another"),
            std::string::npos);
}

TEST_F(ClusterTest, SharedMemoryOfOthers) {
  std::string write = "add.u32 %r5, %r16, 100;\nst.shared.u32 [%r4], %r5;\n";
  std::string read = "ld.shared::cluster.u32 %r6, [%r14];\n" + save("%r6");
  auto swapped = [](unsigned i) { return (i ^ 32) + 100; };
  expectWords(pair(write + sync + read + sync), swapped);
  // A relaxed arrival keeps the block there as well.
  expectWords(pair(write + sync + read +
                   "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"),
              swapped);
  // So do generic addresses.
  std::string generic = "cvt.u64.u32 %rd1, %r4;\ncvta.shared.u64 %rd1, %rd1;\n"
                        "mapa.u64 %rd2, %rd1, %r11;\n";
  expectWords(pair(write + sync + generic + "ld.u32 %r6, [%rd2];\n" +
                   save("%r6") + sync),
              swapped);
  // What a block writes into the other.
  expectWords(pair("add.u32 %r5, %r16, 100;\nst.shared.u32 [%r4], 0;\n" + sync +
                   "st.shared::cluster.u32 [%r14], %r5;\n" + sync +
                   "ld.shared.u32 %r6, [%r4];\n" + save("%r6")),
              swapped);
  std::string v4 = "st.shared.v2.u32 [%r4], {%r5, %r5};\n";
  shape.block = {1, 1, 1};
  words.assign(33, 0);
  expectWords(pair("add.u32 %r5, %r16, 100;\n" + v4 + sync +
                   "ld.shared::cluster.v2.u32 {%r6, %r7}, [%r14];\n"
                   "add.u32 %r6, %r6, %r7;\n" +
                   save("%r6") + sync),
              [](unsigned i) { return i == 0    ? 264u
                                      : i == 32 ? 200u
                                                : 0u; });
}

TEST_F(ClusterTest, ManyOnHostThreads) {
  shape.grid = {4, 8, 1};
  shape.cluster = {2, 2, 1};
  words.assign(1024, 0);
  std::string text =
      pair("mov.u32 %r15, %ctaid.y;\nmad.lo.u32 %r16, %r15, 128, %r16;\n"
           "st.shared.u32 [%r4], %r16;\n" +
           sync + "ld.shared::cluster.u32 %r6, [%r14];\n" + save("%r6") + sync);
  for (Schedule schedule : {Schedule::Lockstep, Schedule::RandomWarps})
    for (bool checks : {true, false}) {
      options.schedule = schedule;
      options.hostThreads = 3;
      options.checkRaces = checks;
      options.shadow = !checks;
      words.assign(1024, 0);
      runClean(text);
      // The other rank of a pair is the neighbour in x.
      for (unsigned i = 0; i < words.size(); ++i)
        EXPECT_EQ(words[i], i ^ 32) << i;
    }
}

TEST_F(ClusterTest, AtomicsOfAllBlocks) {
  std::string clear = "@%p1 st.shared.u32 [%r2], 0;\n" + sync +
                      "mov.u32 %r8, 0;\n"
                      "mapa.shared::cluster.u32 %r9, %r2, %r8;\n";
  std::string read =
      sync + "ld.shared::cluster.u32 %r6, [%r9];\n" + save("%r6") + sync;
  auto all = [](unsigned) { return 64u; };
  expectWords(
      pair(clear + "atom.shared::cluster.add.u32 %r5, [%r9], 1;\n" + read),
      all);
  expectWords(pair(clear +
                   "red.relaxed.cluster.shared::cluster.add.u32 [%r9], 1;\n" +
                   read),
              all);
  // Of a scope that leaves the other block out.
  expectFault(pair(clear +
                   "red.relaxed.cta.shared::cluster.add.u32 [%r9], "
                   "1;\n" +
                   read),
              FindingKind::SharedRace);
}

TEST_F(ClusterTest, Addresses) {
  std::string body =
      "cvt.u64.u32 %rd1, %r4;\ncvta.shared.u64 %rd1, %rd1;\n"
      "mapa.u64 %rd2, %rd1, %r11;\nmapa.u64 %rd3, %rd1, %r10;\n"
      "mov.u32 %r5, 0;\n"
      "isspacep.shared::cta %p5, %rd2;\n@%p5 add.u32 %r5, %r5, 1;\n"
      "isspacep.shared::cluster %p5, %rd2;\n@%p5 add.u32 %r5, %r5, 2;\n"
      "isspacep.shared::cta %p5, %rd3;\n@%p5 add.u32 %r5, %r5, 4;\n"
      "isspacep.shared::cluster %p5, %out;\n@%p5 add.u32 %r5, %r5, 8;\n"
      "getctarank.u64 %r6, %rd2;\nxor.b32 %r6, %r6, %r10;\n"
      "mad.lo.u32 %r5, %r6, 16, %r5;\n"
      "getctarank.u64 %r6, %rd1;\nxor.b32 %r6, %r6, %r10;\n"
      "mad.lo.u32 %r5, %r6, 32, %r5;\n"
      "cvta.to.shared.u64 %rd4, %rd2;\ncvt.u32.u64 %r7, %rd4;\n"
      "setp.eq.u32 %p5, %r7, %r14;\n@%p5 add.u32 %r5, %r5, 64;\n" +
      save("%r5");
  expectWords(pair(body), [](unsigned) { return 2u + 4 + 16 + 64; });
  // `.shared` alone does not reach the other; the own block, under its rank.
  expectFault(pair("st.shared.u32 [%r4], 1;\n" + sync +
                   "ld.shared.u32 %r6, [%r14];\n" + sync),
              FindingKind::OutOfBounds);
  EXPECT_NE(last.find(".shared::cta does not reach"), std::string::npos);
  expectWords(pair("mapa.shared::cluster.u32 %r5, %r4, %r10;\n"
                   "st.shared::cluster.u32 [%r5], %r16;\n"
                   "ld.shared.u32 %r6, [%r4];\nld.shared.u32 %r7, [%r5];\n"
                   "add.u32 %r6, %r6, %r7;\n" +
                   save("%r6")),
              [](unsigned i) { return 2 * i; });
  expectFault(pair("mov.u32 %r5, 2;\nmapa.shared::cluster.u32 %r5, %r4, "
                   "%r5;\n"),
              FindingKind::OutOfBounds);
  expectFault(pair("ld.shared::cluster.u32 %r6, [%r14+1024];\n" + sync),
              FindingKind::OutOfBounds);
}

TEST_F(ClusterTest, RacesBetweenBlocks) {
  std::string write = "st.shared.u32 [%r4], %r16;\n";
  std::string read = "ld.shared::cluster.u32 %r6, [%r14];\n" + save("%r6");
  // Nothing orders the two; or what does comes before the write.
  expectFault(pair("st.shared.u32 [%r4], 0;\n" + sync + write + read + sync),
              FindingKind::SharedRace);
  EXPECT_NE(last.find("of shared memory of block"), std::string::npos);
  // Between arrival and wait is in order with nobody.
  expectFault(pair("st.shared.u32 [%r4], 0;\nbarrier.cluster.arrive;\n" +
                   write + "barrier.cluster.wait;\n" + read + sync),
              FindingKind::SharedRace);
  // A barrier that releases nothing, and one with a fence before it.
  std::string relaxed =
      "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n";
  expectFault(pair(write + relaxed + read + sync), FindingKind::SharedRace);
  for (const char *fence :
       {"fence.acq_rel.cluster;\n", "fence.sc.gpu;\n",
        "fence.release.cluster;\n",
        "fence.release.sync_restrict::shared::cta.cluster;\n",
        "fence.proxy.async::generic.release.sync_restrict::shared::cta."
        "cluster;\n"})
    expectWords(pair(write + fence + relaxed + read + sync),
                [](unsigned i) { return i ^ 32; });
  expectFault(pair(write + "fence.acq_rel.cta;\n" + relaxed + read + sync),
              FindingKind::SharedRace);
  // The other's word is overwritten while it reads.
  expectFault(pair(write + sync +
                   "ld.shared.u32 %r6, [%r4];\n"
                   "st.shared::cluster.u32 [%r14], 7;\n" +
                   sync),
              FindingKind::SharedRace);
  // Three blocks write what the fourth reads.
  shape.grid = shape.cluster = {4, 1, 1};
  words.assign(128, 0);
  std::string far = "mov.u32 %r8, 3;\n"
                    "mapa.shared::cluster.u32 %r9, %r2, %r8;\n"
                    "mad.lo.u32 %r9, %r10, 128, %r9;\nadd.u32 %r9, %r9, %r3;\n";
  std::string all = far + "st.shared::cluster.u32 [%r9], %r16;\n" + sync +
                    "setp.ne.u32 %p5, %r10, 3;\n@%p5 bra done;\n";
  for (unsigned block = 0; block < 4; ++block)
    all += "ld.shared.u32 %r6, [%r4+" + std::to_string(block * 128) +
           "];\nmov.u32 %r15, " + std::to_string(block) +
           ";\nmad.lo.u32 %r16, %r15, 32, %t;\n" + save("%r6");
  expectWords(pair(sync + all + "done:\n"), [](unsigned i) { return i; });
}

TEST_F(ClusterTest, OrderThroughGlobalMemory) {
  words.assign(65, 0);
  std::string body = sync +
                     "@!%p1 bra done;\n@!%p4 bra reader;\n"
                     "st.shared::cluster.u32 [%r14], 42;\n"
                     "st.release.cluster.global.u32 [%out+256], 1;\n"
                     "bra done;\nreader:\n"
                     "ld.acquire.cluster.global.u32 %r7, [%out+256];\n"
                     "setp.eq.u32 %p5, %r7, 0;\n@%p5 bra reader;\n"
                     "ld.shared.u32 %r6, [%r4];\n" +
                     save("%r6") + "done:\n";
  expectWords(pair(body), [](unsigned i) {
    return i == 32 ? 42u : i == 64 ? 1u : 0u;
  });
  size_t at = body.find("st.release.cluster");
  std::string weak = body;
  weak.replace(at, strlen("st.release.cluster"), "st.release.cta");
  options.instructionBudget = 1 << 20;
  LaunchResult result = run(pair(weak));
  EXPECT_FALSE(result.findings.empty());
}

TEST_F(ClusterTest, NothingWrote) {
  expectFault(pair("st.shared.u32 [%r4], 1;\n" + sync +
                   "ld.shared::cluster.u32 %r6, [%r14+512];\n"
                   "add.u32 %r6, %r6, 1;\n" +
                   save("%r6") + sync),
              FindingKind::Uninitialized);
  EXPECT_NE(last.find("of block ("), std::string::npos);
}

TEST_F(ClusterTest, BlocksThatEndTooSoon) {
  std::string body = "st.shared.u32 [%r4], %r16;\n" + sync +
                     "ld.shared::cluster.u32 %r6, [%r14];\n" + save("%r6");
  expectFault(pair(body), FindingKind::FinishedBlock);
  // Its own barrier keeps nobody.
  expectFault(pair(body + "bar.sync 0;\n"), FindingKind::FinishedBlock);
  // An arrival without a wait does not keep a block that only arrives.
  expectFault(pair(body + "barrier.cluster.arrive;\n"
                          "@%p4 barrier.cluster.wait;\n"),
              FindingKind::FinishedBlock);
  // A flag in global memory does.
  words.assign(66, 0);
  std::string flag = "bar.sync 0;\n@!%p1 bra done;\n"
                     "mul.wide.u32 %rd1, %r10, 4;\nadd.u64 %rd1, %rd1, %out;\n"
                     "mul.wide.u32 %rd2, %r11, 4;\nadd.u64 %rd2, %rd2, %out;\n"
                     "st.release.cluster.global.u32 [%rd1+256], 1;\nagain:\n"
                     "ld.acquire.cluster.global.u32 %r7, [%rd2+256];\n"
                     "setp.eq.u32 %p5, %r7, 0;\n@%p5 bra again;\ndone:\n";
  expectWords(pair(body + flag),
              [](unsigned i) { return i < 64 ? i ^ 32 : 1u; });
}

TEST_F(ClusterTest, Barrier) {
  expectFault(pair("barrier.cluster.arrive;\nbarrier.cluster.arrive;\n"
                   "barrier.cluster.wait;\n"),
              FindingKind::BarrierMismatch);
  expectFault(pair("barrier.cluster.wait;\n"), FindingKind::BarrierMismatch);
  std::string half = "setp.lt.u32 %p5, %t, 16;\n@%p5 bra a;\n";
  expectFault(pair(half + "barrier.cluster.arrive.aligned;\nbra b;\na:\n"
                          "barrier.cluster.arrive.aligned;\nb:\n"
                          "barrier.cluster.wait.aligned;\n"),
              FindingKind::BarrierDivergence);
  // Without .aligned, lanes may come by themselves.
  expectWords(pair(half + "barrier.cluster.arrive;\nbra b;\na:\n"
                          "barrier.cluster.arrive;\nb:\n"
                          "barrier.cluster.wait;\n"),
              [](unsigned) { return 0u; });
  // Threads that are gone are not waited for, nor are whole blocks.
  expectWords(
      pair("setp.lt.u32 %p5, %t, 5;\n@%p5 bra over;\n" + sync + "over:\n"),
      [](unsigned) { return 0u; });
  expectWords(pair("@%p4 bra over;\n" + sync + sync + "over:\n"),
              [](unsigned) { return 0u; });
  shape.block = {64, 1, 1};
  expectFault(pair("setp.lt.u32 %p5, %t, 32;\n@!%p5 bra rest;\n" + sync +
                   "rest:\nbar.sync 0;\n" + "@%p5 bra over;\n" + sync +
                   "over:\n"),
              FindingKind::Deadlock);
  EXPECT_NE(last.find("the cluster can go on"), std::string::npos);
}

TEST_F(ClusterTest, MbarriersOfOthers) {
  std::string body = make("32") + "add.u32 %r5, %r16, 100;\n"
                                  "st.shared::cluster.u32 [%r14], %r5;\n";
  std::string read = wait("0") + "ld.shared.u32 %r6, [%r4];\n" + save("%r6");
  auto swapped = [](unsigned i) { return (i ^ 32) + 100; };
  for (const char *order : {"", ".release.cluster"})
    expectWords(pair(body + "mbarrier.arrive" + order +
                     ".shared::cluster.b64 _, [%r13];\n" + read),
                swapped);
  expectFault(pair(body +
                   "mbarrier.arrive.release.cta.shared::cluster.b64 _, "
                   "[%r13];\n" +
                   read),
              FindingKind::SharedRace);
  // It has to be made first, and its making announced.
  expectFault(pair("@%p1 mbarrier.init.shared::cta.b64 [%r1], 32;\n"
                   "bar.sync 0;\nst.shared.u32 [%r4], 0;\n"
                   "mbarrier.arrive.shared::cluster.b64 _, [%r13];\n" +
                   wait("0")),
              FindingKind::SharedRace, FindingKind::Uninitialized);
  EXPECT_NE(message(pair("mbarrier.arrive.shared::cluster.b64 %rd1, [%r13];\n"))
                .find("gives no state"),
            std::string::npos);
  EXPECT_NE(message(pair("mbarrier.try_wait.parity.shared::cluster.b64 %p2, "
                         "[%r13], 0;\n"))
                .find("has no .shared::cluster"),
            std::string::npos);
}

TEST_F(ClusterTest, Stores) {
  std::string body = make("1") +
                     "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64"
                     " _, [%r1], 128;\nadd.u32 %r5, %r16, 100;\n";
  std::string send = "st.async.weak.shared::cluster.mbarrier::complete_tx::"
                     "bytes.u32 [%r14], %r5, [%r13];\n";
  std::string read = "ld.shared.u32 %r6, [%r4];\n" + save("%r6");
  expectWords(pair(body + send + wait("0") + read),
              [](unsigned i) { return (i ^ 32) + 100; });
  expectFault(pair(body + send + read + wait("0")), FindingKind::AsyncInFlight);
  // The mbarrier has to be of the block that is written.
  std::string own = send;
  own.replace(own.find("%r13"), 4, "%r1");
  expectFault(pair(body + own + wait("0")), FindingKind::BarrierMismatch);
  // Nobody waits for it.
  expectFault(pair(body + send), FindingKind::FinishedBlock);
}

TEST_F(ClusterTest, Updates) {
  std::string body =
      "@%p1 st.shared.u32 [%r2], 1000;\n" + make("1") +
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n";
  std::string send = "red.async.relaxed.cluster.shared::cluster.mbarrier::"
                     "complete_tx::bytes.add.u32 [%r12], %t, [%r13];\n";
  expectWords(pair(body + send + wait("0") + "ld.shared.u32 %r6, [%r2];\n" +
                   save("%r6")),
              [](unsigned) { return 1496u; });
}

TEST_F(ClusterTest, CopiesToOthers) {
  std::string body =
      "st.shared.u32 [%r4+512], %r16;\n" + make("1") +
      "fence.proxy.async;\n"
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n"
      "@%p1 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::"
      "bytes [%r12], [%r17], 128, [%r13];\n" +
      wait("0") + "ld.shared.u32 %r6, [%r4];\n" + save("%r6");
  body = "add.u32 %r17, %r2, 512;\n" + body;
  expectWords(pair(body + sync), [](unsigned i) { return i ^ 32; });
  // The source may be gone before the other has waited.
  expectFault(pair(body), FindingKind::FinishedBlock);
}

TEST_F(ClusterTest, CopiesToAll) {
  for (unsigned i = 0; i < 64; ++i)
    words[i] = i;
  std::string body =
      make("1") +
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n" + sync +
      "and.pred %p5, %p1, %p4;\nmov.u16 %h1, MASK;\n"
      "@%p5 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%r2], [%out], 128, [%r1], %h1;\n" +
      wait("0") + "ld.shared.u32 %r6, [%r4];\nadd.u32 %r6, %r6, 7;\n" + sync +
      save("%r6");
  auto masked = [&](const char *mask) {
    std::string text = body;
    text.replace(text.find("MASK"), 4, mask);
    return pair(".reg .u16 %h1;\n" + text);
  };
  expectWords(masked("3"), [](unsigned i) { return i % 32 + 7; });
  // Block 1 waits for what never comes; there is no block 2.
  expectFault(masked("1"), FindingKind::Deadlock);
  expectFault(masked("7"), FindingKind::OutOfBounds);
}

TEST_F(ClusterTest, CopiesThatReduce) {
  // Both blocks add to the first words of global memory.
  std::string body =
      "st.shared.u32 [%r4], %r16;\nfence.proxy.async.shared::cta;\n"
      "bar.sync 0;\n"
      "@%p1 cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%out], "
      "[%r2], 128;\n@%p1 cp.async.bulk.commit_group;\n"
      "@%p1 cp.async.bulk.wait_group 0;\n";
  words.assign(64, 1);
  expectWords(pair(body),
              [](unsigned i) { return i < 32 ? 1 + i + i + 32 : 1u; });
  // Each into the other's shared memory.
  std::string far =
      "st.shared.u32 [%r4], %r16;\nst.shared.u32 [%r4+512], 5;\n" + make("1") +
      "add.u32 %r17, %r12, 512;\n"
      "@%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;\n"
      "@%p1 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::"
      "complete_tx::bytes.max.s32 [%r17], [%r2], 128, [%r13];\n" +
      wait("0") + "ld.shared.u32 %r6, [%r4+512];\n" + save("%r6") + sync;
  expectWords(pair(far), [](unsigned i) { return std::max(i ^ 32, 5u); });
  EXPECT_NE(message(pair("cp.reduce.async.bulk.global.shared::cta.bulk_group"
                         ".add.s64 [%out], [%r2], 128;\n"))
                .find("no such form of a copy that reduces"),
            std::string::npos);
  EXPECT_NE(message(pair("cp.reduce.async.bulk.global.shared::cta.bulk_group"
                         ".add.f16 [%out], [%r2], 128;\n"))
                .find("no such form of a copy that reduces"),
            std::string::npos);
}

} // namespace
} // namespace fsr::ptx
