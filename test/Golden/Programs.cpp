// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes the random kernels. Registers: r for 32 bits, x for 64, f for f32, v
// for f64, h for f16x2, p for predicates. All begin with something of the
// input, and all end in the output, so that a difference is told by register.
//
// Which bits a NaN of f64 has depends on the order of operands, which compilers
// are free to swap; each result that may be one is replaced. Products and sums
// name their rounding, or they could be fused.
//
//===----------------------------------------------------------------------===//

#include "Programs.h"
#include "Form.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"

#include <cstring>

namespace fsr::golden {

namespace {

class Generator {
public:
  explicit Generator(uint64_t seed) : random(seed * 2 + 1), os(text) {}

  std::string run() {
    os << moduleHeader
       << ".visible .entry k(.param .u64 pin, .param .u64 pout)\n"
       << "{\n  .reg .b64 %in, %out, %at;\n"
          "  .reg .b32 %i, %n, %thread, %block, %s, %l, %mine;\n"
          "  .reg .b16 %h1, %h2;\n  .reg .b32 %c<16>, %u;\n  .reg .pred "
          "%q<16>;\n"
          "  .reg .b32 %r<8>;\n  .reg .b64 %x<4>;\n  .reg .f32 %f<6>;\n"
          "  .reg .f64 %v<3>;\n  .reg .b32 %g<3>;\n  .reg .pred %p<4>;\n"
          "  .shared .align 16 .b8 tile[1536];\n"
          "  .local .align 16 .b8 array[64];\n"
          "  ld.param.u64 %in, [pin];\n  ld.param.u64 %out, [pout];\n"
          "  mov.u32 %thread, %tid.x;\n  mov.u32 %block, %ctaid.x;\n"
       << "  mad.lo.u32 %i, %block, " << programBlock << ", %thread;\n"
       << "  mad.wide.u32 %at, %i, " << programInputs * 8 << ", %in;\n"
       << "  mad.wide.u32 %out, %i, " << programOutputs * 8 << ", %out;\n"
       << "  mov.u32 %mine, tile;\n  mad.lo.u32 %mine, %thread, 8, %mine;\n";
    for (unsigned i = 0; i < 8; ++i)
      os << "  ld.global.b32 %r" << i << ", [%at+" << i * 8 << "];\n";
    for (unsigned i = 0; i < 4; ++i)
      os << "  ld.global.b64 %x" << i << ", [%at+" << i * 16 << "];\n";
    for (unsigned i = 0; i < 6; ++i)
      os << "  ld.global.b32 %f" << i << ", [%at+" << i * 8 + 4 << "];\n";
    for (unsigned i = 0; i < 3; ++i) {
      os << "  cvt.rn.f64.s64 %v" << i << ", %x" << i + 1 << ";\n";
      os << "  ld.global.b32 %g" << i << ", [%at+" << i * 12 << "];\n";
    }
    for (unsigned i = 0; i < 4; ++i)
      os << "  setp.lt.s32 %p" << i << ", %r" << i << ", %r" << i + 4 << ";\n";
    os << "  mov.u32 %l, array;\n";
    for (unsigned i = 0; i < 16; ++i)
      os << "  st.local.b32 [%l+" << i * 4 << "], %r" << i % 8 << ";\n";
    budget = 20 + random.below(200);
    block(0, true);
    os << "DONE:\n";
    unsigned at = 0;
    auto store = [&](const char *type, const llvm::Twine &name) {
      os << "  st.global." << type << " [%out+" << at++ * 8 << "], " << name
         << ";\n";
    };
    for (unsigned i = 0; i < 8; ++i)
      store("b32", "%r" + llvm::Twine(i));
    for (unsigned i = 0; i < 4; ++i)
      store("b64", "%x" + llvm::Twine(i));
    for (unsigned i = 0; i < 6; ++i)
      store("f32", "%f" + llvm::Twine(i));
    for (unsigned i = 0; i < 3; ++i)
      store("f64", "%v" + llvm::Twine(i));
    for (unsigned i = 0; i < 3; ++i)
      store("b32", "%g" + llvm::Twine(i));
    os << "  ret;\n}\n";
    return text;
  }

private:
  std::string pick(const char *prefix, unsigned count) {
    return std::string("%") + prefix + std::to_string(random.below(count));
  }
  std::string r() { return pick("r", 8); }
  std::string x() { return pick("x", 4); }
  std::string f() { return pick("f", 6); }
  std::string v() { return pick("v", 3); }
  std::string g() { return pick("g", 3); }
  std::string p() { return pick("p", 4); }
  /// A register or a number.
  std::string word() {
    switch (random.below(6)) {
    case 0:
      return std::to_string(random.below(64));
    case 1:
      return std::to_string(int(random.next()));
    default:
      return r();
    }
  }
  std::string count() {
    return random.below(3) ? std::to_string(random.below(40)) : r();
  }
  std::string one(std::initializer_list<const char *> names) {
    return names.begin()[random.below(unsigned(names.size()))];
  }
  /// A list, since its parts are made from left to right, other than a sum's.
  void put(std::initializer_list<std::string> parts) {
    os << "  ";
    for (const std::string &part : parts)
      os << part;
    os << ";\n";
  }

