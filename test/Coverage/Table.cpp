// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads kernels.txt and fills buffers. Fills are the same in each run:
//
//   none        nothing was written        zero      zeros
//   iota        0, 1, 2…                   step:K    0, K, 2K…
//   value:V     V everywhere               rand      from -1 to 1
//   pos         from 0.1 to 1.1            rand:K    integers below K
//   perm        a permutation of 0, 1, 2…  sorted:K  0, up to K more each time
//   next        1, 2, 3… and 0 at last
//   half        0, 1, 1, 2, 2…            mod:K     0 to K - 1, again and again
//
//===----------------------------------------------------------------------===//

#include "Table.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/APInt.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cstring>
#include <random>

namespace fsr::ptx {

static const llvm::fltSemantics &semanticsOf(Type type) {
  switch (type) {
  case Type::F16:
    return llvm::APFloat::IEEEhalf();
  case Type::BF16:
    return llvm::APFloat::BFloat();
  case Type::E4M3:
    return llvm::APFloat::Float8E4M3FN();
  case Type::E5M2:
    return llvm::APFloat::Float8E5M2();
  case Type::F32:
    return llvm::APFloat::IEEEsingle();
  default:
    return llvm::APFloat::IEEEdouble();
  }
}

static bool isFloatType(Type type) {
  return isFloat(type) || type == Type::E4M3 || type == Type::E5M2;
}

double Argument::value(const std::vector<uint8_t> &bytes, size_t i) const {
  unsigned width = bitWidth(type) / 8;
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + i * width, width);
  if (isFloatType(type)) {
    llvm::APFloat value(semanticsOf(type), llvm::APInt(width * 8, bits));
    bool inexact;
    value.convert(llvm::APFloat::IEEEdouble(),
                  llvm::APFloat::rmNearestTiesToEven, &inexact);
    return value.convertToDouble();
  }
  if (isSigned(type))
    return double(int64_t(bits << (64 - width * 8)) >> (64 - width * 8));
  return double(bits);
}

static void put(Argument &to, size_t i, double value) {
  unsigned width = bitWidth(to.type) / 8;
  uint64_t bits = uint64_t(int64_t(value));
  if (isFloatType(to.type)) {
    llvm::APFloat number(value);
    bool inexact;
    number.convert(semanticsOf(to.type), llvm::APFloat::rmNearestTiesToEven,
                   &inexact);
    bits = number.bitcastToAPInt().getZExtValue();
  }
  std::memcpy(to.before.data() + i * width, &bits, width);
}

static bool fill(Argument &to, llvm::StringRef how, unsigned seed) {
  auto [name, text] = how.split(':');
  double k = 0;
  if (!text.empty() && text.getAsDouble(k))
    return false;
  std::mt19937 random(seed);
  auto uniform = [&] { return (random() >> 8) * 0x1p-24; };
  std::vector<double> values(to.count);
  for (size_t i = 0; i < to.count; ++i) {
    if (name == "none" || name == "zero")
      values[i] = 0;
    else if (name == "iota" || name == "perm")
      values[i] = double(i);
    else if (name == "step")
      values[i] = double(i) * k;
    else if (name == "value")
      values[i] = k;
    else if (name == "rand" && text.empty())
      values[i] = uniform() * 2 - 1;
    else if (name == "rand")
      values[i] = double(random() % unsigned(k));
    else if (name == "pos")
      values[i] = 0.1 + uniform();
    else if (name == "sorted")
      values[i] = i ? values[i - 1] + random() % (unsigned(k) + 1) : 0;
    else if (name == "half")
      values[i] = double((i + 1) / 2);
    else if (name == "mod")
      values[i] = double(i % size_t(k));
    else if (name == "next")
      values[i] = double((i + 1) % to.count);
    else
      return false;
  }
  if (name == "perm")
    for (size_t i = to.count; i > 1; --i)
      std::swap(values[i - 1], values[random() % i]);
  to.isInitialized = name != "none";
  for (size_t i = 0; i < to.count; ++i)
    put(to, i, values[i]);
  return true;
}

static bool readArgument(Argument &to, llvm::StringRef text, unsigned seed) {
  llvm::SmallVector<llvm::StringRef, 4> words;
  llvm::SplitString(text, words);
  if (words.size() == 2 && words[0].size() == 1) {
    Type type = llvm::StringSwitch<Type>(words[0])
                    .Case("i", Type::S32)
                    .Case("u", Type::U32)
                    .Case("l", Type::S64)
                    .Case("f", Type::F32)
                    .Case("d", Type::F64)
                    .Default(Type::None);
    double value;
    if (type == Type::None || words[1].getAsDouble(value))
      return false;
    to.type = type;
    to.before.resize(bitWidth(type) / 8);
    put(to, 0, value);
    return true;
  }
  std::optional<Type> type;
  if (words.size() == 3)
    type = parseType(words[0]);
  if (!type || words[1].getAsInteger(10, to.count) || to.count > 1 << 20)
    return false;
  to.isBuffer = true;
  to.type = *type;
  to.before.resize(to.count * bitWidth(*type) / 8);
  return fill(to, words[2], seed);
}

