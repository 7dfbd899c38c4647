// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lanes in any pattern: runs of one place, runs that follow one another, steps,
// and no order at all, with lanes that take no part. What is loaded, stored and
// added, what is counted, and whether there is a race is told here by comparing
// all lanes with all others, and has to be what the quick ways come to.
//
//===----------------------------------------------------------------------===//

#include "KernelTest.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

using namespace fsr::ptx;

namespace {

/// Of the pieces that lanes touch; none where the lane takes no part.
using Pattern = std::array<int, 32>;
constexpr int none = -1;

struct Shape {
  const char *space;
  unsigned bytes; ///< Of a piece.
};

class PatternsTest : public KernelTest,
                     public testing::WithParamInterface<Shape> {
protected:
  static constexpr unsigned tileWords = 1024, tileAt = 256;

  Pattern make(unsigned first, unsigned end) {
    auto below = [&](unsigned n) { return unsigned(random() % n); };
    Pattern pattern;
    for (unsigned lane = 0; lane < 32;) {
      unsigned count = std::min(32 - lane, 1 + below(below(2) ? 32 : 9));
      unsigned kind = below(5), at = below(end - first), step = below(9);
      bool isOut = below(6) == 0;
      for (unsigned i = 0; i < count; ++i, ++lane) {
        unsigned place = kind == 0   ? at
                         : kind == 1 ? at + i
                         : kind == 2 ? at + i * step
                         : kind == 3 ? at + 32 * i
                                     : below(end - first);
        pattern[lane] = isOut ? none : int(first + place % (end - first));
      }
    }
    return pattern;
  }

  /// `%r1`: the pattern's piece of this thread, `%p1`: whether it takes part;
  /// `%rd1`: its address.
  std::string pick(unsigned which) {
    std::string text = "mul.wide.u32 %rd2, %t, 4;\nadd.u64 %rd2, %rd2, %out;\n"
                       "ld.global.u32 %r1, [%rd2+" +
                       std::to_string(which * 128) +
                       "];\nsetp.ne.s32 %p1, %r1, -1;\n"
                       "selp.b32 %r2, %r1, 0, %p1;\nmul.wide.u32 %rd1, %r2, " +
                       std::to_string(GetParam().bytes) +
                       ";\nadd.u64 %rd1, %rd1, %rd3;\n";
    return text;
  }
  /// Each thread writes its words of the tile, which begins at `%rd3`.
  std::string fill() {
    std::string text = "mul.wide.u32 %rd4, %t, 4;\n";
    text += isShared()
                ? "mov.u64 %rd3, tile;\n"
                : "add.u64 %rd3, %out, " + std::to_string(tileAt * 4) + ";\n";
    text += "add.u64 %rd4, %rd4, %rd3;\nmov.u32 %r3, %t;\n";
    for (unsigned i = 0; i < tileWords / 32; ++i)
      text += "st." + std::string(GetParam().space) + ".u32 [%rd4+" +
              std::to_string(i * 128) + "], %r3;\nadd.u32 %r3, %r3, 32;\n";
    return text + "bar.sync 0;\n";
  }
  bool isShared() const {
    return llvm::StringRef(GetParam().space) == "shared";
  }
  std::string tile() const {
    return isShared() ? ".shared .align 16 .b8 tile[4096];" : "";
  }
  std::string form() const {
    return std::string(GetParam().space) + (GetParam().bytes == 16  ? ".v4.u32"
                                            : GetParam().bytes == 8 ? ".v2.u32"
                                                                    : ".u32");
  }
  std::string registers(const char *first) const {
    unsigned at = 0;
    llvm::StringRef(first).getAsInteger(10, at);
    unsigned count = GetParam().bytes / 4;
    std::string text = count > 1 ? "{" : "";
    for (unsigned i = 0; i < count; ++i)
      text += (i ? ", %r" : "%r") + std::to_string(at + i);
    return text + (count > 1 ? "}" : "");
  }

  /// As the banks serve it: by groups of lanes of 128 bytes, a word a cycle.
  /// What all lanes read in one place is given to all at once.
  unsigned cycles(const Pattern &pattern, bool isLoad) const {
    std::set<int> pieces(pattern.begin(), pattern.end());
    pieces.erase(none);
    if (isLoad && pieces.size() == 1)
      return 1;
    unsigned count = GetParam().bytes / 4, group = 32 / count, sum = 0;
    for (unsigned begin = 0; begin < 32; begin += group) {
      std::map<unsigned, std::set<unsigned>> banks;
      size_t most = 0;
      for (unsigned lane = begin; lane < begin + group; ++lane)
        for (unsigned i = 0; i < count && pattern[lane] != none; ++i) {
          unsigned word = pattern[lane] * count + i;
          banks[word % 32].insert(word);
          most = std::max(most, banks[word % 32].size());
        }
      sum += most;
    }
    return sum;
  }
  unsigned sectors(const Pattern &pattern) const {
    std::set<unsigned> all;
    for (int piece : pattern)
      if (piece != none)
        all.insert(piece * GetParam().bytes / 32);
    return all.size();
  }
  /// Two lanes that touch one piece, the first in `a`, the other in `b`.
  static bool meet(const Pattern &a, const Pattern &b) {
    for (unsigned t = 0; t < 32; ++t)
      for (unsigned u = 0; u < 32; ++u)
        if (t != u && a[t] != none && a[t] == b[u])
          return true;
    return false;
  }
  void put(unsigned which, const Pattern &pattern) {
    for (unsigned i = 0; i < 32; ++i)
      words[which * 32 + i] = uint32_t(pattern[i]);
  }
  static bool isAny(const Pattern &pattern) {
    return std::any_of(pattern.begin(), pattern.end(),
                       [](int piece) { return piece != none; });
  }
  bool hasRace(const LaunchResult &result) {
    for (const Finding &finding : result.findings)
      EXPECT_EQ(finding.kind,
                isShared() ? FindingKind::SharedRace : FindingKind::GlobalRace)
          << finding.text();
    return !result.findings.empty();
  }

  std::mt19937 random{7};
};

TEST_P(PatternsTest, LoadsAndStores) {
  unsigned count = GetParam().bytes / 4, pieces = tileWords / count;
  std::string text = tile() + fill() + pick(0);
  for (unsigned i = 0; i < 4; ++i)
    text += "mov.u32 %r" + std::to_string(10 + i) + ", 0;\nadd.u32 %r" +
            std::to_string(20 + i) + ", %t, " + std::to_string(100 * i) + ";\n";
  text += "@%p1 ld." + form() + " " + registers("10") + ", [%rd1];\n" +
          pick(1) + "@%p1 st." + form() + " [%rd1], " + registers("20") +
          ";\nst.global.u32 [%rd2+256], %r10;\nst.global.u32 [%rd2+384], %r1" +
          std::to_string(count - 1) + ";\nret;\n";
  unsigned races = 0, clean = 0;
  for (unsigned round = 0; round < 200; ++round) {
    words.assign(tileAt + tileWords, 0);
    // In three of four there is nothing in common.
    Pattern from = make(0, round % 4 ? pieces / 2 : pieces);
    Pattern to = make(round % 4 ? pieces / 2 : 0, pieces);
    if (round % 2)
      // A permutation, so that stores do not meet.
      for (unsigned i = 0; i < 32; ++i)
        to[i] = to[i] == none ? none : int(pieces / 2 + (i * 7 + round) % 32);
    if (round % 5 == 0) {
      // One lane alone writes, what it has read itself.
      unsigned lane = random() % 32;
      to.fill(none);
      to[lane] = from[lane];
    }
    put(0, from);
    put(1, to);
    LaunchResult result = run(kernel(text));
    ASSERT_TRUE(result.completed);
    bool isRace = meet(from, to) || meet(to, to);
    EXPECT_EQ(hasRace(result), isRace) << "round " << round;
    ++(isRace ? races : clean);
    for (unsigned i = 0; i < 32; ++i) {
      uint32_t first = from[i] == none ? 0 : from[i] * count;
      EXPECT_EQ(words[64 + i], first);
      EXPECT_EQ(words[96 + i], from[i] == none ? 0 : first + count - 1);
    }
    if (isShared()) {
      EXPECT_EQ(result.counters.bankCycles,
                tileWords / 32 + cycles(from, true) + cycles(to, false))
          << "round " << round;
      continue;
    }
    // The tile's words, the two patterns, and the results, whole each.
    EXPECT_EQ(result.counters.globalSectors,
              tileWords / 8 + 4 * 4 + sectors(from) + sectors(to))
        << "round " << round;
    EXPECT_EQ(result.counters.uniqueSectors, tileWords / 8 + 4 * 4);
    for (unsigned i = 0; i < 32 && !isRace; ++i)
      for (unsigned v = 0; v < count && to[i] != none; ++v)
        EXPECT_EQ(words[tileAt + to[i] * count + v], i + 100 * v);
  }
  EXPECT_GT(races, 10u);
  EXPECT_GT(clean, 10u);
}

class AtomicPatternsTest : public PatternsTest {};

TEST_P(AtomicPatternsTest, AtomicsAndLoads) {
  std::string space = GetParam().space;
  std::string update = pick(0) + "@%p1 atom." + space +
                       ".add.u32 %r10, [%rd1], %r12;\n",
              load = pick(1) + "@%p1 ld." + space + ".u32 %r11, [%rd1];\n";
  std::string before = tile() + fill() +
                       "mov.u32 %r10, 0;\nmov.u32 %r11, 0;\nmov.u32 %r12, 1;\n",
              after = "st.global.u32 [%rd2+256], %r10;\n"
                      "st.global.u32 [%rd2+384], %r11;\nret;\n";
  std::string texts[] = {before + update + load + after,
                         before + load + update + after};
  unsigned races = 0, clean = 0;
  for (unsigned round = 0; round < 100; ++round) {
    words.assign(tileAt + tileWords, 0);
    Pattern to = make(0, round % 3 ? 512 : 40);
    Pattern from = make(round % 3 ? 512 : 0, 1024);
    put(0, to);
    put(1, from);
    LaunchResult result = run(kernel(texts[round % 2]));
    ASSERT_TRUE(result.completed);
    bool isRace = meet(to, from);
    EXPECT_EQ(hasRace(result), isRace) << "round " << round;
    ++(isRace ? races : clean);
    std::map<int, std::multiset<uint32_t>> seen;
    for (unsigned i = 0; i < 32; ++i)
      if (to[i] != none)
        seen[to[i]].insert(words[64 + i]);
    unsigned lanes = 0;
    for (const auto &[piece, values] : seen) {
      // Each gets what the one before it left.
      uint32_t next = piece;
      for (uint32_t value : values)
        EXPECT_EQ(value, next++);
      lanes += values.size();
      if (!isShared())
        EXPECT_EQ(words[tileAt + piece], next);
    }
    EXPECT_EQ(result.counters.atomicSerial, lanes - seen.size());
  }
  EXPECT_GT(races, 5u);
  EXPECT_GT(clean, 5u);
}

std::string nameOfShape(const testing::TestParamInfo<Shape> &info) {
  return std::string(info.param.space) + std::to_string(info.param.bytes);
}

INSTANTIATE_TEST_SUITE_P(Forms, PatternsTest,
                         testing::Values(Shape{"shared", 4}, Shape{"shared", 8},
                                         Shape{"shared", 16},
                                         Shape{"global", 4}, Shape{"global", 8},
                                         Shape{"global", 16}),
                         nameOfShape);
INSTANTIATE_TEST_SUITE_P(Forms, AtomicPatternsTest,
                         testing::Values(Shape{"shared", 4},
                                         Shape{"global", 4}),
                         nameOfShape);

} // namespace
