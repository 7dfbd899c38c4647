// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// `wmma` from memory to memory, against plain products: all shapes, types,
// layouts and spaces, with strides that are longer than a row.
//
//===----------------------------------------------------------------------===//

#include "TensorTest.h"

namespace fsr::ptx {
namespace {

struct Form {
  unsigned m, n, k;
  Type factor, c, d;
  unsigned registersA, registersB;
};

class WmmaTest : public TensorTest {
protected:
  struct Matrix {
    Type type;
    unsigned rows, columns;
    bool isColumns;
    unsigned word = 0, stride = 0;
    size_t index(unsigned row, unsigned column) const {
      return isColumns ? size_t(column) * stride + row
                       : size_t(row) * stride + column;
    }
    unsigned runs() const { return isColumns ? columns : rows; }
  };

  double at(const Matrix &matrix, unsigned row, unsigned column) const {
    return decode(matrix.type,
                  element(matrix.type, matrix.word, matrix.index(row, column)));
  }

  void layOut(llvm::ArrayRef<Matrix *> all) {
    unsigned word = 0;
    for (Matrix *one : all) {
      unsigned length = one->isColumns ? one->rows : one->columns;
      // 16 bytes more than a run.
      one->stride = length + 128 / bitsOf(one->type);
      one->word = word;
      word += one->stride * one->runs() * bitsOf(one->type) / 32;
    }
    words.assign(word, 0);
  }

  void draw(const Matrix &matrix) {
    for (unsigned row = 0; row < matrix.rows; ++row)
      for (unsigned column = 0; column < matrix.columns; ++column)
        setElement(matrix.type, matrix.word, matrix.index(row, column),
                   TensorTest::draw(matrix.type));
  }

  static std::string layout(const Matrix &matrix) {
    return matrix.isColumns ? "col" : "row";
  }
  static std::string list(Type type, unsigned first, unsigned count) {
    std::string text = "{";
    for (unsigned i = 0; i < count; ++i)
      text += (i ? ", " : "") + std::string(type == Type::F64 ? "%rd" : "%r") +
              std::to_string(first + i);
    return text + "}";
  }
  static unsigned accumulators(Type type) {
    return type == Type::F16 ? 4 : type == Type::F64 ? 2 : 8;
  }