static bool readShape(std::array<unsigned, 3> &to, llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 3> parts;
  text.split(parts, 'x');
  if (parts.size() > 3)
    return false;
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].getAsInteger(10, to[i]))
      return false;
  return true;
}

static bool readCase(Case &to, llvm::StringRef line) {
  auto [left, check] = line.split("->");
  to.check = check.trim().str();
  llvm::SmallVector<llvm::StringRef, 8> parts, words;
  left.split(parts, '|');
  llvm::SplitString(parts[0], words);
  if (words.size() < 5 || to.check.empty())
    return false;
  to.file = words[0].str();
  to.kernel = words[1].str();
  if (!readShape(to.shape.grid, words[2]) ||
      !readShape(to.shape.block, words[3]) ||
      words[4].getAsInteger(10, to.shape.sharedBytes))
    return false;
  for (llvm::StringRef word : llvm::ArrayRef(words).drop_front(5)) {
    if (word == "coop")
      to.shape.cooperative = true;
    else if (!word.consume_front("cluster=") ||
             word.getAsInteger(10, to.shape.cluster[0]))
      return false;
  }
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_front()) {
    to.arguments.emplace_back();
    if (!readArgument(to.arguments.back(), part, to.arguments.size()))
      return false;
  }
  return true;
}

llvm::Expected<std::vector<Case>> readTable(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return makeError(ErrorKind::BadInput, "cannot read " + path + ": " +
                                              buffer.getError().message());
  std::vector<Case> cases;
  llvm::SmallVector<llvm::StringRef, 0> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    llvm::StringRef line = lines[i].trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    Case one;
    one.line = i + 1;
    if (!readCase(one, line))
      return makeError(ErrorKind::BadInput, path + ":" + llvm::Twine(i + 1) +
                                                ": cannot read this line");
    if (one.check != "clean" && !findCheck(one.check))
      return makeError(ErrorKind::BadInput, path + ":" + llvm::Twine(i + 1) +
                                                ": no check named " +
                                                one.check);
    cases.push_back(std::move(one));
  }
  return cases;
}

llvm::Error readProofs(const std::string &path, std::vector<Case> &cases) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return makeError(ErrorKind::BadInput, "cannot read " + path + ": " +
                                              buffer.getError().message());
  llvm::SmallVector<llvm::StringRef, 0> lines;
  (*buffer)->getBuffer().split(lines, '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    llvm::StringRef line = lines[i].trim();
    if (line.empty() || line.starts_with("#"))
      continue;
    auto fail = [&](const llvm::Twine &message) {
      return makeError(ErrorKind::BadInput,
                       path + ":" + llvm::Twine(i + 1) + ": " + message);
    };
    auto [first, rest] = line.split(' ');
    auto [second, verdict] = rest.split(' ');
    // C++17 captures no bindings.
    llvm::StringRef file = first, kernel = second;
    auto [name, reason] = verdict.split(' ');
    auto kind = llvm::StringSwitch<ProofClass>(name)
                    .Case("dense", ProofClass::Dense)
                    .Case("data", ProofClass::Data)
                    .Case("choice", ProofClass::Choice)
                    .Default(ProofClass::Unlisted);
    if (kind == ProofClass::Unlisted)
      return fail("no class '" + name + "'");
    if (reason.trim().empty() != (kind == ProofClass::Dense))
      return fail("a reason for all but 'dense'");
    auto at = llvm::find_if(cases, [&](const Case &one) {
      return one.file == file && one.kernel == kernel;
    });
    if (at == cases.end())
      return fail("the table has no kernel '" + kernel + "' of '" + file + "'");
    if (at->proof != ProofClass::Unlisted)
      return fail("a second line for '" + kernel + "'");
    at->proof = kind;
    at->proofReason = reason.trim().str();
  }
  for (const Case &one : cases)
    if (one.proof == ProofClass::Unlisted)
      return makeError(ErrorKind::BadInput, path + ": no line for '" +
                                                one.kernel + "' of '" +
                                                one.file + "'");
  return llvm::Error::success();
}

} // namespace fsr::ptx
