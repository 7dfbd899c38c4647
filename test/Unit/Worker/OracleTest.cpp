// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The oracle alone, on inputs of the host: true values against what is computed
// here in a wider type, parts of grids, and each reason to say nothing.
//
//===----------------------------------------------------------------------===//

#include "Oracle.h"
#include "Kernels.h"

#include "gtest/gtest.h"

#include <cmath>
#include <cstring>

using namespace fsr;

namespace {

using Wide = long double;

class OracleTest : public ::testing::Test {
protected:
  OracleTest() : task(matmulTask()) {
    limits.instructions = 100'000;
    std::mt19937 engine(3);
    std::uniform_real_distribution<float> spread(-1, 1);
    for (const Argument &argument : task.arguments) {
      std::vector<float> values(argument.numElements());
      for (float &value : values)
        value = spread(engine);
      memory.push_back(std::move(values));
    }
  }

  Truth solve(const std::string &ptx) {
    Oracle oracle(task, ptx, 7);
    return solve(oracle);
  }
  Truth solve(Oracle &oracle) {
    fetched = 0;
    auto fetch = [&](size_t argument, uint64_t offset, void *to,
                     uint64_t bytes) {
      memcpy(to, reinterpret_cast<char *>(memory[argument].data()) + offset,
             bytes);
      fetched += bytes;
      return llvm::Error::success();
    };
    EXPECT_EQ(llvm::toString(oracle.prepare(limits, fetch)), "");
    auto truth = oracle.solve(fetch);
    if (!truth) {
      ADD_FAILURE() << llvm::toString(truth.takeError());
      return {};
    }
    return std::move(*truth);
  }

  /// A task with buffers of `count` floats, read but for the last.
  void simpleTask(std::vector<Access> accesses, int64_t count, int64_t blocks,
                  int64_t threads) {
    task.arguments.clear();
    memory.clear();
    for (Access access : accesses) {
      task.arguments.push_back(
          bufferArgument("b" + std::to_string(memory.size()), ElementType::F32,
                         {count}, access));
      memory.emplace_back(count);
      for (int64_t i = 0; i < count; ++i)
        memory.back()[i] = 1 + float(i % 97) / 128;
    }
    task.launch.grid = {blocks, 1, 1};
    task.launch.block = {threads, 1, 1};
  }

  void expectProducts(const TrueBuffer &buffer) {
    for (const TrueElement &element : buffer.elements) {
      uint64_t row = element.index / matmulColumns,
               column = element.index % matmulColumns;
      Wide sum = 0;
      for (int64_t k = 0; k < matmulDepth; ++k)
        sum += Wide(memory[0][row * matmulDepth + k]) *
               memory[1][k * matmulColumns + column];
      EXPECT_EQ(element.offset, element.index);
      EXPECT_NEAR(element.value, double(sum), 1e-14);
      EXPECT_GT(element.bound, 0x1p-24);
      EXPECT_LT(element.bound, 0x1p-15);
    }
  }

