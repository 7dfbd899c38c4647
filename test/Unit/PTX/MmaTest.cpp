// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `mma` against plain products: where each element of a fragment lies is
// written here as the PTX ISA has it, form by form.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/PTX/Float.h"
#include "../../../lib/PTX/Tensor.h"
#include "TensorTest.h"

namespace fsr::ptx {
namespace {

struct Place {
  int row, column;
};
/// Of element `i` in the group `g` of lanes and the lane `t` of the group.
using Layout = Place (*)(int i, int g, int t);

Place a16k16(int i, int g, int t) {
  bool isUpper = i < 2 || (i >= 4 && i < 6);
  return {isUpper ? g : g + 8, t * 2 + (i & 1) + (i >= 4 ? 8 : 0)};
}
Place a16k8(int i, int g, int t) {
  return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
}
Place b16(int i, int g, int t) {
  return {t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g};
}
Place aTf8(int i, int g, int t) {
  return {i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
}
Place aTf4(int i, int g, int t) { return {i == 0 ? g : g + 8, t}; }
Place bTf(int i, int g, int t) { return {i == 0 ? t : t + 4, g}; }
Place a8k32(int i, int g, int t) {
  bool isUpper = i < 4 || (i >= 8 && i < 12);
  return {isUpper ? g : g + 8, t * 4 + (i & 3) + (i >= 8 ? 16 : 0)};
}
Place a8k16(int i, int g, int t) {
  return {i < 4 ? g : g + 8, t * 4 + (i & 3)};
}
Place a8m8(int i, int g, int t) { return {g, t * 4 + i}; }
Place b8(int i, int g, int t) {
  return {t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g};
}
Place a64m8(int, int g, int t) { return {g, t}; }
Place a64k16(int i, int g, int t) {
  return {i % 2 ? g + 8 : g, i % 2 ? i * 2 - 2 + t : i * 2 + t};
}
Place b64(int i, int g, int t) { return {t + i * 4, g}; }
Place accumulator(int i, int g, int t) {
  return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
}

struct Form {
  const char *name; ///< Behind `mma.sync.aligned.`
  unsigned m, k;
  Type a, b, c;
  Layout layoutA, layoutB;
};

constexpr Form forms[] = {
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 16, Type::F16, Type::F16,
     Type::F32, a16k16, b16},
    {"m16n8k16.row.col.f16.f16.f16.f16", 16, 16, Type::F16, Type::F16,
     Type::F16, a16k16, b16},
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, Type::F16, Type::F16, Type::F32,
     a16k8, b16},
    {"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, Type::F16, Type::F16, Type::F16,
     a16k8, b16},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 16, Type::BF16, Type::BF16,
     Type::F32, a16k16, b16},
    {"m16n8k8.row.col.f32.bf16.bf16.f32", 16, 8, Type::BF16, Type::BF16,
     Type::F32, a16k8, b16},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, Type::TF32, Type::TF32,
     Type::F32, aTf8, bTf},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 4, Type::TF32, Type::TF32,
     Type::F32, aTf4, bTf},
    {"m16n8k32.row.col.s32.s8.s8.s32", 16, 32, Type::S8, Type::S8, Type::S32,
     a8k32, b8},
    {"m16n8k32.row.col.satfinite.s32.u8.s8.s32", 16, 32, Type::U8, Type::S8,
     Type::S32, a8k32, b8},
    {"m16n8k16.row.col.s32.s8.u8.s32", 16, 16, Type::S8, Type::U8, Type::S32,
     a8k16, b8},
    {"m8n8k16.row.col.s32.u8.u8.s32", 8, 16, Type::U8, Type::U8, Type::S32,
     a8m8, b8},
    {"m16n8k32.row.col.f32.e4m3.e4m3.f32", 16, 32, Type::E4M3, Type::E4M3,
     Type::F32, a8k32, b8},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 16, 32, Type::E4M3, Type::E5M2,
     Type::F32, a8k32, b8},
    {"m16n8k32.row.col.f16.e5m2.e5m2.f16", 16, 32, Type::E5M2, Type::E5M2,
     Type::F16, a8k32, b8},
    {"m16n8k16.row.col.f32.e5m2.e4m3.f32", 16, 16, Type::E5M2, Type::E4M3,
     Type::F32, a8k16, b8},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 4, Type::F64, Type::F64, Type::F64,
     a64m8, b64},
    {"m16n8k4.row.col.f64.f64.f64.f64", 16, 4, Type::F64, Type::F64, Type::F64,
     aTf4, b64},
    {"m16n8k8.row.col.f64.f64.f64.f64", 16, 8, Type::F64, Type::F64, Type::F64,
     aTf8, b64},
    {"m16n8k16.row.col.rn.f64.f64.f64.f64", 16, 16, Type::F64, Type::F64,
     Type::F64, a64k16, b64},
};

