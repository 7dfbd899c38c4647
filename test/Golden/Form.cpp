// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reading a form, drawing its inputs, writing its kernel, and comparing its
// results. See Form.h.
//
// Operands are registers of untyped bits, so that any instruction takes them;
// results begin as zero, so that a guarded instruction leaves something known.
//
//===----------------------------------------------------------------------===//

#include "Form.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>

namespace fsr::golden {

const char *const moduleHeader = ".version 8.7\n"
                                 ".target sm_90a\n"
                                 ".address_size 64\n";

uint64_t Random::next() {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

uint64_t hashOf(llvm::StringRef bytes, uint64_t start) {
  for (char byte : bytes)
    start = (start ^ uint8_t(byte)) * 0x100000001b3;
  return start;
}

namespace {

const ValueType types[] = {
    {"pred", 1, 1},
    {"b8", 8, 8},
    {"b16", 16, 16},
    {"b32", 32, 32},
    {"b64", 64, 64},
    {"b16x2", 32, 16},
    {"b8x4", 32, 8},
    {"few", 32, 32, 0, 0, Draw::Few},
    {"few64", 64, 64, 0, 0, Draw::Few},
    {"shift", 32, 32, 0, 0, Draw::Shift},
    {"every", 16, 16, 0, 0, Draw::Every},
    {"f16", 16, 16, 5, 10, Draw::Half},
    {"f16x2", 32, 16, 5, 10, Draw::Half},
    {"bf16", 16, 16, 8, 7, Draw::Half},
    {"bf16x2", 32, 16, 8, 7, Draw::Half},
    {"e4m3x2", 16, 8, 4, 3, Draw::Half},
    {"e5m2x2", 16, 8, 5, 2, Draw::Half},
    {"f32", 32, 32, 8, 23, Draw::Half},
    {"f64", 64, 64, 11, 52, Draw::Half},
    {"angle", 32, 32, 8, 23, Draw::Angle},
    {"unit", 32, 32, 8, 23, Draw::Unit},
    // For tensor cores: s, u, o for small, unit and odd numbers.
    {"f16x2s", 32, 16, 5, 10, Draw::SmallFloat},
    {"bf16x2s", 32, 16, 8, 7, Draw::SmallFloat},
    {"tf32s", 32, 32, 8, 23, Draw::SmallFloat},
    {"f32s", 32, 32, 8, 23, Draw::SmallFloat},
    {"f64s", 64, 64, 11, 52, Draw::SmallFloat},
    {"e4m3x4s", 32, 8, 4, 3, Draw::SmallFloat},
    {"e5m2x4s", 32, 8, 5, 2, Draw::SmallFloat},
    {"f16x2u", 32, 16, 5, 10, Draw::Unit},
    {"bf16x2u", 32, 16, 8, 7, Draw::Unit},
    {"f32u", 32, 32, 8, 23, Draw::Unit},
    {"f64u", 64, 64, 11, 52, Draw::Unit},
    {"e4m3x4u", 32, 8, 4, 3, Draw::Unit},
    {"e5m2x4u", 32, 8, 5, 2, Draw::Unit},
    {"f16x2o", 32, 16, 5, 10, Draw::Odd},
    {"bf16x2o", 32, 16, 8, 7, Draw::Odd},
    {"f32o", 32, 32, 8, 23, Draw::Odd},
    {"f64o", 64, 64, 11, 52, Draw::Odd},
};

uint64_t maskOf(unsigned bits) {
  return bits >= 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
}

/// A number that rounds to `value` in the part's layout, if it has one.
uint64_t encode(const ValueType &type, double value) {
  uint64_t wide;
  std::memcpy(&wide, &value, 8);
  uint64_t sign = wide >> 63 << (type.exponent + type.mantissa);
  if (value == 0)
    return sign;
  int exponent =
      int(wide >> 52 & 0x7ff) - 1023 + (1 << (type.exponent - 1)) - 1;
  return sign | uint64_t(exponent) << type.mantissa |
         (wide & maskOf(52)) >> (52 - type.mantissa);
}

uint64_t drawInteger(unsigned bits, Random &random) {
  uint64_t mask = maskOf(bits), any = random.next();
  uint64_t top = uint64_t(1) << (bits - 1);
  const uint64_t edges[] = {
      0,          1,          2,          mask,       mask - 1, top,
      top - 1,    top + 1,    bits,       bits - 1,   bits + 1, 0x55555555,
      0xaaaaaaaa, 0x80,       0x7f,       0xff,       0x8000,   0x7fff,
      0xffff,     0x7fffffff, 0x80000000, 0xffffffff, top | 1,  3};
  switch (random.below(8)) {
  case 0:
  case 1:
  case 2:
    return edges[random.below(std::size(edges))] & mask;
  case 3:
    return any & 0xff & mask;
  case 4: // Small and negative.
    return (0 - (any & 0xff)) & mask;
  case 5: // One bit, or all below one.
    return (uint64_t(1) << (any % bits)) - (any >> 32 & 1);
  default:
    return any & mask;
  }
}

uint64_t drawFloat(const ValueType &type, Random &random) {
  unsigned m = type.mantissa, e = type.exponent;
  uint64_t sign = uint64_t(1) << (m + e), fraction = maskOf(m);
  uint64_t infinite = maskOf(e) << m, quiet = uint64_t(1) << (m - 1);
  uint64_t bias = maskOf(e - 1), one = bias << m;
  uint64_t any = random.next(), extra = random.next();
  switch (random.below(8)) {
  case 0:
  case 1: {
    const uint64_t edges[] = {0,
                              0,
                              1,
                              fraction,
                              fraction + 1,
                              fraction + 2,
                              infinite,
                              infinite,
                              infinite | quiet,
                              infinite | 1,
                              infinite | quiet | (extra & fraction),
                              infinite | 1 | (extra & (quiet - 1)),
                              infinite - 1,
                              one,
                              one,
                              one + 1,
                              one - 1,
                              one | quiet,
                              one - (uint64_t(1) << m),
                              one + (uint64_t(1) << m)};
    uint64_t value = edges[any % std::size(edges)];
    return any >> 60 & 1 ? value | sign : value;
  }
  case 2: // Subnormal.
    return ((extra & fraction) >> any % m) | (any >> 60 & 1 ? sign : 0);
  case 3: { // Halfway, or beside it, at some bit.
    unsigned low = 1 + any % m;
    uint64_t half = uint64_t(1) << (low - 1);
    uint64_t value = (extra & fraction & ~maskOf(low)) | half;
    value += int(any >> 16 & 3) - 1;
    uint64_t exponent = bias - 8 + (any >> 32) % (e > 5 ? 40 : 12);
    return (any >> 60 & 1 ? sign : 0) | (exponent << m) + value;
  }
  case 4:
  case 5: { // Near one.
    uint64_t exponent = bias - 4 + any % 8;
    return (any >> 60 & 1 ? sign : 0) | exponent << m | (extra & fraction);
  }
  case 6: { // Sizes where conversions end.
    uint64_t exponent = bias + (any % 160) - 80;
    exponent = std::min<uint64_t>(std::max<int64_t>(int64_t(exponent), 0),
                                  maskOf(e) - 1);
    return (any >> 60 & 1 ? sign : 0) | exponent << m | (extra & fraction);
  }
  default:
    return any & maskOf(m + e + 1);
  }
}

uint64_t drawPart(const ValueType &type, Random &random, unsigned thread) {
  static const unsigned few[] = {0, 1, 2, 7, 0x80000000, 0xffffffff};
  switch (type.draw) {
  case Draw::Bits:
    if (type.bits == 1)
      return random.next() & 1;
    return drawInteger(type.part, random);
  case Draw::Few: {
    uint64_t value = few[random.below(6)];
    return type.bits == 64 ? value << 32 | few[random.below(2)] : value;
  }
  case Draw::Shift: {
    uint64_t any = random.next();
    return any % 8 < 6   ? (any >> 8) % 72
           : any % 8 < 7 ? (any >> 8 & 0xff)
                         : any >> 32;
  }
  case Draw::Half:
    return drawFloat(type, random);
  case Draw::SmallFloat:
    return encode(type, int(random.below(17)) - 8);
  case Draw::Unit: {
    uint64_t any = random.next();
    uint64_t exponent = maskOf(type.exponent - 1) - 2 + any % 3;
    return (any >> 63) << (type.part - 1) | exponent << type.mantissa |
           (any >> 8 & maskOf(type.mantissa));
  }
  case Draw::Angle: {
    double unit = double(random.next() >> 40) / (1 << 23) - 1;
    float angle = float(unit * 3.1415925);
    uint32_t bits;
    std::memcpy(&bits, &angle, 4);
    return bits;
  }
  case Draw::Odd: {
    uint64_t infinite = maskOf(type.exponent) << type.mantissa;
    switch (random.below(48)) {
    case 0:
      return infinite;
    case 1:
      return infinite | uint64_t(1) << (type.part - 1);
    case 2:
      return infinite | uint64_t(1) << (type.mantissa - 1);
    case 3:
      return uint64_t(1) << (type.part - 1);
    default:
      return encode(type, int(random.below(3)) - 1);
    }
  }
  case Draw::Every:
    return thread & 0xffff;
  }
  return 0;
}

uint64_t drawValue(const ValueType &type, Random &random, unsigned thread) {
  uint64_t value = 0;
  for (unsigned at = 0; at < type.bits; at += type.part)
    value |= drawPart(type, random, thread) << at;
  return value;
}

const ValueType *findType(llvm::StringRef name) {
  for (const ValueType &type : types)
    if (type.name == name)
      return &type;
  return nullptr;
}

bool isWordCharacter(char c) { return llvm::isAlnum(c) || c == '_'; }

size_t aligned(size_t bytes) { return (bytes + 255) & ~size_t(255); }

} // namespace

llvm::Expected<Form> parseForm(llvm::StringRef line) {
  auto bad = [&](const llvm::Twine &why) {
    return makeError(ErrorKind::BadInput, "form `" + line + "`: " + why);
  };
  Form form;
  form.line = line.str();
  size_t tilde = line.find('~');
  llvm::StringRef code = line.take_front(tilde);
  form.seed = line.take_front(line.find(' ', tilde)).str();
  llvm::SmallVector<llvm::StringRef, 2> words;
  if (tilde != llvm::StringRef::npos)
    llvm::SplitString(line.drop_front(tilde + 1), words);
  for (llvm::StringRef word : words) {
    static constexpr llvm::StringLiteral kinds = "ura";
    size_t kind = kinds.find(word[0]);
    if (kind == llvm::StringRef::npos)
      return bad("a bound is u, r or a");
    Bound bound{Bound::Kind(kind), 0};
    word = word.drop_front();
    bool isPower = word.consume_front("2^");
    if (word.getAsDouble(bound.value))
      return bad("no bound");
    if (isPower)
      bound.value = std::exp2(bound.value);
    form.bounds.push_back(bound);
  }
  unsigned inputs = 0;
  for (size_t at = 0; at < code.size();) {
    char c = code[at];
    bool begins = llvm::isAlpha(c) &&
                  (!at || (!isWordCharacter(code[at - 1]) &&
                           !llvm::StringRef(".:%").contains(code[at - 1])));
    if (!begins) {
      form.code += c;
      ++at;
      continue;
    }
    size_t end = at;
    while (end < code.size() && isWordCharacter(code[end]))
      ++end;
    llvm::StringRef name = code.slice(at, end);
    form.code += name;
    at = end;
    if (at + 1 >= code.size() || code[at] != ':' || code[at + 1] == ':')
      continue;
    end = ++at;
    while (end < code.size() && isWordCharacter(code[end]))
      ++end;
    Operand operand;
    operand.name = name.str();
    operand.type = findType(code.slice(at, end));
    if (!operand.type)
      return bad("no type '" + code.slice(at, end) + "'");
    at = end;
    if (at < code.size() && code[at] == '*') {
      end = ++at;
      while (end < code.size() && llvm::isDigit(code[end]))
        ++end;
      if (code.slice(at, end).getAsInteger(10, operand.count) ||
          !operand.count || operand.count > 8)
        return bad("no count");
      at = end;
    }
    operand.kind = name[0] == 'd'   ? Operand::Kind::Result
                   : name[0] == 't' ? Operand::Kind::Temporary
                   : name[0] == 'g' ? Operand::Kind::Global
                   : name[0] == 's' ? Operand::Kind::Shared
                                    : Operand::Kind::Input;
    inputs += operand.isInput();
    if (operand.type->draw == Draw::Every)
      form.isEvery = operand.kind == Operand::Kind::Input;
    for (const Operand &other : form.operands)
      if (other.name == operand.name)
        return bad("two operands '" + name + "'");
    form.operands.push_back(std::move(operand));
  }
  if (!form.outputBytes())
    return bad("no results");
  form.threads = form.isEvery ? 65536 : inputs > 1 ? 384 : 256;
  return form;
}

llvm::Expected<std::vector<Form>> parseForms(llvm::StringRef text) {
  std::vector<Form> forms;
  while (!text.empty()) {
    llvm::StringRef line;
    std::tie(line, text) = text.split('\n');
    line = line.trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    llvm::Expected<Form> form = parseForm(line);
    if (!form)
      return form.takeError();
    forms.push_back(std::move(*form));
  }
  return forms;
}

size_t Form::outputBytes() const {
  size_t bytes = 0;
  for (const Operand &operand : operands)
    if (operand.isOutput())
      bytes += aligned(size_t(operand.bytes()) * threads);
  return bytes;
}

size_t Form::keptBytes() const {
  size_t bytes = 0;
  for (const Operand &operand : operands)
    if (operand.isOutput())
      bytes += isEvery ? 64 * 8 : size_t(operand.bytes()) * threads;
  return bytes;
}

std::vector<uint8_t> Form::inputs() const {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> before(threads);
  unsigned number = 0;
  for (const Operand &operand : operands) {
    if (!operand.isInput())
      continue;
    Random random(hashOf(seed, number++));
    size_t base = bytes.size();
    bytes.resize(base + aligned(size_t(operand.bytes()) * threads));
    unsigned each = operand.bytes() / operand.count;
    for (unsigned thread = 0; thread < threads; ++thread)
      for (unsigned i = 0; i < operand.count; ++i) {
        uint64_t value = drawValue(*operand.type, random, thread);
        // Neighbours of the operand before, for cancellation and for ties.
        bool isNear = number > 1 && operand.type->draw == Draw::Half;
        if (isNear && random.below(6) == 0) {
          value = before[thread] ^ (random.below(2) ? random.below(4) : 0);
          if (random.below(2))
            value ^= uint64_t(1) << (operand.type->bits - 1);
        }
        if (!i)
          before[thread] = value;
        std::memcpy(&bytes[base + size_t(thread) * operand.bytes() + i * each],
                    &value, each);
      }
  }
  return bytes;
}

std::string Form::kernel(llvm::StringRef name) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << ".visible .entry " << name << "(.param .u64 pin, .param .u64 pout)\n{\n"
     << "  .reg .b64 %in, %out, %at;\n  .reg .b32 %i, %n, %thread, %w;\n"
     << "  .reg .b16 %h;\n  .reg .b64 %x;\n  .reg .pred %p;\n";
  bool hasShared = false;
  for (const Operand &operand : operands) {
    unsigned bits = operand.type->bits;
    bool isShared = operand.kind == Operand::Kind::Shared;
    hasShared |= isShared;
    if (operand.isCell())
      bits = isShared ? 32 : 64;
    os << "  .reg ."
       << (bits == 1 ? "pred" : "b" + std::to_string(std::max(bits, 16u)))
       << " " << operand.name << ";\n";
    if (isShared)
      os << "  .shared .align 32 .b8 cells_" << operand.name << "["
         << operand.bytes() * formBlock << "];\n";
  }
  os << "  ld.param.u64 %in, [pin];\n  ld.param.u64 %out, [pout];\n"
     << "  mov.u32 %thread, %tid.x;\n  mov.u32 %n, %ctaid.x;\n"
     << "  mad.lo.u32 %i, %n, " << formBlock << ", %thread;\n";
  size_t offset = 0;
  // Of a shared cell, through a register of its elements' width.
  auto element = [](const Operand &operand) {
    unsigned bits = operand.type->bits;
    return std::make_pair("b" + std::to_string(bits), bits == 64   ? "%x"
                                                      : bits == 32 ? "%w"
                                                                   : "%h");
  };
  for (const Operand &operand : operands) {
    unsigned bits = operand.type->bits;
    if (operand.kind == Operand::Kind::Result) {
      if (bits == 1)
        os << "  setp.ne.u32 " << operand.name << ", %i, %i;\n";
      else
        os << "  mov.b" << std::max(bits, 16u) << " " << operand.name
           << ", 0;\n";
    }
    if (!operand.isInput())
      continue;
    os << "  mad.wide.u32 %at, %i, " << operand.bytes() << ", %in;\n";
    if (operand.kind == Operand::Kind::Global) {
      os << "  add.u64 " << operand.name << ", %at, " << offset << ";\n";
    } else if (operand.kind == Operand::Kind::Shared) {
      os << "  mov.u32 " << operand.name << ", cells_" << operand.name
         << ";\n  mad.lo.u32 " << operand.name << ", %thread, "
         << operand.bytes() << ", " << operand.name << ";\n";
      auto [type, via] = element(operand);
      unsigned each = operand.bytes() / operand.count;
      for (unsigned i = 0; i < operand.count; ++i)
        os << "  ld.global." << type << " " << via << ", [%at+"
           << offset + i * each << "];\n  st.shared." << type << " ["
           << operand.name << "+" << i * each << "], " << via << ";\n";
    } else if (bits == 1) {
      os << "  ld.global.u8 %h, [%at+" << offset << "];\n  setp.ne.u16 "
         << operand.name << ", %h, 0;\n";
    } else {
      os << "  ld.global.b" << bits << " " << operand.name << ", [%at+"
         << offset << "];\n";
    }
    offset += aligned(size_t(operand.bytes()) * threads);
  }
  if (hasShared)
    os << "  bar.sync 0;\n";
  os << "  " << code << ";\n";
  if (hasShared)
    os << "  bar.sync 0;\n";
  offset = 0;
  for (const Operand &operand : operands) {
    if (!operand.isOutput())
      continue;
    unsigned bits = operand.type->bits;
    os << "  mad.wide.u32 %at, %i, " << operand.bytes() << ", %out;\n";
    if (operand.isCell()) {
      auto [type, via] = element(operand);
      const char *space =
          operand.kind == Operand::Kind::Shared ? ".shared." : ".global.";
      unsigned each = operand.bytes() / operand.count;
      for (unsigned i = 0; i < operand.count; ++i)
        os << "  ld.volatile" << space << type << " " << via << ", ["
           << operand.name << "+" << i * each << "];\n  st.global." << type
           << " [%at+" << offset + i * each << "], " << via << ";\n";
    } else if (bits == 1) {
      os << "  selp.b16 %h, 1, 0, " << operand.name << ";\n  st.global.u8 [%at+"
         << offset << "], %h;\n";
    } else {
      os << "  st.global.b" << bits << " [%at+" << offset << "], "
         << operand.name << ";\n";
    }
    offset += aligned(size_t(operand.bytes()) * threads);
  }
  os << "  ret;\n}\n";
  return text;
}

std::string Form::kept(llvm::ArrayRef<uint8_t> output) const {
  std::string kept;
  size_t base = 0;
  for (const Operand &operand : operands) {
    if (!operand.isOutput())
      continue;
    size_t bytes = size_t(operand.bytes()) * threads;
    llvm::StringRef all(reinterpret_cast<const char *>(&output[base]), bytes);
    base += aligned(bytes);
    if (!isEvery) {
      kept += all;
      continue;
    }
    for (size_t part = bytes / 64, at = 0; at < bytes; at += part) {
      uint64_t hash = hashOf(all.substr(at, part));
      kept.append(reinterpret_cast<const char *>(&hash), 8);
    }
  }
  return kept;
}

namespace {

/// As a number; NaN and infinities too.
double decode(const ValueType &type, uint64_t bits) {
  unsigned m = type.mantissa, e = type.exponent;
  uint64_t exponent = bits >> m & maskOf(e), fraction = bits & maskOf(m);
  double sign = bits >> (m + e) & 1 ? -1 : 1;
  int bias = int(maskOf(e - 1));
  if (exponent == maskOf(e))
    return fraction ? std::nan("") : sign * HUGE_VAL;
  if (!exponent)
    return sign * std::ldexp(double(fraction), 1 - bias - int(m));
  return sign * std::ldexp(double(fraction | uint64_t(1) << m),
                           int(exponent) - bias - int(m));
}

bool isWithin(llvm::ArrayRef<Bound> bounds, const ValueType &type, uint64_t a,
              uint64_t b) {
  if (a == b)
    return true;
  if (bounds.empty() || !type.exponent)
    return false;
  for (unsigned at = 0; at < type.bits; at += type.part) {
    uint64_t x = a >> at & maskOf(type.part), y = b >> at & maskOf(type.part);
    double p = decode(type, x), q = decode(type, y);
    if (x == y || (std::isnan(p) && std::isnan(q)))
      continue;
    if (std::isnan(p) || std::isnan(q))
      return false;
    double away = std::fabs(p - q);
    double size = std::max(std::fabs(p), std::fabs(q));
    double least =
        std::ldexp(1.0, 2 - (1 << (type.exponent - 1)) - int(type.mantissa));
    if (std::isinf(away)) {
      // The largest number and infinity are neighbours.
      if (std::isinf(p) && std::isinf(q))
        return false;
      uint64_t apart = x > y ? x - y : y - x;
      if (llvm::none_of(bounds, [&](const Bound &bound) {
            return bound.kind == Bound::Kind::Ulps && apart <= bound.value;
          }))
        return false;
      continue;
    }
    double ulp = std::max(std::exp2(std::floor(std::log2(size))) /
                              double(uint64_t(1) << type.mantissa),
                          least);
    if (llvm::none_of(bounds, [&](const Bound &bound) {
          return away <= bound.value * (bound.kind == Bound::Kind::Relative
                                            ? size
                                        : bound.kind == Bound::Kind::Ulps ? ulp
                                                                          : 1);
        }))
      return false;
  }
  return true;
}

} // namespace

std::string Form::vector(llvm::ArrayRef<uint8_t> given, unsigned thread) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  size_t from = 0;
  for (const Operand &input : operands) {
    if (!input.isInput())
      continue;
    os << " " << input.name << "=";
    unsigned bytes = input.bytes() / input.count;
    for (unsigned k = 0; k < input.count; ++k) {
      uint64_t value = 0;
      std::memcpy(&value,
                  &given[from + size_t(thread) * input.bytes() + k * bytes],
                  bytes);
      os << (k ? ",0x" : "0x") << llvm::utohexstr(value, true);
    }
    from += aligned(size_t(input.bytes()) * threads);
  }
  return text;
}