  void integer() {
    switch (random.below(22)) {
    case 0:
      return put({one({"add", "sub", "min", "max", "mul.lo", "mul.hi"}),
                  one({".s32 ", ".u32 "}), r(), ", ", r(), ", ", word()});
    case 1:
      return put(
          {one({"and", "or", "xor"}), ".b32 ", r(), ", ", r(), ", ", word()});
    case 2:
      return put({one({"shl.b32 ", "shr.u32 ", "shr.s32 "}), r(), ", ", r(),
                  ", ", word()});
    case 3:
      return put({one({"mad.lo.s32 ", "mad.hi.u32 ", "mad.lo.u32 "}), r(), ", ",
                  r(), ", ", word(), ", ", r()});
    case 4:
      return put({one({"popc.b32 ", "clz.b32 ", "brev.b32 ", "not.b32 ",
                       "bfind.u32 ", "neg.s32 ", "abs.s32 ", "cnot.b32 "}),
                  r(), ", ", r()});
    case 5:
      return put({"lop3.b32 ", r(), ", ", r(), ", ", r(), ", ", word(), ", ",
                  std::to_string(random.below(256))});
    case 6:
      return put({"prmt.b32",
                  one({"", ".f4e", ".b4e", ".rc8", ".ecl", ".rc16"}), " ", r(),
                  ", ", r(), ", ", r(), ", ", word()});
    case 7:
      return put({one({"bfe.u32 ", "bfe.s32 "}), r(), ", ", r(), ", ", count(),
                  ", ", count()});
    case 8:
      return put({"bfi.b32 ", r(), ", ", r(), ", ", r(), ", ", count(), ", ",
                  count()});
    case 9:
      return put(
          {one({"shf.l.clamp", "shf.r.wrap", "shf.l.wrap", "shf.r.clamp"}),
           ".b32 ", r(), ", ", r(), ", ", r(), ", ", word()});
    case 10: { // Never by zero.
      put({"or.b32 %u, ", r(), ", ", std::to_string(1 + random.below(99))});
      return put({one({"div.u32 ", "rem.u32 ", "div.s32 ", "rem.s32 "}), r(),
                  ", ", r(), ", %u"});
    }
    case 11:
      return put(
          {one({"mul.wide.s32 ", "mul.wide.u32 "}), x(), ", ", r(), ", ", r()});
    case 12:
      return put({one({"mad.wide.s32 ", "mad.wide.u32 "}), x(), ", ", r(), ", ",
                  r(), ", ", x()});
    case 13:
      return put({one({"add.s64 ", "sub.s64 ", "mul.lo.s64 ", "mul.hi.u64 ",
                       "min.s64 ", "max.u64 ", "xor.b64 ", "and.b64 "}),
                  x(), ", ", x(), ", ", x()});
    case 14:
      return put({one({"shl.b64 ", "shr.u64 ", "shr.s64 "}), x(), ", ", x(),
                  ", ", word()});
    case 15:
      return put({"mov.b64 ", x(), ", {", r(), ", ", r(), "}"});
    case 16:
      put({"mov.b64 {%u, ", r(), "}, ", x()});
      return put({"xor.b32 ", r(), ", %u, ", r()});
    case 17:
      return put({one({"dp4a.s32.u32 ", "dp4a.u32.u32 ", "dp2a.lo.s32.s32 "}),
                  r(), ", ", r(), ", ", r(), ", ", r()});
    case 18: {
      std::string carry = one({"add", "sub"});
      put({carry, ".cc.u32 ", r(), ", ", r(), ", ", word()});
      return put({carry, "c.u32 ", r(), ", ", r(), ", ", word()});
    }
    case 19:
      return put({one({"sad.s32 ", "sad.u32 "}), r(), ", ", r(), ", ", r(),
                  ", ", word()});
    case 20:
      return put({one({"cvt.s64.s32 ", "cvt.u64.u32 "}), x(), ", ", r()});
    default:
      return put({one({"cvt.u32.u64 ", "cvt.sat.s32.s64 ", "cvt.sat.u32.s64 "}),
                  r(), ", ", x()});
    }
  }