  KernelTask task;
  OracleLimits limits;
  std::vector<std::vector<float>> memory;
  uint64_t fetched = 0;
};

/// One thread an element: `body` goes from %in, %in2 and %out, which are its
/// places in the buffers, and %i.
std::string elementwise(llvm::StringRef body, llvm::StringRef before = "") {
  return (".version 8.0\n.target sm_80\n.address_size 64\n" + before +
          R"(
.visible .entry matmul(.param .u64 pa, .param .u64 pb, .param .u64 pc) {
  .reg .pred %p<4>;
  .reg .b32 %r<8>, %i;
  .reg .f32 %f<8>;
  .reg .b64 %in, %in2, %out, %off, %rd<4>;
  ld.param.u64 %in, [pa];
  ld.param.u64 %in2, [pb];
  ld.param.u64 %out, [pc];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mad.lo.u32 %i, %r1, %r2, %r3;
  mul.wide.u32 %off, %i, 4;
  add.s64 %in, %in, %off;
  add.s64 %in2, %in2, %off;
  add.s64 %out, %out, %off;
)" + body +
          "  ret;\n}\n")
      .str();
}

TEST_F(OracleTest, WholeGrid) {
  Truth truth = solve(matmulPtx("matmul", plainStep));
  EXPECT_EQ(truth.why, "");
  EXPECT_EQ(truth.part, "all 4 blocks");
  ASSERT_EQ(truth.buffers.size(), 1u);
  const TrueBuffer &buffer = *truth.find(2);
  EXPECT_TRUE(buffer.isWhole);
  EXPECT_EQ(buffer.elements.size(), size_t(matmulRows * matmulColumns));
  expectProducts(buffer);
}

TEST_F(OracleTest, WarpsOfAGridThatIsTooLarge) {
  limits.instructions = 2000;
  limits.smallBytes = 0;
  Truth truth = solve(matmulPtx("matmul", plainStep));
  EXPECT_EQ(truth.why, "");
  EXPECT_TRUE(llvm::StringRef(truth.part)
                  .ends_with(" of 32 warps, 8 lanes of each, drawn at random"))
      << truth.part;
  ASSERT_EQ(truth.buffers.size(), 1u);
  EXPECT_FALSE(truth.buffers[0].isWhole);
  EXPECT_GE(truth.buffers[0].elements.size(), 10u * 8);
  EXPECT_LE(truth.buffers[0].elements.size(), 20u * 8);
  expectProducts(truth.buffers[0]);
  // Lanes that exchange values run as warps.
  truth = solve(matmulPtx("matmul", plainStep,
                          "  shfl.sync.idx.b32 %bits, %k, 0, 31, -1;\n"));
  EXPECT_EQ(truth.part, "3 of 32 warps, drawn at random");
  ASSERT_EQ(truth.buffers.size(), 1u);
  EXPECT_EQ(truth.buffers[0].elements.size(), 3u * 32);
  expectProducts(truth.buffers[0]);
  // The first and the last are always among them.
  EXPECT_EQ(truth.buffers[0].elements.front().index, 0u);
  EXPECT_EQ(truth.buffers[0].elements.back().index,
            uint64_t(matmulRows * matmulColumns - 1));
  // Of the first factor their rows alone; what lies between comes along.
  EXPECT_LE(fetched, 4u * matmulDepth * (matmulRows + matmulColumns));
}

/// Each filling is a new one.
TEST_F(OracleTest, FillingAfterFilling) {
  Oracle oracle(task, matmulPtx("matmul", plainStep), 7);
  for (unsigned filling = 0; filling < 3; ++filling) {
    for (float &value : memory[0])
      value += 0.125f;
    Truth truth = solve(oracle);
    ASSERT_EQ(truth.buffers.size(), 1u) << truth.why;
    expectProducts(truth.buffers[0]);
  }
}

TEST_F(OracleTest, BlocksWhereWarpsMeet) {
  limits.instructions = 8000;
  Truth truth = solve(matmulPtx("matmul", plainStep, "  bar.sync 0;\n"));
  EXPECT_EQ(truth.part, "1 of 4 blocks, drawn at random");
  ASSERT_EQ(truth.buffers.size(), 1u) << truth.why;
  EXPECT_EQ(truth.buffers[0].elements.size(), 256u);
  expectProducts(truth.buffers[0]);
}

TEST_F(OracleTest, ABudgetForNothing) {
  limits.instructions = 10;
  EXPECT_EQ(solve(matmulPtx("matmul", plainStep)).why,
            "one thread of it runs for more than 320 warp instructions");
}

TEST_F(OracleTest, BlocksThatTalkRunAllOrNone) {
  std::string ptx = matmulPtx("matmul", plainStep,
                              "  red.global.add.f32 [%c], %acc;\n"
                              "  mov.f32 %acc, 0f3F800000;\n");
  limits.instructions = 6000;
  EXPECT_EQ(solve(ptx).why,
            "its blocks may look at one another by `red.global.add.f32`, and "
            "all of them run for too long");
  limits.instructions = 100'000;
  EXPECT_EQ(solve(ptx).why, "");
}

/// Where it reads is known only once it has read.
TEST_F(OracleTest, FollowsIndices) {
  simpleTask({Access::Read, Access::Read, Access::Write}, 4096, 32, 128);
  for (size_t i = 0; i < memory[0].size(); ++i) {
    uint32_t index = uint32_t(i * 37 % 4096);
    memcpy(&memory[0][i], &index, 4);
  }
  limits.instructions = 200;
  limits.smallBytes = 0;
  Truth truth = solve(elementwise(R"(  ld.global.u32 %r4, [%in];
  ld.param.u64 %rd1, [pb];
  mul.wide.u32 %rd2, %r4, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.global.f32 %f1, [%rd1];
  div.rn.f32 %f2, %f1, 0f40400000;
  st.global.f32 [%out], %f2;
)"));
  ASSERT_EQ(truth.buffers.size(), 1u) << truth.why;
  EXPECT_GE(truth.buffers[0].elements.size(), 64u);
  for (const TrueElement &element : truth.buffers[0].elements)
    EXPECT_NEAR(element.value, double(memory[1][element.index * 37 % 4096]) / 3,
                1e-15);
}

TEST_F(OracleTest, InPlace) {
  simpleTask({Access::Read, Access::Read, Access::ReadWrite}, 4096, 32, 128);
  limits.smallBytes = 0;
  std::string ptx = elementwise(R"(  ld.global.f32 %f1, [%in];
  ld.global.f32 %f2, [%out];
  div.rn.f32 %f2, %f2, %f1;
  setp.ge.u32 %p1, %i, 4000;
  @%p1 bra end;
  st.global.f32 [%out], %f2;
end:
)");
  Oracle oracle(task, ptx, 7);
  for (unsigned filling = 0; filling < 2; ++filling) {
    for (float &value : memory[2])
      value += 0.25f;
    Truth truth = solve(oracle);
    ASSERT_EQ(truth.buffers.size(), 1u) << truth.why;
    EXPECT_EQ(truth.buffers[0].elements.size(), 4000u);
    for (const TrueElement &element : truth.buffers[0].elements)
      EXPECT_NEAR(element.value,
                  double(memory[2][element.index]) / memory[0][element.index],
                  1e-15);
  }
}

// Warps and lanes of one block are shared out among host threads.
TEST_F(OracleTest, OneBlockInPieces) {
  std::string ptx = elementwise(R"(  ld.global.f32 %f1, [%in];
  ld.global.f32 %f2, [%out];
  div.rn.f32 %f2, %f2, %f1;
  st.global.f32 [%out], %f2;
)");
  for (int64_t threads : {1, 40, 256}) {
    simpleTask({Access::Read, Access::Read, Access::ReadWrite}, 512, 1,
               threads);
    for (unsigned hostThreads : {1, 2, 16}) {
      limits.hostThreads = hostThreads;
      Truth truth = solve(ptx);
      ASSERT_EQ(truth.buffers.size(), 1u) << truth.why;
      EXPECT_EQ(truth.part, "all 1 blocks");
      ASSERT_EQ(truth.buffers[0].elements.size(), uint64_t(threads));
      for (int64_t i = 0; i < threads; ++i) {
        const TrueElement &element = truth.buffers[0].elements[i];
        EXPECT_EQ(element.index, uint64_t(i));
        EXPECT_NEAR(element.value, double(memory[2][i]) / memory[0][i], 1e-15);
      }
    }
  }
}

TEST_F(OracleTest, PiecesOfAPart) {
  // Eight lanes of one of eight warps.
  std::string ptx = elementwise(R"(  mov.f32 %f2, 0f00000000;
  mov.u32 %r4, 0;
loop:
  ld.global.f32 %f1, [%in];
  add.f32 %f2, %f2, %f1;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 100;
  @%p1 bra loop;
  st.global.f32 [%out], %f2;
)");
  simpleTask({Access::Read, Access::Read, Access::Write}, 256, 1, 256);
  limits.instructions = 150;
  std::vector<std::vector<uint64_t>> found;
  for (unsigned hostThreads : {1, 3, 16}) {
    limits.hostThreads = hostThreads;
    Truth truth = solve(ptx);
    ASSERT_EQ(truth.buffers.size(), 1u) << truth.why;
    EXPECT_EQ(truth.part, "1 of 8 warps, 8 lanes of each, drawn at random");
    found.emplace_back();
    for (const TrueElement &element : truth.buffers[0].elements)
      found.back().push_back(element.index);
    EXPECT_EQ(found.back().size(), 8u);
    EXPECT_EQ(found.back(), found.front());
  }
}

TEST_F(OracleTest, StridedBuffers) {
  simpleTask({Access::Read, Access::Read, Access::Write}, 4096, 2, 64);
  // The transpose of 16 rows of 8, of which each has 2 more.
  task.arguments[2].sizes = {8, 16};
  task.arguments[2].strides = {1, 10};
  Truth truth = solve(elementwise(R"(  ld.global.f32 %f1, [%in];
  add.f32 %f1, %f1, 0f3F000000;
  st.global.f32 [%out], %f1;
)"));
  ASSERT_EQ(truth.buffers.size(), 1u) << truth.why;
  EXPECT_EQ(truth.buffers[0].elements.size(), 8u * 13);
  for (const TrueElement &element : truth.buffers[0].elements) {
    EXPECT_EQ(element.offset, element.index / 16 + element.index % 16 * 10);
    EXPECT_EQ(element.value, memory[0][element.offset] + 0.5);
  }
}

TEST_F(OracleTest, SaysWhatItCannotFollow) {
  simpleTask({Access::Read, Access::Read, Access::Write}, 128, 1, 128);
  std::string third = "  mov.f32 %f1, 0f3F800000;\n"
                      "  div.rn.f32 %f1, %f1, 0f40400000;\n"
                      "  mul.f32 %f2, %f1, 0f40400000;\n";
  Truth truth = solve(elementwise(third + R"(  setp.lt.f32 %p1, %f2, 0f3F800000;
  @%p1 bra end;
  st.global.f32 [%out], %f2;
end:
)"));
  EXPECT_TRUE(truth.buffers.empty());
  EXPECT_NE(truth.why.find("a branch depends on a rounded value"),
            std::string::npos)
      << truth.why;
  truth = solve(elementwise(third + R"(  mov.b32 %r4, %f2;
  add.u32 %r4, %r4, 1;
  st.global.u32 [%out], %r4;
)"));
  EXPECT_NE(truth.why.find("the bits of a rounded value are used otherwise"),
            std::string::npos)
      << truth.why;
  EXPECT_NE(
      solve(elementwise("  vadd.s32.s32.s32 %r4, %i, %i;\n")).why.find("vadd"),
      std::string::npos);
  EXPECT_NE(solve(elementwise("  ld.global.f32 %f1, [%in+4096];\n"))
                .why.find("out of bounds"),
            std::string::npos);
  EXPECT_NE(solve("no PTX").why, "");
}

TEST(PtxFactsTest, Atomics) {
  auto adds = [](llvm::StringRef body) {
    return cantFail(readPtxFacts(elementwise(body))).addsFloatsAtomically;
  };
  EXPECT_FALSE(adds(""));
  EXPECT_TRUE(adds("  red.global.add.f32 [%out], %f1;\n"));
  EXPECT_TRUE(adds("  atom.shared.add.f32 %f1, [%r1], %f1;\n"));
  EXPECT_TRUE(adds("  atom.global.cas.b32 %r4, [%out], %r1, %r2;\n"));
  EXPECT_FALSE(adds("  red.global.add.u32 [%out], %r1;\n"));
  EXPECT_FALSE(adds("  atom.global.exch.b32 %r4, [%out], %r1;\n"));
}

TEST(PtxFactsTest, WhoTalks) {
  auto facts = [](llvm::StringRef body, llvm::StringRef before = "") {
    PtxFacts found = cantFail(readPtxFacts(elementwise(body, before)));
    return std::pair(found.blocksTalk, found.warpsTalk);
  };
  auto lanes = [](llvm::StringRef body) {
    return cantFail(readPtxFacts(elementwise(body))).lanesTalk;
  };
  EXPECT_EQ(lanes("  ld.global.f32 %f1, [%in];\n"), "");
  EXPECT_EQ(lanes("  shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\n"),
            "`shfl.sync.bfly.b32`");
  EXPECT_EQ(lanes("  bar.sync 0;\n"), "`bar.sync`");
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(facts("  ld.global.f32 %f1, [%in];\n"), Pair("", ""));
  EXPECT_EQ(facts("  shfl.sync.bfly.b32 %r4, %r1, 1, 31, -1;\n"
                  "  bar.warp.sync -1;\n"),
            Pair("", ""));
  EXPECT_EQ(facts("  bar.sync 0;\n"), Pair("", "`bar.sync`"));
  EXPECT_EQ(facts("", ".shared .align 4 .b8 tile[64];"),
            Pair("", "`.shared tile`"));
  EXPECT_EQ(facts("", ".global .align 4 .u32 counter;"),
            Pair("`.global counter`", "`.global counter`"));
  EXPECT_EQ(facts("  ld.volatile.global.u32 %r4, [%in];\n").first,
            "`ld.volatile.global.u32`");
  EXPECT_EQ(facts("  membar.gl;\n").first, "`membar.gl`");
  EXPECT_EQ(facts("  atom.shared.add.u32 %r4, [%r1], 1;\n"),
            Pair("", "`atom.shared.add.u32`"));
  // May be of any memory.
  EXPECT_EQ(facts("  atom.add.u32 %r4, [%out], 1;\n").first, "`atom.add.u32`");
}

} // namespace