std::string Form::table(llvm::StringRef results) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << line << "\n";
  if (isEvery || results.size() != keptBytes())
    return text;
  std::vector<uint8_t> given = inputs();
  for (unsigned thread = 0; thread < threads; ++thread) {
    os << "  " << thread << ":" << vector(given, thread) << " ->";
    size_t base = 0;
    for (const Operand &operand : operands) {
      if (!operand.isOutput())
        continue;
      unsigned each = operand.bytes() / operand.count;
      for (unsigned i = 0; i < operand.count; ++i) {
        uint64_t value = 0;
        std::memcpy(&value,
                    results.data() + base + size_t(thread) * operand.bytes() +
                        i * each,
                    each);
        os << " 0x" << llvm::utohexstr(value, true);
      }
      base += size_t(operand.bytes()) * threads;
    }
    os << "\n";
  }
  return text;
}

std::string Form::difference(llvm::StringRef expected,
                             llvm::StringRef got) const {
  if (expected.size() != got.size())
    return "lengths differ";
  if (expected == got)
    return "";
  std::string text;
  llvm::raw_string_ostream os(text);
  unsigned wrong = 0;
  size_t base = 0;
  std::vector<uint8_t> given;
  for (const Operand &operand : operands) {
    if (!operand.isOutput())
      continue;
    unsigned each = operand.bytes() / operand.count;
    unsigned count = threads * operand.count;
    if (isEvery)
      each = 8, count = 64;
    for (unsigned i = 0; i < count; ++i, base += each) {
      uint64_t want = 0, have = 0;
      std::memcpy(&want, expected.data() + base, each);
      std::memcpy(&have, got.data() + base, each);
      if (isEvery ? want == have : isWithin(bounds, *operand.type, want, have))
        continue;
      if (wrong++)
        continue;
      unsigned thread = i / operand.count;
      os << operand.name;
      if (isEvery) {
        unsigned part = 65536 / 64;
        os << " of " << llvm::utohexstr(i * part) << " to "
           << llvm::utohexstr((i + 1) * part - 1) << " differs";
        continue;
      }
      if (operand.count > 1)
        os << "[" << i % operand.count << "]";
      os << " wanted 0x" << llvm::utohexstr(want, true) << ", got 0x"
         << llvm::utohexstr(have, true) << " in vector " << thread << ":";
      if (given.empty())
        given = inputs();
      os << vector(given, thread);
    }
  }
  if (!wrong)
    return "";
  return std::to_string(wrong) + " differ; " + text;
}

} // namespace fsr::golden