  std::string rounding() {
    return one({".rn", ".rn", ".rn", ".rz", ".rm", ".rp"});
  }
  std::string flush() { return one({"", "", ".ftz"}); }

  void single() {
    switch (random.below(11)) {
    case 0:
    case 1:
      return put({one({"add", "sub", "mul"}), rounding(), flush(), ".f32 ", f(),
                  ", ", f(), ", ", f()});
    case 2:
    case 3:
      return put({"fma", rounding(), flush(), ".f32 ", f(), ", ", f(), ", ",
                  f(), ", ", f()});
    case 4:
      return put({one({"min", "max", "min.NaN", "max.ftz"}), ".f32 ", f(), ", ",
                  f(), ", ", f()});
    case 5:
      return put({"div.rn", flush(), ".f32 ", f(), ", ", f(), ", ", f()});
    case 6:
      put({"abs.f32 ", f(), ", ", f()});
      return put({"sqrt", rounding(), ".f32 ", f(), ", ", f()});
    case 7:
      return put({"cvt.rn.f32.s32 ", f(), ", ", r()});
    case 8:
      return put({one({"cvt.rzi.s32.f32 ", "cvt.rni.s32.f32 ",
                       "cvt.rmi.u32.f32 ", "cvt.rpi.ftz.s32.f32 "}),
                  r(), ", ", f()});
    case 9: // Back to where sums are not lost.
      put({"and.b32 %u, ", r(), ", 0x81ffffff"});
      put({"or.b32 %u, %u, 0x3e000000"});
      return put({"mov.b32 ", f(), ", %u"});
    default:
      return put({one({"cvt.rni.f32.f32 ", "cvt.rmi.f32.f32 ", "neg.f32 ",
                       "cvt.sat.f32.f32 "}),
                  f(), ", ", f()});
    }
  }