  /// More registers than the usual kernel has.
  static std::string kernelOf(const std::string &body) {
    return kernel(".reg .b32 %a<9>;\n.reg .b32 %b<9>;\n" + body + "ret;");
  }
};

constexpr Form forms[] = {
    {16, 16, 16, Type::F16, Type::F32, Type::F32, 8, 8},
    {16, 16, 16, Type::F16, Type::F16, Type::F16, 8, 8},
    {16, 16, 16, Type::F16, Type::F16, Type::F32, 8, 8},
    {32, 8, 16, Type::F16, Type::F32, Type::F32, 8, 8},
    {8, 32, 16, Type::F16, Type::F32, Type::F16, 8, 8},
    {16, 16, 16, Type::BF16, Type::F32, Type::F32, 4, 4},
    {32, 8, 16, Type::BF16, Type::F32, Type::F32, 8, 2},
    {8, 32, 16, Type::BF16, Type::F32, Type::F32, 2, 8},
    {16, 16, 8, Type::TF32, Type::F32, Type::F32, 4, 4},
    {16, 16, 16, Type::S8, Type::S32, Type::S32, 2, 2},
    {32, 8, 16, Type::U8, Type::S32, Type::S32, 4, 1},
    {8, 32, 16, Type::S8, Type::S32, Type::S32, 1, 4},
    {8, 8, 4, Type::F64, Type::F64, Type::F64, 1, 1},
};

TEST_F(WmmaTest, AgreesWithPlainProducts) {
  unsigned turn = 0;
  for (const Form &form : forms)
    for (unsigned layouts = 0; layouts < 4; ++layouts) {
      std::string shape = "m" + std::to_string(form.m) + "n" +
                          std::to_string(form.n) + "k" + std::to_string(form.k);
      std::string name = nameOf(form.factor).str();
      SCOPED_TRACE(shape + " " + name + " " + std::to_string(layouts));
      Matrix a{form.factor, form.m, form.k, bool(layouts & 1)};
      Matrix b{form.factor, form.k, form.n, bool(layouts & 2)};
      Matrix c{form.c, form.m, form.n, layouts == 1 || layouts == 2};
      Matrix d{form.d, form.m, form.n, layouts >= 2};
      layOut({&a, &b, &c, &d});
      for (Matrix *one : {&a, &b, &c})
        draw(*one);
      std::string space = ++turn % 2 ? ".global" : "";
      std::string body;
      auto load = [&](const char *which, const Matrix &matrix,
                      const std::string &registers) {
        body += "add.u64 %rd10, %out, " + std::to_string(matrix.word * 4) +
                ";\nwmma.load." + which + ".sync.aligned." + layout(matrix) +
                "." + shape + space + "." + nameOf(matrix.type).str() + " " +
                registers + ", [%rd10], " + std::to_string(matrix.stride) +
                ";\n";
      };
      std::string ra = list(form.factor, 1, form.registersA);
      std::string rb = list(form.factor, 1 + form.registersA, form.registersB);
      std::string rc = list(form.c, 20, accumulators(form.c));
      std::string rd = list(form.d, 30, accumulators(form.d));
      load("a", a, ra);
      load("b", b, rb);
      load("c", c, rc);
      std::string types =
          form.factor == Type::F16
              ? "." + nameOf(form.d).str() + "." + nameOf(form.c).str()
              : "." + nameOf(form.d).str() + "." + name + "." + name + "." +
                    nameOf(form.c).str();
      body += "wmma.mma.sync.aligned." + layout(a) + "." + layout(b) + "." +
              shape + types + " " + rd + ", " + ra + ", " + rb + ", " + rc +
              ";\nadd.u64 %rd10, %out, " + std::to_string(d.word * 4) +
              ";\nmov.u32 %r19, " + std::to_string(d.stride) +
              ";\nwmma.store.d.sync.aligned." + layout(d) + "." + shape +
              space + "." + nameOf(d.type).str() + " [%rd10], " + rd +
              ", %r19;\n";
      LaunchResult result = runClean(kernelOf(body));
      EXPECT_TRUE(result.proof.holds);
      EXPECT_EQ(result.counters.tensorFlops, 2 * form.m * form.n * form.k);
      for (unsigned row = 0; row < form.m; ++row)
        for (unsigned column = 0; column < form.n; ++column) {
          double wanted = at(c, row, column);
          for (unsigned k = 0; k < form.k; ++k)
            wanted += at(a, row, k) * at(b, k, column);
          double got = at(d, row, column);
          if (form.d == Type::F16)
            EXPECT_LE(std::fabs(got - wanted),
                      std::ldexp(std::max(std::fabs(wanted), 0x1p-14), -11));
          else
            EXPECT_EQ(got, form.d == Type::F32 ? double(float(wanted)) : wanted)
                << row << " " << column;
        }
    }
}

TEST_F(WmmaTest, ElementsOneByOne) {
  // All elements times 2, wherever they lie.
  Matrix c{Type::F32, 16, 16, false}, d{Type::F32, 16, 16, true};
  layOut({&c, &d});
  draw(c);
  std::string body =
      "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%f1,%f2,%f3,%f4,%f5,"
      "%f6,%f7,%f8}, [%out], 20;\n";
  for (unsigned i = 1; i <= 8; ++i)
    body += "add.f32 %f" + std::to_string(i) + ", %f" + std::to_string(i) +
            ", %f" + std::to_string(i) + ";\n";
  body += "add.u64 %rd10, %out, " + std::to_string(d.word * 4) +
          ";\nwmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%rd10], "
          "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, 20;\n";
  runClean(kernelOf(body));
  for (unsigned row = 0; row < 16; ++row)
    for (unsigned column = 0; column < 16; ++column)
      EXPECT_EQ(at(d, row, column), 2 * at(c, row, column));
}

TEST_F(WmmaTest, Faults) {
  words.assign(16 * 16, 0);
  auto load = [&](const std::string &place, const std::string &stride) {
    return kernelOf("shl.b32 %r15, %t, 4;\n"
                    "wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {%r1,"
                    "%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [" +
                    place + "], " + stride + ";\n");
  };
  runClean(load("%out", "16"));
  runFaulty(load("%out+16", "16"), FindingKind::OutOfBounds);
  runFaulty(load("%out+4", "8"), FindingKind::Misaligned);
  Finding finding = runFaulty(load("%out", "15"), FindingKind::Misaligned);
  EXPECT_EQ(finding.message, "a stride of 15 elements is 60 bytes, which is no "
                             "multiple of 16");
  runFaulty(load("%out", "%r15"), FindingKind::Other);
  // 8 bytes of a lane: a row of 16 bytes may begin at a multiple of 8.
  runClean(kernelOf("wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r1, "
                    "%r2}, [%out+8], 24;\n"));
  runFaulty(kernelOf("wmma.load.a.sync.aligned.row.m16n16k16.global.s8 {%r1, "
                     "%r2}, [%out], 20;\n"),
            FindingKind::Misaligned);
}

TEST_F(WmmaTest, SharedMemoryNeedsBarriers) {
  words.assign(64 * 8, 0);
  shape.block = {64, 1, 1};
  auto text = [&](const char *barrier) {
    return kernelOf(
        std::string(".shared .align 32 .b8 tile[1024];\nmov.u32 %r9, tile;\n"
                    "shl.b32 %r10, %t, 4;\nadd.u32 %r10, %r10, %r9;\n"
                    "st.shared.v4.b32 [%r10], {%t, %t, %t, %t};\n") +
        barrier +
        "wmma.load.c.sync.aligned.row.m16n16k16.shared.s32 {%r1,%r2,%r3,%r4,"
        "%r5,%r6,%r7,%r8}, [%r9];\n"
        "setp.ge.u32 %p1, %t, 32;\n@%p1 bra done;\n"
        "wmma.store.d.sync.aligned.row.m16n16k16.global.s32 [%out], {%r1,%r2,"
        "%r3,%r4,%r5,%r6,%r7,%r8}, 16;\ndone:\n");
  };
  runClean(text("bar.sync 0;\n"));
  EXPECT_EQ(words[255], 63u);
  LaunchResult result = run(text(""));
  EXPECT_TRUE(llvm::any_of(result.findings, [](const Finding &finding) {
    return finding.kind == FindingKind::SharedRace &&
           llvm::StringRef(finding.ptxText).starts_with("wmma.load");
  }));
}

} // namespace
} // namespace fsr::ptx
