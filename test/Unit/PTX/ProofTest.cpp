// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// When a run stands for all data: what breaks the proof, through each way that
// a value can take from a buffer, or from what others do meanwhile, to an
// address, a branch or a mask; and what does not break it.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

namespace fsr::ptx {
namespace {

/// Loads word %t, which depends on data, into %r1.
const char *const loadOwn = R"(
  mul.wide.u32 %rd1, %t, 4;
  add.u64 %rd2, %rd1, %out;
  ld.global.u32 %r1, [%rd2];
)";

class ProofTest : public KernelTest {
protected:
  Proof prove(llvm::StringRef body) {
    unsigned module = cantFail(gpu->loadModule(kernel(loadOwn + body.str())));
    uint64_t address = cantFail(gpu->allocate(4096));
    cantFail(gpu->fill(address, 0, 4, 1024));
    cantFail(gpu->setTainted(address, 4096, true));
    uint8_t params[8];
    std::memcpy(params, &address, 8);
    LaunchResult result =
        cantFail(gpu->launch(module, "k", shape, params, options));
    for (const Finding &finding : result.findings)
      ADD_FAILURE() << finding.text();
    return result.proof;
  }
  void expectBroken(llvm::StringRef body, llvm::StringRef why) {
    Proof proof = prove(body);
    EXPECT_FALSE(proof.holds);
    EXPECT_TRUE(llvm::StringRef(proof.broken).ends_with(why)) << proof.broken;
  }
};

TEST_F(ProofTest, HoldsWhereDataIsOnlyData) {
  Proof proof = prove(R"(
    add.u32 %r2, %r1, 1;
    setp.lt.u32 %p1, %r2, 5;
    selp.u32 %r3, %r2, 7, %p1;
    @%p1 add.u32 %r3, %r3, 1;
    shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
    st.global.u32 [%rd2], %r4;
    exit;
  )");
  EXPECT_TRUE(proof.holds) << proof.broken;
}

TEST_F(ProofTest, BreaksAtABranch) {
  expectBroken("setp.lt.u32 %p1, %r1, 5;\n@%p1 bra END;\nEND:\nexit;",
               "(PTX line 19 `@%p1 bra END;`): a branch depends on buffer "
               "contents");
}

TEST_F(ProofTest, BreaksAtAnAddress) {
  expectBroken("add.u32 %r2, %r1, %t;\nmul.wide.u32 %rd3, %r2, 4;\n"
               "add.u64 %rd4, %rd3, %out;\nst.global.u32 [%rd4], %t;\nexit;",
               "an address depends on buffer contents");
}

TEST_F(ProofTest, BreaksThroughAShuffle) {
  // The index of another lane is data: which value is read is, too.
  expectBroken("shfl.sync.idx.b32 %r2, %t, %r1, 31, -1;\n"
               "setp.eq.u32 %p1, %r2, 77;\n@%p1 bra END;\nEND:\nexit;",
               "a branch depends on buffer contents");
}

TEST_F(ProofTest, BreaksAtAGuardOfMemory) {
  expectBroken("setp.eq.u32 %p1, %r1, 77;\n@%p1 st.global.u32 [%rd2], %t;\n"
               "exit;",
               "whether memory is touched depends on buffer contents");
}

TEST_F(ProofTest, AGuardMakesItsResultDepend) {
  expectBroken("setp.eq.u32 %p1, %r1, 77;\nmov.u32 %r2, 0;\n"
               "@%p1 mov.u32 %r2, 1;\nsetp.eq.u32 %p2, %r2, 1;\n"
               "@%p2 bra END;\nEND:\nexit;",
               "a branch depends on buffer contents");
}

TEST_F(ProofTest, BreaksWhereDataSaysWhetherARegisterIsWritten) {
  std::string use = "@%p1 mov.u32 %r2, 7;\nadd.u32 %r3, %r2, 1;\n"
                    "st.global.u32 [%rd2], %r3;\nexit;";
  for (Schedule schedule :
       {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
    options.schedule = schedule;
    expectBroken("setp.ne.u32 %p1, %r1, 77;\n" + use,
                 "whether a register is written depends on buffer contents");
    // Written before, or as the thread's number says.
    EXPECT_TRUE(
        prove("setp.ne.u32 %p1, %r1, 77;\nmov.u32 %r2, 1;\n" + use).holds);
    EXPECT_TRUE(prove("setp.lt.u32 %p1, %t, 77;\n" + use).holds);
  }
}

TEST_F(ProofTest, IsNotClaimedWithoutItsChecks) {
  options.trackTaint = false;
  expectBroken("exit;", "taint was not tracked");
  options.trackTaint = true;
  options.checkRaces = false;
  expectBroken("exit;", "races were not looked for");
}

/// Branches where register %r2 is not 0.
const char *const steerBy2 = "setp.ne.u32 %p1, %r2, 0;\n@%p1 bra END;\n"
                             "END:\nexit;";
const char *const branchMessage = "a branch depends on buffer contents";

TEST_F(ProofTest, BreaksAtAPolledValue) {
  // What another thread wrote last is no data, but when it did is not known.
  for (const char *load :
       {"ld.volatile.global", "ld.relaxed.gpu.global", "ld.acquire.gpu.global",
        "ld.mmio.relaxed.sys.global"})
    expectBroken("st.relaxed.gpu.global.u32 [%rd2], 0;\n" + std::string(load) +
                     ".u32 %r2, [%rd2];\n" + steerBy2,
                 branchMessage);
  // Also where the load may be left out, which other code looks after.
  expectBroken("st.relaxed.gpu.global.u32 [%rd2], 0;\n"
               "setp.lt.u32 %p2, %t, 40;\n"
               "@%p2 ld.volatile.global.u32 %r2, [%rd2];\n" +
                   std::string(steerBy2),
               branchMessage);
}

TEST_F(ProofTest, BreaksAtWhatAnAtomicGives) {
  for (const char *atomic : {"atom.global.add.u32 %r2, [%out], 0",
                             "atom.global.exch.b32 %r2, "
                             "[%out], 0",
                             "atom.global.cas.b32 %r2, [%out], 0, 0",
                             "atom.global.inc.u32 %r2, [%out], 0"})
    expectBroken(std::string(atomic) + ";\n" + steerBy2, branchMessage);
}

TEST_F(ProofTest, BreaksThroughVotesAndMatches) {
  for (const char *body :
       {"setp.eq.u32 %p2, %r1, 77;\nvote.sync.ballot.b32 %r2, %p2, -1;\n",
        "setp.eq.u32 %p2, %r1, 77;\nvote.sync.any.pred %p3, %p2, -1;\n"
        "selp.u32 %r2, 1, 0, %p3;\n",
        "match.any.sync.b32 %r2, %r1, -1;\n",
        "redux.sync.add.s32 %r2, %r1, -1;\n",
        "setp.eq.u32 %p2, %r1, 77;\nbar.red.popc.u32 %r2, 0, %p2;\n"})
    expectBroken(body + std::string(steerBy2), branchMessage);
  expectBroken("or.b32 %r3, %r1, -1;\nmatch.any.sync.b32 %r2, %t, %r3;\n"
               "exit;",
               "which lanes take part depends on buffer contents");
}

TEST_F(ProofTest, BreaksThroughASelection) {
  // Both ways are numbers of the launch; which is taken is data.
  expectBroken("setp.eq.u32 %p2, %r1, 77;\nselp.u32 %r2, 4, 8, %p2;\n"
               "cvt.u64.u32 %rd3, %r2;\nadd.u64 %rd4, %out, %rd3;\n"
               "ld.global.u32 %r3, [%rd4];\nexit;",
               "an address depends on buffer contents");
}

TEST_F(ProofTest, BreaksThroughMemory) {
  expectBroken(".shared .align 4 .b32 word[32];\n"
               "shl.b32 %r3, %t, 2;\nmov.u32 %r4, word;\n"
               "add.u32 %r3, %r3, %r4;\nst.shared.u32 [%r3], %r1;\n"
               "bar.sync 0;\nld.shared.u32 %r2, [%r3];\n" +
                   std::string(steerBy2),
               branchMessage);
  expectBroken(".local .align 4 .b32 word[4];\nst.local.u32 [word], %r1;\n"
               "ld.local.u8 %r2, [word+3];\n" +
                   std::string(steerBy2),
               branchMessage);
}

TEST_F(ProofTest, BreaksAtWhatDiffersFromRunToRun) {
  for (const char *name :
       {"%clock", "%clock_hi", "%globaltimer_lo", "%smid", "%warpid"})
    expectBroken("mov.u32 %r2, " + std::string(name) + ";\n" + steerBy2,
                 branchMessage);
  expectBroken("activemask.b32 %r2;\n" + std::string(steerBy2), branchMessage);
}

TEST_F(ProofTest, BreaksAtABarrierInMemory) {
  const std::string begin = ".shared .align 8 .b64 barrier;\n"
                            "setp.ne.u32 %p2, %t, 0;\n"
                            "@!%p2 mbarrier.init.shared.b64 [barrier], 32;\n"
                            "bar.sync 0;\n";
  expectBroken(begin + "setp.eq.u32 %p3, %r1, 0;\n"
                       "@%p3 mbarrier.arrive.shared.b64 %rd3, [barrier];\n"
                       "exit;",
               "whether it is executed depends on buffer contents");
  expectBroken(begin + "add.u32 %r3, %r1, 1;\n"
                       "mbarrier.arrive.shared.b64 %rd3, [barrier], %r3;\n"
                       "exit;",
               "what it does depends on buffer contents");
  expectBroken(begin +
                   "mbarrier.arrive.shared.b64 %rd3, [barrier];\n"
                   "mbarrier.pending_count.b64 %r2, %rd3;\n" +
                   steerBy2,
               branchMessage);
}

TEST_F(ProofTest, HoldsWhereAllWaitForABarrierInMemory) {
  Proof proof = prove(R"(
    .shared .align 8 .b64 barrier;
    setp.ne.u32 %p2, %t, 0;
    @!%p2 mbarrier.init.shared.b64 [barrier], 32;
    bar.sync 0;
    mbarrier.arrive.shared.b64 %rd3, [barrier];
  WAIT:
    mbarrier.try_wait.shared.b64 %p3, [barrier], %rd3;
    @!%p3 bra WAIT;
    exit;
  )");
  EXPECT_TRUE(proof.holds) << proof.broken;
}

TEST_F(ProofTest, AddressesAreOfTheLaunch) {
  Proof proof = prove(R"(
    setp.lt.u64 %p2, %out, 4096;
    @%p2 bra END;
    st.global.u32 [%rd2], %r1;
  END:
    exit;
  )");
  EXPECT_TRUE(proof.holds) << proof.broken;
}

} // namespace
} // namespace fsr::ptx