  /// Replaces a NaN.
  void known(const std::string &name) {
    put({"setp.nan.f64 %q15, ", name, ", ", name});
    put({"@%q15 mov.f64 ", name, ", 0d3FF8000000000000"});
  }
  void twice() {
    std::string result = v();
    switch (random.below(5)) {
    case 0:
    case 1:
      put({one({"add", "sub", "mul"}), rounding(), ".f64 ", result, ", ", v(),
           ", ", v()});
      break;
    case 2:
      put({"fma", rounding(), ".f64 ", result, ", ", v(), ", ", v(), ", ",
           v()});
      break;
    case 3:
      put({one({"cvt.rn.f64.s32 ", "cvt.rn.f64.u32 "}), result, ", ", r()});
      break;
    default:
      put({"cvt.f64.f32 ", result, ", ", f()});
    }
    known(result);
    if (random.below(4) == 0)
      put({one({"cvt.rn.f32.f64 ", "cvt.rz.f32.f64 "}), f(), ", ", result});
    if (random.below(4) == 0)
      put({one({"cvt.rzi.s32.f64 ", "cvt.rmi.s32.f64 "}), r(), ", ", result});
  }
  void halves() {
    switch (random.below(4)) {
    case 0:
      return put({one({"add.rn", "sub.rn", "mul.rn", "min", "max"}), ".f16x2 ",
                  g(), ", ", g(), ", ", g()});
    case 1:
      return put({"fma.rn", one({"", ".relu", ".sat"}), ".f16x2 ", g(), ", ",
                  g(), ", ", g(), ", ", g()});
    case 2:
      return put({"cvt.rn.f16x2.f32 ", g(), ", ", f(), ", ", f()});
    default:
      put({"mov.b32 {%h1, %h2}, ", g()});
      return put({"cvt.f32.f16 ", f(), ", %h", one({"1", "2"})});
    }
  }
  void predicates() {
    static const char *const comparisons[] = {"eq", "ne", "lt",
                                              "le", "gt", "ge"};
    std::string compare = comparisons[random.below(6)];
    switch (random.below(7)) {
    case 0:
    case 1:
      return put({"setp.", compare, one({".s32 ", ".u32 "}), p(), ", ", r(),
                  ", ", word()});
    case 2:
      return put({"setp.", compare, one({"", "u"}), ".f32 ", p(), ", ", f(),
                  ", ", f()});
    case 3:
      return put({"setp.", compare, one({".and", ".or", ".xor"}), ".s32 ", p(),
                  ", ", r(), ", ", word(), ", ", p()});
    case 4:
      return put({"selp.b32 ", r(), ", ", r(), ", ", word(), ", ", p()});
    case 5:
      return put({"selp.f32 ", f(), ", ", f(), ", ", f(), ", ", p()});
    default:
      return put({"@", one({"", "!"}), p(), " add.s32 ", r(), ", ", r(), ", ",
                  word()});
    }
  }
  void local() {
    put({"and.b32 %u, ", r(), ", 15"});
    put({"mad.lo.u32 %u, %u, 4, %l"});
    if (random.below(2))
      put({"st.local.b32 [%u], ", r()});
    else
      put({"ld.local.b32 ", r(), ", [%u]"});
    if (random.below(3) == 0)
      put({"ld.local.u8 ", r(), ", [%u+", std::to_string(random.below(4)),
           "]"});
  }
  /// All threads of the block take part.
  void exchange() {
    switch (random.below(9)) {
    case 0:
    case 1:
    case 8: {
      put({"bar.sync 0"});
      bool isWide = random.below(2);
      if (isWide)
        put({"st.shared.b64 [%mine], ", x()});
      else
        put({"st.shared.v2.b32 [%mine], {", r(), ", ", r(), "}"});
      put({"bar.sync 0"});
      put({"mad.lo.u32 %u, %thread, ", std::to_string(1 + random.below(50)),
           ", ", std::to_string(random.below(96))});
      put({"rem.u32 %u, %u, ", std::to_string(programBlock)});
      put({"mov.u32 %s, tile"});
      put({"mad.lo.u32 %u, %u, 8, %s"});
      if (isWide)
        put({"ld.shared.b64 ", x(), ", [%u]"});
      else
        put({"ld.shared.b32 ", r(), ", [%u+", one({"0", "4"}), "]"});
      return put({"bar.sync 0"});
    }
    case 2: // A sum in shared memory; its order does not count.
      put({"bar.sync 0"});
      put({"st.shared.b64 [%mine], 0"});
      put({"bar.sync 0"});
      put({"and.b32 %u, ", r(), ", 31"});
      put({"mov.u32 %s, tile"});
      put({"mad.lo.u32 %u, %u, 8, %s"});
      put({one({"red.shared.add.u32", "red.shared.max.u32", "red.shared.or.b32",
                "red.shared.xor.b32"}),
           " [%u], ", r()});
      put({"bar.sync 0"});
      put({"ld.shared.b32 ", r(), ", [%mine]"});
      return put({"bar.sync 0"});
    case 3:
      return put({"vote.sync.",
                  (random.below(2) ? "ballot.b32 " + r() : "any.pred " + p()),
                  ", ", p(), ", -1"});
    case 4:
      return put({one({"redux.sync.add.u32 ", "redux.sync.min.s32 ",
                       "redux.sync.xor.b32 "}),
                  r(), ", ", r(), ", -1"});
    case 5:
      put({"and.b32 %u, ", r(), ", 3"});
      return put({"match.any.sync.b32 ", r(), ", %u, -1"});
    default:
      return put({"shfl.sync.",
                  one({"bfly.b32 ", "up.b32 ", "down.b32 ", "idx.b32 "}), r(),
                  "|", p(), ", ", r(), ", ", word(), ", ",
                  one({"0x1f", "0x0", "0x181f", "0x1c07"}), ", -1"});
    }
  }

