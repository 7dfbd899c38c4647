// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Logic, shifts, fields and bytes against loops over single bits, as the ISA
// defines them.
//
//===----------------------------------------------------------------------===//

#include "IntegerTest.h"

#include "llvm/ADT/StringExtras.h"

namespace fsr::ptx {
namespace {

class IntegerBitsTest : public IntegerTest {};

bool bit(uint64_t value, unsigned at) { return value >> at & 1; }
int64_t signedOf(uint64_t bits, unsigned width) {
  return int64_t(bits << (64 - width)) >> (64 - width);
}
std::string name(char kind, unsigned width) {
  return std::string(".") + kind + std::to_string(width);
}

TEST_F(IntegerBitsTest, Logic) {
  for (unsigned width : {16, 32, 64}) {
    std::string type = name('b', width);
    check("and" + type + " %x, %a, %b;", {width, width}, width,
          [](uint64_t a, uint64_t b, uint64_t, uint64_t) { return a & b; });
    check("or" + type + " %x, %a, %b;", {width, width}, width,
          [](uint64_t a, uint64_t b, uint64_t, uint64_t) { return a | b; });
    check("xor" + type + " %x, %a, %b;", {width, width}, width,
          [](uint64_t a, uint64_t b, uint64_t, uint64_t) { return a ^ b; });
    check("not" + type + " %x, %a;", {width}, width,
          [](uint64_t a, uint64_t, uint64_t, uint64_t) { return ~a; });
    check("cnot" + type + " %x, %a;", {width}, width,
          [](uint64_t a, uint64_t, uint64_t, uint64_t) { return a == 0; });
  }
  check("and.pred %x, %a, %b;", {1, 1}, 1,
        [](uint64_t a, uint64_t b, uint64_t, uint64_t) { return a & b; });
  check("or.pred %x, %a, %b;", {1, 1}, 1,
        [](uint64_t a, uint64_t b, uint64_t, uint64_t) { return a | b; });
  check("xor.pred %x, %a, %b;", {1, 1}, 1,
        [](uint64_t a, uint64_t b, uint64_t, uint64_t) { return a ^ b; });
  check("not.pred %x, %a;", {1}, 1,
        [](uint64_t a, uint64_t, uint64_t, uint64_t) { return !a; });
}

uint32_t lookUp(const Operands &in, unsigned table) {
  uint32_t result = 0;
  for (unsigned i = 0; i < 32; ++i)
    result |= uint32_t(bit(table, bit(in[0], i) << 2 | bit(in[1], i) << 1 |
                                      bit(in[2], i)))
              << i;
  return result;
}

TEST_F(IntegerBitsTest, AllTables) {
  // Each combination of the three bits is in these words.
  std::vector<Operands> operands(128, {0xf0f0a5c3, 0xcccc96e1, 0xaaaa7b42, 0});
  for (unsigned i = 0; i < operands.size(); ++i)
    for (unsigned k = 0; k < 3; ++k)
      operands[i][k] = uint32_t(operands[i][k] * (2 * i + 1));
  for (unsigned table = 0; table < 256; ++table)
    check("lop3.b32 %x, %a, %b, %c, " + std::to_string(table) + ";",
          {32, 32, 32}, {32}, operands, [&](const Operands &in) -> Results {
            return {lookUp(in, table), 0};
          });
}

TEST_F(IntegerBitsTest, TablesWithPredicates) {
  auto all = tuples({32, 32, 32, 1});
  check("lop3.or.b32 %x|%y, %a, %b, %c, 0x80, %d;", {32, 32, 32, 1}, {32, 1},
        all, [](const Operands &in) -> Results {
          uint32_t word = lookUp(in, 0x80);
          return {word, (word != 0) | in[3]};
        });
  check("lop3.and.b32 _|%x, %a, %b, %c, 0x16, %d;", {32, 32, 32, 1}, {1}, all,
        [](const Operands &in) -> Results {
          return {(lookUp(in, 0x16) != 0) & in[3], 0};
        });
}

TEST_F(IntegerBitsTest, Shifts) {
  for (unsigned width : {16, 32, 64}) {
    check("shl" + name('b', width) + " %x, %a, %b;", {width, 32}, width,
          [&](uint64_t a, uint64_t b, uint64_t, uint64_t) {
            return b >= width ? 0 : a << b;
          });
    for (char kind : {'b', 'u', 's'})
      check("shr" + name(kind, width) + " %x, %a, %b;", {width, 32}, width,
            [&](uint64_t a, uint64_t b, uint64_t, uint64_t) {
              if (kind == 's')
                return uint64_t(signedOf(a, width) >>
                                std::min(b, uint64_t(63)));
              return b >= width ? 0 : a >> b;
            });
  }
}

TEST_F(IntegerBitsTest, ShiftsByEachCount) {
  std::vector<Operands> operands;
  for (uint64_t count = 0; count < 300; ++count)
    for (uint64_t a : {0x8000000180008001u, 0x7ffffffe7fff7ffeu})
      operands.push_back({a, count, 0, 0});
  for (unsigned width : {16, 32, 64}) {
    check("shl" + name('b', width) + " %x, %a, %b;", {width, 32}, {width},
          operands, [&](const Operands &in) -> Results {
            return {in[1] >= width ? 0 : in[0] << in[1], 0};
          });
    check("shr" + name('s', width) + " %x, %a, %b;", {width, 32}, {width},
          operands, [&](const Operands &in) -> Results {
            return {uint64_t(signedOf(in[0], width) >>
                             std::min(in[1], uint64_t(63))),
                    0};
          });
  }
}

TEST_F(IntegerBitsTest, FunnelShifts) {
  for (bool left : {false, true}) {
    for (bool wraps : {false, true}) {
      std::string text = std::string("shf.") + (left ? "l" : "r") +
                         (wraps ? ".wrap" : ".clamp") + ".b32 %x, %a, %b, %c;";
      check(text, {32, 32, 32}, 32,
            [&](uint64_t a, uint64_t b, uint64_t c, uint64_t) {
              uint64_t n = wraps ? c % 32 : std::min(c, uint64_t(32));
              if (left)
                return n == 32 ? a : n ? b << n | a >> (32 - n) : b;
              return n == 32 ? b : n ? b << (32 - n) | a >> n : a;
            });
    }
  }
}

uint64_t extract(uint64_t a, unsigned position, unsigned length, unsigned width,
                 bool isSigned) {
  unsigned top = width - 1;
  bool sign =
      isSigned && length && bit(a, std::min(position + length - 1, top));
  uint64_t result = 0;
  for (unsigned i = 0; i < width; ++i)
    result |= uint64_t(i < length && position + i <= top ? bit(a, position + i)
                                                         : sign)
              << i;
  return result;
}
uint64_t insert(uint64_t a, uint64_t b, unsigned position, unsigned length,
                unsigned width) {
  for (unsigned i = 0; i < length && position + i < width; ++i) {
    b &= ~(uint64_t(1) << (position + i));
    b |= uint64_t(bit(a, i)) << (position + i);
  }
  return b;
}

TEST_F(IntegerBitsTest, Fields) {
  for (unsigned width : {32, 64}) {
    // All positions and lengths, also those that leave the word, and bits above
    // the lowest eight, which do not count.
    std::vector<Operands> operands;
    for (uint64_t a : {0x92f1c0de8badf00du, 0x6d0e3f217452aff2u})
      for (unsigned position = 0; position < 70; ++position)
        for (unsigned length = 0; length < 70; ++length)
          operands.push_back({a & maskOf(width), position, length, 0});
    for (unsigned odd : {0xffu, 0x100u, 0x105u, 0xffffff03u, 0x80u})
      for (unsigned other : {0u, 1u, 8u, 0xffu, 0x10cu})
        for (uint64_t a : {0x92f1c0de8badf00du, 0x6d0e3f217452aff2u}) {
          operands.push_back({a & maskOf(width), odd, other, 0});
          operands.push_back({a & maskOf(width), other, odd, 0});
        }
    for (char kind : {'u', 's'})
      check("bfe" + name(kind, width) + " %x, %a, %b, %c;", {width, 32, 32},
            {width}, operands, [&](const Operands &in) -> Results {
              return {extract(in[0], in[1] & 0xff, in[2] & 0xff, width,
                              kind == 's'),
                      0};
            });
    for (Operands &one : operands)
      one = {one[0], ~one[0] >> 3 & maskOf(width), one[1], one[2]};
    check("bfi" + name('b', width) + " %x, %a, %b, %c, %d;",
          {width, width, 32, 32}, {width}, operands,
          [&](const Operands &in) -> Results {
            return {insert(in[0], in[1], in[2] & 0xff, in[3] & 0xff, width), 0};
          });
  }
}

TEST_F(IntegerBitsTest, Counts) {
  for (unsigned width : {32, 64}) {
    std::string type = name('b', width);
    check("popc" + type + " %x, %a;", {width}, 32,
          [&](uint64_t a, uint64_t, uint64_t, uint64_t) {
            uint64_t count = 0;
            for (unsigned i = 0; i < width; ++i)
              count += bit(a, i);
            return count;
          });
    check("clz" + type + " %x, %a;", {width}, 32,
          [&](uint64_t a, uint64_t, uint64_t, uint64_t) {
            uint64_t count = 0;
            while (count < width && !bit(a, unsigned(width - 1 - count)))
              ++count;
            return count;
          });
    check("brev" + type + " %x, %a;", {width}, width,
          [&](uint64_t a, uint64_t, uint64_t, uint64_t) {
            uint64_t result = 0;
            for (unsigned i = 0; i < width; ++i)
              result |= uint64_t(bit(a, i)) << (width - 1 - i);
            return result;
          });
    for (char kind : {'u', 's'}) {
      auto find = [=](uint64_t a) -> uint64_t {
        bool sign = kind == 's' && bit(a, width - 1);
        for (unsigned i = width; i-- > 0;)
          if (bit(a, i) != sign)
            return i;
        return 0xffffffff;
      };
      check("bfind" + name(kind, width) + " %x, %a;", {width}, 32,
            [&](uint64_t a, uint64_t, uint64_t, uint64_t) { return find(a); });
      check("bfind.shiftamt" + name(kind, width) + " %x, %a;", {width}, 32,
            [&](uint64_t a, uint64_t, uint64_t, uint64_t) {
              uint64_t at = find(a);
              return at == 0xffffffff ? at : width - 1 - at;
            });
    }
  }
}

TEST_F(IntegerBitsTest, Masks) {
  std::vector<Operands> operands;
  for (uint64_t a = 0; a < 70; ++a)
    for (uint64_t b = 0; b < 70; ++b)
      operands.push_back({a, b, 0, 0});
  for (uint64_t far : {0x80000000u, 0xffffffffu, 0x100u})
    for (uint64_t near : {0u, 1u, 31u, 32u}) {
      operands.push_back({far, near, 0, 0});
      operands.push_back({near, far, 0, 0});
    }
  for (bool clamps : {false, true})
    check(std::string("bmsk.") + (clamps ? "clamp" : "wrap") +
              ".b32 %x, %a, %b;",
          {32, 32}, {32}, operands, [&](const Operands &in) -> Results {
            uint64_t from = clamps ? in[0] : in[0] % 32;
            uint64_t length = clamps ? in[1] : in[1] % 32;
            uint64_t mask = 0;
            for (uint64_t i = from; i < 32 && i - from < length; ++i)
              mask |= uint64_t(1) << i;
            return {mask, 0};
          });
}

TEST_F(IntegerBitsTest, Extensions) {
  for (bool clamps : {false, true}) {
    for (char kind : {'u', 's'})
      check(std::string("szext.") + (clamps ? "clamp" : "wrap") +
                name(kind, 32) + " %x, %a, %b;",
            {32, 32}, 32, [&](uint64_t a, uint64_t b, uint64_t, uint64_t) {
              uint64_t width = clamps ? std::min(b, uint64_t(32)) : b % 32;
              if (width == 0)
                return uint64_t(0);
              uint64_t low = a & maskOf(unsigned(width));
              return kind == 's' ? uint64_t(signedOf(low, unsigned(width)))
                                 : low;
            });
  }
}

TEST_F(IntegerBitsTest, NthSetBit) {
  std::vector<Operands> operands;
  for (uint64_t mask : {0u, 1u, 0x80000000u, 0xffffffffu, 0xf0f01234u, 0x90u})
    for (uint64_t base = 0; base < 32; ++base)
      for (int offset = -34; offset <= 34; ++offset)
        operands.push_back({mask, base, uint32_t(offset), 0});
  operands.push_back({0xffffffff, 3, 0x80000000, 0});
  operands.push_back({0xffffffff, 3, 0x7fffffff, 0});
  check("fns.b32 %x, %a, %b, %c;", {32, 32, 32}, {32}, operands,
        [](const Operands &in) -> Results {
          int64_t offset = signedOf(in[2], 32), at = int64_t(in[1]);
          if (offset == 0)
            return {bit(in[0], unsigned(at)) ? in[1] : 0xffffffff, 0};
          if (offset == INT32_MIN)
            return {0, 0};
          int64_t left = std::abs(offset);
          for (; at >= 0 && at < 32; at += offset > 0 ? 1 : -1)
            if (bit(in[0], unsigned(at)) && --left == 0)
              return {uint64_t(at), 0};
          return {0xffffffff, 0};
        });
}

TEST_F(IntegerBitsTest, Permutations) {
  auto byte = [](uint64_t a, uint64_t b, unsigned which) {
    return (a | b << 32) >> (8 * which) & 0xff;
  };
  std::vector<Operands> operands;
  for (uint64_t selector = 0; selector < 0x10000; selector += 7)
    operands.push_back(
        {0x81f27304, 0x95a6b7c8 ^ (selector << 15 & 0xffffffff), selector, 0});
  check("prmt.b32 %x, %a, %b, %c;", {32, 32, 32}, {32}, operands,
        [&](const Operands &in) -> Results {
          uint64_t result = 0;
          for (unsigned i = 0; i < 4; ++i) {
            unsigned which = in[2] >> (4 * i) & 15;
            uint64_t one = byte(in[0], in[1], which & 7);
            if (which & 8)
              one = one & 0x80 ? 0xff : 0;
            result |= one << (8 * i);
          }
          return {result, 0};
        });
  // With places that are known, of which some are signs.
  for (unsigned selector : {0x5410u, 0x7632u, 0x3210u, 0x0123u, 0x7777u,
                            0x6240u, 0xffff7531u, 0xba98u, 0x8421u})
    check("prmt.b32 %x, %a, %b, " + std::to_string(selector) + ";", {32, 32},
          {32}, operands, [&](const Operands &in) -> Results {
            uint64_t result = 0;
            for (unsigned i = 0; i < 4; ++i) {
              unsigned which = selector >> (4 * i) & 15;
              uint64_t one = byte(in[0], in[1], which & 7);
              if (which & 8)
                one = one & 0x80 ? 0xff : 0;
              result |= one << (8 * i);
            }
            return {result, 0};
          });
  // By the rule of each mode: the byte at place i for the selector n.
  struct Mode {
    const char *name;
    std::function<unsigned(unsigned n, unsigned i)> which;
  };
  const Mode modes[] = {
      {"f4e", [](unsigned n, unsigned i) { return n + i; }},
      {"b4e", [](unsigned n, unsigned i) { return (n + 8 - i) % 8; }},
      {"rc8", [](unsigned n, unsigned) { return n; }},
      {"ecl", [](unsigned n, unsigned i) { return std::max(n, i); }},
      {"ecr", [](unsigned n, unsigned i) { return std::min(n, i); }},
      {"rc16", [](unsigned n, unsigned i) { return n % 2 * 2 + i % 2; }},
  };
  for (const Mode &mode : modes)
    check(std::string("prmt.b32.") + mode.name + " %x, %a, %b, %c;",
          {32, 32, 32}, {32}, operands, [&](const Operands &in) -> Results {
            uint64_t result = 0;
            for (unsigned i = 0; i < 4; ++i)
              result |= byte(in[0], in[1], mode.which(in[2] & 3, i)) << (8 * i);
            return {result, 0};
          });
}

/// `function` of each part, clamped where `saturates`.
template <typename Function>
uint64_t eachPart(uint64_t a, uint64_t b, unsigned width, bool isSigned,
                  bool saturates, Function function) {
  uint64_t result = 0, mask = (uint64_t(1) << width) - 1;
  for (unsigned at = 0; at < 32; at += width) {
    int64_t x = a >> at & mask, y = b >> at & mask, most = mask, least = 0;
    if (isSigned) {
      x = signedOf(x, width);
      y = signedOf(y, width);
      most = mask / 2;
      least = -most - 1;
    }
    int64_t part = function(x, y);
    if (saturates)
      part = std::max(least, std::min(most, part));
    result |= (uint64_t(part) & mask) << at;
  }
  return result;
}

TEST_F(IntegerBitsTest, PartsOfWords) {
  using Function = int64_t (*)(int64_t, int64_t);
  const std::pair<const char *, Function> functions[] = {
      {"vadd", [](int64_t x, int64_t y) { return x + y; }},
      {"vsub", [](int64_t x, int64_t y) { return x - y; }},
      // To the nearest, a half away from zero.
      {"vavrg",
       [](int64_t x, int64_t y) {
         return x + y < 0 ? -((1 - x - y) / 2) : (x + y + 1) / 2;
       }},
      {"vabsdiff", [](int64_t x, int64_t y) { return std::abs(x - y); }},
      {"vmin", [](int64_t x, int64_t y) { return std::min(x, y); }},
      {"vmax", [](int64_t x, int64_t y) { return std::max(x, y); }},
  };
  const std::pair<const char *, Function> comparisons[] = {
      {".eq", [](int64_t x, int64_t y) { return int64_t(x == y); }},
      {".ne", [](int64_t x, int64_t y) { return int64_t(x != y); }},
      {".lt", [](int64_t x, int64_t y) { return int64_t(x < y); }},
      {".le", [](int64_t x, int64_t y) { return int64_t(x <= y); }},
      {".gt", [](int64_t x, int64_t y) { return int64_t(x > y); }},
      {".ge", [](int64_t x, int64_t y) { return int64_t(x >= y); }},
  };
  for (unsigned width : {8, 16})
    for (bool isSigned : {false, true}) {
      std::string count = width == 8 ? "4" : "2";
      std::string type = isSigned ? ".s32.s32" : ".u32.u32";
      std::string operands = " %x, %a, %b, %c;";
      for (auto [name, function] : functions)
        for (bool saturates : {false, true})
          check(name + count + type + type.substr(0, 4) +
                    (saturates ? ".sat" : "") + operands,
                {32, 32, 32}, 32,
                [=, function = function](uint64_t a, uint64_t b, uint64_t,
                                         uint64_t) {
                  return eachPart(a, b, width, isSigned, saturates, function);
                });
      for (auto [name, function] : comparisons)
        check("vset" + count + type + name + operands, {32, 32, 32}, 32,
              [=, function = function](uint64_t a, uint64_t b, uint64_t,
                                       uint64_t) {
                return eachPart(a, b, width, isSigned, false, function);
              });
      check("vabsdiff" + count + type + type.substr(0, 4) + ".add" + operands,
            {32, 32, 32}, 32,
            [=](uint64_t a, uint64_t b, uint64_t c, uint64_t) {
              for (unsigned at = 0; at < 32; at += width)
                c += eachPart(
                         a >> at, b >> at, width, isSigned, false,
                         [](int64_t x, int64_t y) { return std::abs(x - y); }) &
                     ((1u << width) - 1);
              return c;
            });
    }
}

TEST_F(IntegerBitsTest, FormsThatThereAreNot) {
  auto expectRefused = [&](llvm::StringRef text, llvm::StringRef part) {
    EXPECT_NE(refusal(text, {32, 32, 32}, {32}).find(part), std::string::npos)
        << text.str() << ": " << refusal(text, {32, 32, 32}, {32});
  };
  expectRefused("and.u32 %x, %a, %b;", ".u32");
  expectRefused("cnot.pred %p0, %p1;", ".pred");
  expectRefused("lop3.b32 %x, %a, %b, %c, 256;", "8 bits");
  expectRefused("lop3.b32 %x, %a, %b, %c, %a;", "8 bits");
  expectRefused("lop3.xor.b32 %x|%p0, %a, %b, %c, 1, %p1;", ".xor");
  expectRefused("lop3.b32 %x|%p0, %a, %b, %c, 1;", "one result");
  expectRefused("lop3.and.b32 %x, %a, %b, %c, 1, %p0;", "two results");
  expectRefused("shl.u32 %x, %a, %b;", ".u32");
  expectRefused("shf.l.b32 %x, %a, %b, %c;", ".clamp or .wrap");
  expectRefused("bfe.b32 %x, %a, %b, %c;", ".b32");
  expectRefused("bfi.u32 %x, %a, %b, %c, 1;", ".u32");
  expectRefused("popc.b16 %x, %h1;", ".b16");
  expectRefused("bmsk.b32 %x, %a, %b;", ".clamp or .wrap");
  expectRefused("vadd4.u32.u32.s32 %x, %a, %b, %c;", ".s32");
  expectRefused("vadd4.u32.u32.u32.add %x, %a, %b, %c;", ".add");
  expectRefused("vset2.u32.u32 %x, %a, %b, %c;", "comparison");
  expectRefused("prmt.b32.f5e %x, %a, %b, %c;", ".f5e");
}

} // namespace
} // namespace fsr::ptx