class MmaTest : public TensorTest {
protected:
  /// Words and registers of a fragment of one lane.
  struct Fragment {
    Type type;
    unsigned elements, word = 0;
    unsigned cellWords() const { return bitsOf(type) == 64 ? 2 : 1; }
    unsigned registers() const {
      return bitsOf(type) >= 32 ? elements : elements * bitsOf(type) / 32;
    }
    unsigned laneWords() const { return registers() * cellWords(); }
  };

  void layOut(const Form &form) {
    a = {form.a, form.m * form.k / 32};
    b = {form.b, form.k * 8 / 32};
    c = {form.c, form.m * 8 / 32};
    d = c;
    unsigned word = 0;
    for (Fragment *one : {&a, &b, &c, &d}) {
      one->word = word;
      word += one->laneWords() * 32;
    }
    words.assign(word, 0);
  }

  /// Each lane's registers one after the other.
  static std::string moves(const Fragment &fragment, unsigned first,
                           bool isLoad) {
    std::string text;
    bool isWide = fragment.cellWords() == 2;
    std::string reg = isWide ? "%rd" : "%r", type = isWide ? ".b64" : ".b32";
    text += "mad.wide.u32 %rd39, %t, " +
            std::to_string(fragment.laneWords() * 4) + ", %out;\n";
    for (unsigned i = 0; i < fragment.registers(); ++i) {
      std::string place =
          "[%rd39+" +
          std::to_string(fragment.word * 4 + i * fragment.cellWords() * 4) +
          "]";
      std::string name = reg + std::to_string(first + i);
      text += isLoad ? "ld.global" + type + " " + name + ", " + place + ";\n"
                     : "st.global" + type + " " + place + ", " + name + ";\n";
    }
    return text;
  }
  static std::string list(const Fragment &fragment, unsigned first) {
    std::string text = "{";
    for (unsigned i = 0; i < fragment.registers(); ++i)
      text += (i ? ", " : "") +
              std::string(fragment.cellWords() == 2 ? "%rd" : "%r") +
              std::to_string(first + i);
    return text + "}";
  }
  std::string product(const Form &form) const {
    return std::string("mma.sync.aligned.") + form.name + " " + list(d, 30) +
           ", " + list(a, 1) + ", " + list(b, 10) + ", " + list(c, 20) + ";\n";
  }
  std::string text(const Form &form) const {
    return kernel(moves(a, 1, true) + moves(b, 10, true) + moves(c, 20, true) +
                  product(form) + moves(d, 30, false) + "ret;");
  }

  double at(const Fragment &fragment, unsigned lane, unsigned i) const {
    return decode(
        fragment.type,
        element(fragment.type, fragment.word + lane * fragment.laneWords(), i));
  }
  void set(const Fragment &fragment, unsigned lane, unsigned i,
           uint64_t value) {
    setElement(fragment.type, fragment.word + lane * fragment.laneWords(), i,
               value);
  }

  Fragment a, b, c, d;
};

TEST_F(MmaTest, AgreesWithPlainProducts) {
  for (const Form &form : forms) {
    SCOPED_TRACE(form.name);
    layOut(form);
    for (const Fragment *one : {&a, &b, &c})
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < one->elements; ++i)
          set(*one, lane, i, draw(one->type));
    double ma[16][32], mb[32][8], md[16][8];
    for (int lane = 0; lane < 32; ++lane) {
      int g = lane / 4, t = lane % 4;
      for (unsigned i = 0; i < a.elements; ++i) {
        Place place = form.layoutA(int(i), g, t);
        ma[place.row][place.column] = at(a, lane, i);
      }
      for (unsigned i = 0; i < b.elements; ++i) {
        Place place = form.layoutB(int(i), g, t);
        mb[place.row][place.column] = at(b, lane, i);
      }
      for (unsigned i = 0; i < c.elements; ++i) {
        Place place = accumulator(int(i), g, t);
        md[place.row][place.column] = at(c, lane, i);
      }
    }
    for (unsigned m = 0; m < form.m; ++m)
      for (unsigned n = 0; n < 8; ++n)
        for (unsigned k = 0; k < form.k; ++k)
          md[m][n] += ma[m][k] * mb[k][n];
    LaunchResult result = runClean(text(form));
    EXPECT_EQ(result.counters.tensor, 1u);
    EXPECT_EQ(result.counters.tensorFlops, 2 * form.m * 8 * form.k);
    EXPECT_EQ(result.fidelity.approximate.empty(), form.c == Type::S32);
    for (int lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < d.elements; ++i) {
        Place place = accumulator(int(i), lane / 4, lane % 4);
        double wanted = md[place.row][place.column], got = at(d, lane, i);
        if (form.c == Type::F16)
          // Half a unit in the last place.
          EXPECT_LE(std::fabs(got - wanted),
                    std::ldexp(std::max(std::fabs(wanted), 0x1p-14), -11))
              << lane << " " << i;
        else
          EXPECT_EQ(got, form.c == Type::F32 ? double(float(wanted)) : wanted)
              << lane << " " << i;
      }
  }
}