  void block(unsigned depth, bool isUniform) {
    unsigned length = 4 + random.below(depth ? 12 : 60);
    for (unsigned i = 0; (i < length || !depth) && budget; ++i) {
      --budget;
      if (isUniform && random.below(3) == 0) {
        exchange();
        continue;
      }
      unsigned kind = random.below(40);
      if (kind < 12)
        integer();
      else if (kind < 18)
        single();
      else if (kind < 20)
        twice();
      else if (kind < 23)
        halves();
      else if (kind < 28)
        predicates();
      else if (kind < 30)
        local();
      else if (depth >= 3)
        single();
      else if (kind < 36)
        branch(depth, isUniform);
      else if (kind < 38)
        loop(depth, isUniform);
      else
        integer();
    }
  }
  void branch(unsigned depth, bool) {
    std::string name = "L" + std::to_string(labels++);
    put({"@", one({"", "!"}), p(), " bra ", name, "_ELSE"});
    block(depth + 1, false);
    bool hasElse = random.below(2);
    if (hasElse)
      put({"bra ", name, "_END"});
    os << name << "_ELSE:\n";
    if (hasElse) {
      block(depth + 1, false);
      os << name << "_END:\n";
    }
  }
  void loop(unsigned depth, bool isUniform) {
    std::string name = "L" + std::to_string(labels++);
    std::string counter = "%c" + std::to_string(depth);
    std::string test = "%q" + std::to_string(depth);
    bool isFixed = random.below(2);
    if (isFixed) {
      put({"mov.u32 ", counter, ", ", std::to_string(1 + random.below(5))});
    } else {
      put({"and.b32 ", counter, ", ", r(), ", 3"});
      put({"add.u32 ", counter, ", ", counter, ", 1"});
    }
    os << name << ":\n";
    block(depth + 1, isUniform && isFixed);
    if (!isFixed && random.below(3) == 0)
      put({"@", p(), " bra ", name, "_OUT"}); // Left early.
    put({"sub.u32 ", counter, ", ", counter, ", 1"});
    put({"setp.ne.u32 ", test, ", ", counter, ", 0"});
    put({"@", test, " bra ", name});
    os << name << "_OUT:\n";
  }

  Random random;
  std::string text;
  llvm::raw_string_ostream os;
  unsigned labels = 0, budget = 0;
};

} // namespace

std::string makeProgram(uint64_t seed) { return Generator(seed).run(); }

std::vector<uint8_t> programInput(uint64_t seed) {
  Random random(seed * 2);
  std::vector<uint8_t> bytes(programThreads * programInputs * 8);
  for (size_t at = 0; at < bytes.size(); at += 4) {
    uint64_t any = random.next();
    uint32_t value = any & 1   ? uint32_t(any >> 32)
                     : any & 2 ? uint32_t(any >> 32 & 0xff)
                     : any & 4 ? 0x3f000000 | uint32_t(any >> 32 & 0x80ffffff)
                               : uint32_t(0 - (any >> 32 & 0xffff));
    std::memcpy(&bytes[at], &value, 4);
  }
  return bytes;
}

std::string keptOfProgram(llvm::ArrayRef<uint8_t> output) {
  std::string kept;
  for (unsigned word = 0; word < programOutputs; ++word) {
    uint64_t hash = hashOf("");
    for (unsigned thread = 0; thread < programThreads; ++thread) {
      const uint8_t *at = &output[(thread * programOutputs + word) * 8];
      hash =
          hashOf(llvm::StringRef(reinterpret_cast<const char *>(at), 8), hash);
    }
    kept.append(reinterpret_cast<const char *>(&hash), 8);
  }
  kept.append(reinterpret_cast<const char *>(output.data()),
              programOutputs * 8);
  return kept;
}

} // namespace fsr::golden
