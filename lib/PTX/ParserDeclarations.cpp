// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Variables, parameters and registers. Sizes are computed with care for what
// does not fit and never allocated; an initialiser holds what the text writes
// and the zeros between, so its size is bounded on its own.
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

namespace fsr::ptx {

std::optional<Space> Parser::spaceOf(llvm::StringRef directive) {
  return llvm::StringSwitch<std::optional<Space>>(directive)
      .Case("global", Space::Global)
      .Cases({"shared", "shared::cta"}, Space::Shared)
      .Case("local", Space::Local)
      .Case("param", Space::Param)
      .Case("const", Space::Const)
      .Default(std::nullopt);
}

bool Parser::parsePrefix(Prefix &into) {
  bool isPointer = false; // What follows `.ptr` is said of the pointee.
  while (token.kind == Token::Kind::Dot) {
    llvm::StringRef text = token.text;
    Location location = token.location;
    advance();
    if (text == "align") {
      uint64_t alignment = 0;
      if (!expectNumber(alignment, uint64_t(1) << 20, "an alignment"))
        return false;
      if (!llvm::isPowerOf2_64(alignment))
        return fail(location, "an alignment of " + llvm::Twine(alignment) +
                                  ", wanted a power of two");
      if (!isPointer)
        into.alignment = alignment;
    } else if (text == "ptr") {
      isPointer = true;
    } else if (isPointer && spaceOf(text)) {
    } else if (text == "attribute") {
      if (!skipParentheses())
        return false;
    } else if (text == "v2" || text == "v4" || text == "v8") {
      into.vector = text[1] - '0';
    } else if (text == "texref" || text == "samplerref" || text == "surfref") {
      into.type = Type::B64; // An opaque handle.
    } else if (std::optional<Type> type = parseType(text)) {
      into.type = *type;
    } else {
      return fail(location, "`." + text.take_front(40) +
                                "` in a declaration, wanted a type");
    }
  }
  if (into.type == Type::None)
    return failExpected("a type");
  return true;
}

bool Parser::parseDeclarator(const Prefix &prefix, Variable &into,
                             bool allowInitial) {
  Location location = token.location;
  llvm::StringRef name;
  if (!expectName(name, "a name"))
    return false;
  if (prefix.type == Type::Pred)
    return fail(location, "a variable of type `.pred`");
  into.name = name.str();
  into.location = location;
  into.type = prefix.type;
  uint64_t element = uint64_t(bitWidth(prefix.type)) / 8 * prefix.vector;
  into.alignment = prefix.alignment ? prefix.alignment : element;

  llvm::SmallVector<uint64_t, 4> sizes;
  uint64_t bytes = element;
  while (token.is("[")) {
    advance();
    if (sizes.size() == 8)
      return fail(token.location, "an array of more than 8 dimensions");
    uint64_t size = 0;
    if (token.is("]")) {
      if (!sizes.empty())
        return fail(token.location, "only the first dimension may be left out");
      into.isUnsizedArray = true;
    } else {
      Location place = token.location;
      Constant value;
      if (!parseConstant(value))
        return false;
      size = value.bits;
      if (!value.isInteger() || size > limits::variableBytes)
        return fail(place, "a dimension that is negative or too large");
      if (size != 0 && bytes > limits::variableBytes / size)
        return fail(location, "`" + name.take_front(80) + "` is larger than " +
                                  llvm::Twine(limits::variableBytes) +
                                  " bytes");
      bytes *= size;
    }
    sizes.push_back(size);
    if (!expect("]"))
      return false;
  }
  if (into.isUnsizedArray)
    bytes = 0;
  into.bytes = bytes;
  if (!token.is("=") || !allowInitial)
    return true;
  advance();
  if (into.space != Space::Global && into.space != Space::Const)
    return fail(location, "an initialiser of `" + name.take_front(80) +
                              "`, which is neither `.global` nor `.const`");
  return parseInitialiser(prefix, sizes, into);
}

bool Parser::parseInitialiser(const Prefix &prefix,
                              llvm::ArrayRef<uint64_t> sizes, Variable &into) {
  // A vector is one more dimension.
  llvm::SmallVector<uint64_t, 4> all(sizes);
  if (prefix.vector > 1)
    all.push_back(prefix.vector);
  if (!parseInitialList(prefix, all, into, 0))
    return false;
  if (into.isUnsizedArray) {
    // As many rows as were written.
    uint64_t row = prefix.vector;
    for (uint64_t size : sizes.drop_front())
      row *= size;
    if (row == 0)
      return fail(into.location, "an array of nothing with an initialiser");
    uint64_t rows = llvm::divideCeil(into.initial.size(), row);
    into.bytes = rows * row * (bitWidth(prefix.type) / 8);
    into.isUnsizedArray = false;
  }
  // The rest is zero anyway.
  while (!into.initial.empty() && into.initial.back().bits == 0 &&
         into.initial.back().symbol.empty())
    into.initial.pop_back();
  return true;
}

bool Parser::parseInitialList(const Prefix &prefix,
                              llvm::ArrayRef<uint64_t> sizes, Variable &into,
                              unsigned depth) {
  auto add = [&](InitialValue value) {
    if (++numInitialValues > limits::initialValues)
      return fail(token.location, "more than " +
                                      llvm::Twine(limits::initialValues) +
                                      " initial values");
    into.initial.push_back(std::move(value));
    return true;
  };
  Location location = token.location;
  if (sizes.empty()) {
    InitialValue value;
    return parseInitialValue(prefix, value) && add(std::move(value));
  }
  if (!expect("{"))
    return false;
  uint64_t inner = 1; // Elements of a row.
  for (uint64_t size : sizes.drop_front())
    inner *= size;
  bool isUnsized = depth == 0 && into.isUnsizedArray;
  uint64_t most = isUnsized ? limits::initialValues : sizes.front() * inner;
  size_t begin = into.initial.size();
  while (!token.is("}")) {
    Location place = token.location;
    // Whether a short row is filled up, compilers and their manual differ; only
    // the last one may be short.
    if ((into.initial.size() - begin) % std::max<uint64_t>(inner, 1) != 0)
      return fail(place, "a row after one that is not full");
    if (!parseInitialList(prefix, sizes.drop_front(), into, depth + 1))
      return false;
    if (into.initial.size() - begin > most)
      return fail(location, "more than the " + llvm::Twine(most) +
                                " initial values that `" +
                                llvm::StringRef(into.name).take_front(80) +
                                "` has room for");
    if (!accept(","))
      break;
  }
  return expect("}");
}

bool Parser::parseInitialAddress(InitialValue &into) {
  bool isGeneric = token.kind == Token::Kind::Name && token.text == "generic";
  Location location = token.location;
  llvm::StringRef name;
  if (!expectName(name, "a variable or function"))
    return false;
  if (isGeneric && accept("(")) {
    into.isGeneric = true;
    location = token.location;
    if (!expectName(name, "a variable") || !parseOffset(into.bits) ||
        !expect(")"))
      return false;
  }
  into.symbol = name.str();
  wantedSymbols.push_back({into.symbol, location});
  return parseOffset(into.bits);
}

bool Parser::parseInitialValue(const Prefix &prefix, InitialValue &into) {
  if (token.kind == Token::Kind::Name && token.text != "WARP_SZ")
    return parseInitialAddress(into);
  Location location = token.location;
  Constant value;
  if (token.kind == Token::Kind::Integer) {
    // `0xFF00(symbol)` is a byte of an address; else it was a look ahead.
    Lexer lexerBefore = lexer;
    Token tokenBefore = token;
    if (!parseLiteral(value))
      return false;
    if (token.is("(")) {
      advance();
      uint64_t low = value.bits & (0 - value.bits);
      bool isRun = value.bits != 0 && ((value.bits + low) & value.bits) == 0;
      if (!isRun ||
          unsigned(llvm::popcount(value.bits)) > bitWidth(prefix.type))
        return fail(location, "a mask that is not one run of at most as many "
                              "bits as the element has");
      into.mask = value.bits;
      return parseInitialAddress(into) && expect(")");
    }
    lexer = lexerBefore;
    token = tokenBefore;
  }
  return parseConstant(value) &&
         convertInitial(value, prefix.type, location, into.bits);
}

bool Parser::convertInitial(const Constant &value, Type type, Location location,
                            uint64_t &bits) {
  bool isDouble = value.kind == Constant::Kind::Double;
  bool fits = true;
  bits = value.bits;
  switch (type) {
  case Type::F64:
    fits = isDouble;
    break;
  case Type::F32:
    fits = !value.isInteger();
    break;
  case Type::B64:
    fits = value.kind != Constant::Kind::Single;
    break;
  case Type::B32:
    break;
  default:
    fits = value.isInteger() && !isFloat(type) && bitWidth(type) <= 64;
    break;
  }
  if (!fits)
    return fail(location, "the initial value is of a type that does not fit "
                          "to `." +
                              nameOf(type) + "`");
  if (isDouble && bitWidth(type) == 32)
    bits = llvm::bit_cast<uint32_t>(float(llvm::bit_cast<double>(value.bits)));
  else if (bitWidth(type) < 64)
    bits &= (uint64_t(1) << bitWidth(type)) - 1;
  return true;
}

bool Parser::parseParameters(Function &into, std::vector<Variable> &variables) {
  if (!expect("("))
    return false;
  while (!token.is(")")) {
    Variable variable;
    variable.location = token.location;
    if (acceptDot("reg")) {
      Prefix prefix;
      if (!parsePrefix(prefix))
        return false;
      Location location = token.location;
      llvm::StringRef name;
      if (!expectName(name, "a register"))
        return false;
      if (prefix.vector > 1)
        return fail(location, "a vector register as a parameter");
      Symbol symbol;
      symbol.index = into.registers.size();
      if (!countRegisters(location, 1) || !declare(name, location, symbol))
        return false;
      into.registers.push_back({name.str(), prefix.type});
      variable.name = name.str();
      variable.location = location;
      variable.type = prefix.type;
      variable.bytes = llvm::divideCeil(bitWidth(prefix.type), 8);
      variable.alignment = variable.bytes;
    } else {
      if (!acceptDot("param"))
        return failExpected("`.param` or `.reg`");
      Prefix prefix;
      variable.space = Space::Param;
      if (!parsePrefix(prefix))
        return false;
      llvm::StringRef name = token.text;
      Location location = token.location;
      if (!parseDeclarator(prefix, variable, false))
        return false;
      Symbol symbol;
      symbol.kind = Symbol::Kind::Variable;
      symbol.index = ~0u; // Its name is its own.
      if (name != "_" && !declare(name, location, symbol))
        return false;
    }
    if (++numOperands > limits::operands)
      return fail(variable.location, "more than " +
                                         llvm::Twine(limits::operands) +
                                         " operands and parameters");
    variables.push_back(std::move(variable));
    if (!accept(","))
      break;
  }
  return expect(")");
}

bool Parser::parseModuleVariables(const Linkage &linkage, Space space) {
  Prefix prefix;
  if (!parsePrefix(prefix))
    return false;
  do {
    Variable variable;
    variable.space = space;
    variable.isExtern = linkage.isExtern;
    variable.isVisible = linkage.isVisible;
    llvm::StringRef name = token.text;
    if (!parseDeclarator(prefix, variable, !linkage.isExtern))
      return false;
    if (functionIndex.count(name))
      return fail(variable.location, "`" + name.take_front(80) +
                                         "` is the name of a function already");
    auto [known, isNew] =
        variableIndex.try_emplace(name, uint32_t(module.variables.size()));
    if (isNew) {
      module.variables.push_back(std::move(variable));
      continue;
    }
    // Declared before and defined now, or declared again.
    Variable &before = module.variables[known->second];
    if (!before.isExtern && !variable.isExtern)
      return fail(variable.location,
                  "`" + name.take_front(80) +
                      "` is declared twice, before at line " +
                      llvm::Twine(before.location.line));
    if (before.isExtern)
      before = std::move(variable);
  } while (accept(","));
  return expect(";");
}

bool Parser::parseLocalVariables(Space space) {
  Prefix prefix;
  if (!parsePrefix(prefix))
    return false;
  do {
    Variable variable;
    variable.space = space;
    llvm::StringRef name = token.text;
    if (!parseDeclarator(prefix, variable, true))
      return false;
    Symbol symbol;
    symbol.kind = Symbol::Kind::Variable;
    symbol.index = function->variables.size();
    if (!declare(name, variable.location, symbol))
      return false;
    // `@` is in no name of PTX, so this one is nobody else's.
    if (scope != 0)
      variable.name += "@" + std::to_string(scope);
    if (++numOperands > limits::operands)
      return fail(variable.location, "more than " +
                                         llvm::Twine(limits::operands) +
                                         " operands and variables");
    function->variables.push_back(std::move(variable));
  } while (accept(","));
  return expect(";");
}

bool Parser::countRegisters(Location location, uint64_t count) {
  if (count > limits::registers || numRegisters + count > limits::registers)
    return fail(location, "more than " + llvm::Twine(limits::registers) +
                              " registers in the module");
  numRegisters += count;
  return true;
}

bool Parser::parseRegisters() {
  Prefix prefix;
  if (!parsePrefix(prefix))
    return false;
  do {
    Location location = token.location;
    llvm::StringRef name;
    if (!expectName(name, "a register"))
      return false;
    std::vector<RegisterDecl> &registers = function->registers;
    Symbol symbol;
    symbol.index = registers.size();
    if (accept("<")) {
      uint64_t count = 0;
      if (prefix.vector > 1)
        return fail(location, "a range of vector registers");
      if (name.size() > 64)
        return fail(location, "a range of registers whose name is longer than "
                              "64 characters");
      if (!expectNumber(count, limits::registers, "a number of registers") ||
          !expect(">") || !countRegisters(location, count))
        return false;
      symbol.kind = Symbol::Kind::Range;
      symbol.count = count;
      if (!scopes[scope].ranges.try_emplace(name, symbol).second)
        return fail(location, "the registers `" + name.take_front(80) +
                                  "<…>` are declared twice");
      for (uint64_t i = 0; i < count; ++i)
        registers.push_back({name.str() + std::to_string(i), prefix.type});
      continue;
    }
    if (!countRegisters(location, prefix.vector))
      return false;
    if (prefix.vector == 1) {
      registers.push_back({name.str(), prefix.type});
    } else {
      if (prefix.vector > 4)
        return fail(location, "a vector register of 8 parts");
      symbol.kind = Symbol::Kind::Vector;
      symbol.count = prefix.vector;
      for (unsigned i = 0; i < prefix.vector; ++i)
        registers.push_back({name.str() + "." + "xyzw"[i], prefix.type});
    }
    if (!declare(name, location, symbol))
      return false;
  } while (accept(","));
  return expect(";");
}

} // namespace fsr::ptx