TEST_F(MmaTest, BothSetsOfHandlersAgree) {
  if (!hasWideVectors())
    GTEST_SKIP() << "needs an x86-64 CPU with AVX2, FMA and F16C";
  for (const Form &form : forms) {
    SCOPED_TRACE(form.name);
    layOut(form);
    MultiplyInfo info;
    std::array<float, 256> values;
    for (float &value : values)
      value = float(int(numbers() % 256) - 128) / 16;
    info.eighthsA = info.eighthsB = values.data();
    info.halfC = info.halfD = form.c == Type::F16;
    info.isSignedA = true;
    unsigned count = a.registers() + b.registers() + c.registers();
    Op op;
    op.info = &info;
    op.numResults = uint8_t(d.registers());
    op.numSources = uint8_t(count);
    for (unsigned i = 0; i < d.registers(); ++i)
      op.slots.push_back(count + i);
    for (unsigned i = 0; i < count; ++i)
      op.slots.push_back(i);
    std::vector<uint64_t> registers[2];
    // Some are infinite or no numbers.
    std::vector<uint64_t> start((count + d.registers()) * warpLanes);
    for (uint64_t &cell : start)
      cell = uint64_t(numbers()) << 32 | numbers();
    for (bool isWide : {false, true}) {
      Type family = form.a == Type::U8     ? Type::S8
                    : form.a == Type::E5M2 ? Type::E4M3
                                           : form.a;
      registers[isWide] = start;
      Warp warp;
      warp.bases[0] = reinterpret_cast<uint8_t *>(registers[isWide].data());
      Handler run = mmaHandler(family, {form.m, 8, form.k}, isWide);
      ASSERT_TRUE(run);
      run(warp, op, allLanes);
    }
    EXPECT_EQ(registers[0], registers[1]);
    EXPECT_NE(registers[0], start);
  }
}

TEST_F(MmaTest, SaturatesOrWraps) {
  for (const char *name : {"m8n8k16.row.col.satfinite.s32.s8.s8.s32",
                           "m8n8k16.row.col.s32.s8.s8.s32"}) {
    Form form{name, 8, 16, Type::S8, Type::S8, Type::S32, a8m8, b8};
    layOut(form);
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < 4; ++i) {
        set(a, lane, i, 127);
        set(b, lane, i, lane < 16 ? 127 : 0x80);
      }
      for (unsigned i = 0; i < 2; ++i)
        set(c, lane, i, lane % 4 < 2 ? 0x7fffffff : 0x80000000);
    }
    runClean(text(form));
    int64_t up = 16 * 127 * 127, down = -16 * 127 * 128;
    bool isSaturating = std::string(name).find("sat") != std::string::npos;
    // Columns 0 to 3 come from lanes below 16.
    EXPECT_EQ(int32_t(words[d.word]),
              isSaturating ? INT32_MAX : int32_t(INT32_MAX + up));
    EXPECT_EQ(int32_t(words[d.word + 3 * 2]),
              isSaturating ? INT32_MIN : int32_t(INT32_MIN + down));
  }
}

TEST_F(MmaTest, RoundsOnceAndKeepsWhatIsNoNumber) {
  const Form &form = forms[0];
  layOut(form);
  auto setRow = [&](unsigned row, uint64_t first, uint64_t second,
                    float start) {
    set(a, row * 4, 0, first);
    set(a, row * 4, 1, second);
    uint32_t bits;
    std::memcpy(&bits, &start, 4);
    set(c, row * 4, 0, bits);
  };
  // Column 0 of B is one.
  for (unsigned lane = 0; lane < 4; ++lane)
    for (unsigned i = 0; i < 4; ++i)
      set(b, lane, i, 0x3c00);
  setRow(0, 0x7c00, 0x3c00, 1);       // Infinity.
  setRow(1, 0x7c00, 0xfc00, 1);       // Infinity less infinity.
  setRow(2, 0x0001, 0x0001, 0);       // Subnormals.
  setRow(3, 0x0001, 0x8000, 0x1p24f); // Vanishes.
  setRow(4, 0x3c00, 0x0001, 0x1p24f); // More than half of a unit.
  setRow(5, 0x7e01, 0x3c00, 0);       // Not a number.
  runClean(text(form));
  auto got = [&](unsigned row) {
    return uint32_t(element(Type::F32, d.word + row * 4 * d.laneWords(), 0));
  };
  EXPECT_EQ(got(0), 0x7f800000u);
  EXPECT_EQ(got(1), 0x7fffffffu);
  EXPECT_EQ(single(got(2)), 0x1p-23);
  EXPECT_EQ(single(got(3)), 0x1p24);
  EXPECT_EQ(single(got(4)), 0x1p24 + 2);
  EXPECT_EQ(got(5), 0x7fffffffu);
}

