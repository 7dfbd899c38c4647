// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tokens, and what stands at module scope: directives and the heads of
// functions. Debug sections are skipped. A performance directive that is not
// known is passed over, since it cannot change what a kernel computes.
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"

namespace fsr::ptx {

// Tokens. ---------------------------------------------------------------------

bool Parser::fail(Location location, const llvm::Twine &what) {
  if (message.empty())
    message = (llvm::Twine(location.line) + ":" + llvm::Twine(location.column) +
               ": " + what)
                  .str();
  return false;
}

bool Parser::failExpected(const llvm::Twine &wanted) {
  switch (token.kind) {
  case Token::Kind::Bad:
    return fail(token.location, token.text);
  case Token::Kind::End:
    return fail(token.location,
                "expected " + wanted + ", got the end of the text");
  default:
    // Control characters and bytes beyond ASCII stay out of messages.
    std::string shown;
    for (char c : token.text.take_front(60))
      shown += llvm::isPrint(c) ? c : '?';
    if (token.kind == Token::Kind::Dot)
      shown.insert(0, ".");
    return fail(token.location, "expected " + wanted + ", got `" + shown + "`");
  }
}

bool Parser::accept(llvm::StringRef punct) {
  if (!token.is(punct))
    return false;
  advance();
  return true;
}

bool Parser::expect(llvm::StringRef punct) {
  return accept(punct) || failExpected("`" + punct + "`");
}

bool Parser::acceptDot(llvm::StringRef name) {
  if (!token.isDot(name))
    return false;
  advance();
  return true;
}

bool Parser::expectName(llvm::StringRef &name, const char *what) {
  if (token.kind != Token::Kind::Name)
    return failExpected(what);
  name = token.text;
  advance();
  return true;
}

bool Parser::expectNumber(uint64_t &value, uint64_t most, const char *what) {
  if (token.kind != Token::Kind::Integer)
    return failExpected(what);
  Location location = token.location;
  Constant constant;
  if (!parseLiteral(constant))
    return false;
  if (constant.bits > most)
    return fail(location, llvm::Twine(what) + " of " +
                              llvm::Twine(constant.bits) + ", wanted at most " +
                              llvm::Twine(most));
  value = constant.bits;
  return true;
}

bool Parser::skipBraces() {
  for (size_t open = 1; open != 0; advance()) {
    if (token.is("{"))
      ++open;
    else if (token.is("}"))
      --open;
    else if (token.kind == Token::Kind::End || token.kind == Token::Kind::Bad)
      return failExpected("`}`");
  }
  return true;
}

bool Parser::skipParentheses() {
  if (!expect("("))
    return false;
  for (size_t open = 1; open != 0; advance()) {
    if (token.is("("))
      ++open;
    else if (token.is(")"))
      --open;
    else if (token.kind == Token::Kind::End || token.kind == Token::Kind::Bad)
      return failExpected("`)`");
  }
  return true;
}

bool Parser::skipToSemicolon() {
  while (!token.is(";")) {
    if (token.kind == Token::Kind::End || token.kind == Token::Kind::Bad)
      return failExpected("`;`");
    advance();
  }
  advance();
  return true;
}

// Directives. -----------------------------------------------------------------

bool Parser::parseVersion() {
  Location location = token.location;
  auto [major, minor] = token.text.split('.');
  if (token.kind != Token::Kind::Real ||
      major.getAsInteger(10, module.versionMajor) ||
      minor.getAsInteger(10, module.versionMinor))
    return failExpected("a version such as 8.0");
  if (module.versionMajor < 3 || module.versionMajor > 99)
    return fail(location, "PTX version " + token.text.take_front(40) +
                              ", wanted 3.0 or later");
  advance();
  return true;
}

bool Parser::parseTarget() {
  llvm::StringRef target;
  if (!expectName(target, "a target such as sm_90"))
    return false;
  module.target = target.str();
  while (accept(",")) // `debug`, `texmode_independent`…
    if (!expectName(target, "an option of the target"))
      return false;
  return true;
}

bool Parser::parseFile() {
  uint64_t number = 0;
  if (!expectNumber(number, limits::fileNumber, "a file number"))
    return false;
  if (token.kind != Token::Kind::String)
    return failExpected("a file name in quotes");
  if (module.files.size() <= number)
    module.files.resize(number + 1);
  module.files[number] = token.text.str();
  advance();
  while (accept(",")) // Time and size.
    if (!expectNumber(number, ~uint64_t(0), "a time or a size"))
      return false;
  return true;
}

bool Parser::parseSection() {
  if (token.kind != Token::Kind::Dot && token.kind != Token::Kind::Name &&
      token.kind != Token::Kind::String)
    return failExpected("the name of a section");
  advance();
  return expect("{") && skipBraces();
}

bool Parser::parseAlias() {
  Location location = token.location;
  llvm::StringRef alias, of;
  if (!expectName(alias, "a function") || !expect(","))
    return false;
  Location place = token.location;
  if (!expectName(of, "a function") || !expect(";"))
    return false;
  auto known = functionIndex.find(of);
  if (known == functionIndex.end())
    return fail(place, "an alias of `" + of.take_front(80) +
                           "`, which is no function");
  if (aliases.count(of))
    return fail(place, "an alias of an alias, `" + of.take_front(80) + "`");
  auto own = functionIndex.find(alias);
  if (own != functionIndex.end() && !module.functions[own->second].isExtern)
    return fail(location,
                "`" + alias.take_front(80) + "` is an alias and has a body");
  aliases[alias] = of;
  return true;
}

bool Parser::parseTopLevel() {
  Linkage linkage;
  Location location = token.location;
  bool hasLinkage = false;
  while (token.kind == Token::Kind::Dot) {
    if (token.text == "extern")
      linkage.isExtern = true;
    else if (token.text == "visible" || token.text == "weak" ||
             token.text == "common")
      linkage.isVisible = true;
    else
      break;
    hasLinkage = true;
    advance();
  }
  if (accept(";") && !hasLinkage)
    return true;
  if (token.is("@@")) // `@@DWARF` of old versions: a line each.
    return fail(location, "`@@` directives are not read");
  if (token.kind != Token::Kind::Dot)
    return failExpected("a directive");
  llvm::StringRef directive = token.text;
  if (directive == "entry" || directive == "func") {
    advance();
    return parseFunction(linkage, directive == "entry");
  }
  if (std::optional<Space> space = spaceOf(directive)) {
    if (*space == Space::Param || *space == Space::Local)
      return fail(token.location, "`." + directive + "` at module scope");
    advance();
    return parseModuleVariables(linkage, *space);
  }
  if (hasLinkage)
    return failExpected("a function or a variable");
  if (directive == "tex") {
    // `.tex` is an old way to say `.global .texref`.
    return fail(token.location, "`.tex` variables are not read");
  }
  advance();
  if (directive == "version")
    return parseVersion();
  if (directive == "target")
    return parseTarget();
  if (directive == "address_size") {
    uint64_t bits = 0;
    if (!expectNumber(bits, 64, "an address size"))
      return false;
    if (bits != 32 && bits != 64)
      return fail(location, "an address size of " + llvm::Twine(bits));
    module.addressBits = bits;
    return true;
  }
  if (directive == "file")
    return parseFile();
  if (directive == "section")
    return parseSection();
  if (directive == "alias")
    return parseAlias();
  if (directive == "pragma")
    return skipToSemicolon();
  if (directive == "loc")
    return parseLoc();
  return fail(location, "`." + directive.take_front(60) +
                            "` is no directive of module scope");
}

// Functions. ------------------------------------------------------------------

bool Parser::parseDimensions(std::array<unsigned, 3> &into) {
  into = {1, 1, 1};
  for (unsigned i = 0; i < 3; ++i) {
    uint64_t value = 0;
    if (!expectNumber(value, 0x7fffffff, "a number of threads or blocks"))
      return false;
    into[i] = value;
    if (!accept(","))
      break;
  }
  return true;
}

bool Parser::parsePerformance(Function &into) {
  while (token.kind == Token::Kind::Dot) {
    llvm::StringRef directive = token.text;
    advance();
    auto number = [&](unsigned &value) {
      uint64_t read = 0;
      if (!expectNumber(read, 0x7fffffff, "a number"))
        return false;
      value = read;
      return true;
    };
    bool isWell = true;
    if (directive == "maxntid")
      isWell = parseDimensions(into.maxThreads);
    else if (directive == "reqntid")
      isWell = parseDimensions(into.requiredThreads);
    else if (directive == "reqnctapercluster")
      isWell = parseDimensions(into.requiredCluster);
    else if (directive == "minnctapersm" || directive == "maxnctapersm")
      isWell = number(into.minBlocks);
    else if (directive == "maxnreg")
      isWell = number(into.maxRegisters);
    else if (directive == "maxclusterrank")
      isWell = number(into.maxClusterRank);
    else if (directive == "section")
      return failExpected("a body");
    else if (token.is("(")) // `.unified(…)`, `.attribute(…)`
      isWell = skipParentheses();
    else
      while (token.kind == Token::Kind::Integer ||
             token.kind == Token::Kind::String || token.is(","))
        advance();
    if (!isWell)
      return false;
  }
  return true;
}

bool Parser::parseFunction(const Linkage &linkage, bool isEntry) {
  Function made;
  made.isEntry = isEntry;
  made.isExtern = true; // Until a body is seen.
  beginFunction(made);
  if (token.isDot("attribute")) {
    advance();
    if (!skipParentheses())
      return false;
  }
  if (!isEntry && token.is("(") && !parseParameters(made, made.results))
    return false;
  made.location = token.location;
  llvm::StringRef name;
  if (!expectName(name, "the name of a function"))
    return false;
  made.name = name.str();
  if (variableIndex.count(name))
    return fail(made.location, "`" + name.take_front(80) +
                                   "` is the name of a variable already");
  if (token.is("(") && !parseParameters(made, made.parameters))
    return false;
  if (!parsePerformance(made))
    return false;

  auto [known, isNew] =
      functionIndex.try_emplace(name, uint32_t(module.functions.size()));
  uint32_t index = known->second;
  if (isNew)
    module.functions.emplace_back();
  else if (token.is("{") && !module.functions[index].isExtern)
    return fail(made.location,
                "`" + name.take_front(80) + "` has a body already, at line " +
                    llvm::Twine(module.functions[index].location.line));
  if (token.is("{")) {
    if (linkage.isExtern)
      return fail(token.location,
                  "`" + name.take_front(80) + "` is `.extern` and has a body");
    made.isExtern = false;
    // The operands of its own code may name it: the index is there already.
    if (!parseBody())
      return false;
  } else if (!expect(";")) {
    return false;
  }
  if (isNew || !made.isExtern || module.functions[index].isExtern)
    module.functions[index] = std::move(made);
  function = nullptr;
  return true;
}

// The module. -----------------------------------------------------------------

bool Parser::finish() {
  for (const auto &[name, location] : wantedSymbols)
    if (!functionIndex.count(name) && !variableIndex.count(name) &&
        !aliases.count(name))
      return fail(location, "`" + llvm::StringRef(name).take_front(80) +
                                "` is not declared");
  if (aliases.empty())
    return true;
  // The names of aliases become those that they stand for. What that adds is
  // bounded, as a short name may stand for a long one.
  size_t room = limits::textBytes;
  auto rename = [&](std::string &name) {
    auto known = aliases.find(name);
    if (known == aliases.end())
      return true;
    if (known->second.size() > room)
      return false;
    room -= known->second.size();
    name = known->second.str();
    return true;
  };
  auto renameOperand = [&](auto &self, Operand &operand) -> bool {
    if (operand.kind == Operand::Kind::Function && !rename(operand.name))
      return false;
    for (Operand &element : operand.elements)
      if (!self(self, element))
        return false;
    return true;
  };
  bool fits = true;
  for (Variable &variable : module.variables)
    for (InitialValue &value : variable.initial)
      fits = fits && (value.symbol.empty() || rename(value.symbol));
  for (Function &one : module.functions) {
    for (LabelList &list : one.labelLists)
      for (std::string &name : list.functions)
        fits = fits && rename(name);
    for (Instruction &instruction : one.code)
      for (Operand &operand : instruction.operands)
        fits = fits && renameOperand(renameOperand, operand);
  }
  return fits || fail({1, 1}, "aliases of names that are too long");
}

bool Parser::parseModule() {
  if (!token.isDot("version"))
    return failExpected("`.version`");
  while (token.kind != Token::Kind::End)
    if (!parseTopLevel())
      return false;
  if (module.target.empty())
    return failExpected("`.target`");
  return finish();
}

llvm::Expected<std::unique_ptr<Module>> parseModule(llvm::StringRef text) {
  // Some compilers hand out a string with its end.
  text = text.rtrim('\0');
  if (text.size() > limits::textBytes)
    return makeError(ErrorKind::BadInput, "1:1: a text of " +
                                              llvm::Twine(text.size()) +
                                              " bytes, wanted at most " +
                                              llvm::Twine(limits::textBytes));
  auto module = std::make_unique<Module>();
  module->text = text.str();
  module->files.emplace_back();
  Parser parser(*module);
  if (!parser.parseModule())
    return makeError(ErrorKind::BadInput, parser.message);
  return module;
}

} // namespace fsr::ptx