TEST_F(MmaTest, AllSchedules) {
  const Form &form = forms[8];
  std::vector<uint32_t> first;
  for (Schedule schedule :
       {Schedule::Lockstep, Schedule::SplitLanes, Schedule::RandomWarps}) {
    options.schedule = schedule;
    layOut(form);
    numbers.seed(5);
    for (const Fragment *one : {&a, &b, &c})
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < one->elements; ++i)
          set(*one, lane, i, draw(one->type));
    runClean(text(form));
    if (first.empty())
      first = words;
    EXPECT_EQ(first, words);
  }
}

TEST_F(MmaTest, OrdersNoMemory) {
  layOut(forms[0]);
  auto text = [&](const char *between) {
    return kernel(".shared .align 4 .b8 data[128];\n" + moves(a, 1, true) +
                  moves(b, 10, true) + moves(c, 20, true) +
                  "mov.u32 %r5, data;\nmad.lo.u32 %r6, %t, 4, %r5;\n"
                  "xor.b32 %r7, %r6, 4;\nst.shared.u32 [%r6], %t;\n" +
                  product(forms[0]) + between +
                  "ld.shared.u32 %r8, [%r7];\n"
                  "ret;");
  };
  runClean(text("bar.warp.sync 0xffffffff;\n"));
  runFaulty(text(""), FindingKind::SharedRace);
}

TEST_F(MmaTest, AllLanesHaveToCome) {
  layOut(forms[0]);
  shape.block = {16, 1, 1};
  Finding finding = runFaulty(text(forms[0]), FindingKind::ShuffleMask);
  EXPECT_EQ(finding.message, "only lanes 0-15 come to it; all 32 lanes of the "
                             "warp have to");
}

TEST_F(MmaTest, DependenceCrossesLanes) {
  layOut(forms[0]);
  // The first lane's result is taken for an address.
  std::string body = moves(a, 1, true) + moves(b, 10, true) +
                     moves(c, 20, true) + product(forms[0]) +
                     "and.b32 %r5, %r30, 0;\ncvt.u64.u32 %rd1, %r5;\n"
                     "add.u64 %rd1, %rd1, %out;\nsetp.ne.u32 %p1, %t, 0;\n"
                     "@%p1 ret;\nld.global.b32 %r6, [%rd1];\nret;";
  unsigned module = cantFail(gpu->loadModule(kernel(body)));
  uint64_t bytes = words.size() * 4, buffer = cantFail(gpu->allocate(bytes));
  cantFail(gpu->write(buffer, words.data(), bytes));
  uint8_t params[8];
  std::memcpy(params, &buffer, 8);
  for (bool isTainted : {false, true}) {
    // A register of the last lane.
    cantFail(gpu->setTainted(buffer + a.word * 4 + 31 * a.laneWords() * 4, 4,
                             isTainted));
    LaunchResult result =
        cantFail(gpu->launch(module, "k", shape, params, options));
    EXPECT_EQ(result.proof.isSteered, isTainted);
    EXPECT_TRUE(result.fidelity.approximateSteers);
  }
}

TEST_F(MmaTest, UnknownForms) {
  auto message = [&](const std::string &line) {
    llvm::Expected<LaunchResult> result = tryRun(kernel(line + "\nret;"));
    return result ? std::string() : toString(result.takeError());
  };
  EXPECT_NE(message("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r1,%r2,"
                    "%r3,%r4}, {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%r1,%r2,%r3,"
                    "%r4};")
                .find("modifier .s4 is not supported"),
            std::string::npos);
  EXPECT_NE(message("mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 {%f1,"
                    "%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r1,%r2}, {%f1,%f2,%f3,"
                    "%f4};")
                .find("is not supported"),
            std::string::npos);
  EXPECT_NE(message("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,"
                    "%f2,%f3,%f4}, {%r1,%r2}, {%r1,%r2}, {%f1,%f2,%f3,%f4};")
                .find("a fragment of 4 registers wanted, got 2"),
            std::string::npos);
  EXPECT_NE(message("wgmma.fence.sync.aligned;")
                .find("instructions of several warps' tensor cores"),
            std::string::npos);
}

} // namespace
} // namespace fsr::ptx
