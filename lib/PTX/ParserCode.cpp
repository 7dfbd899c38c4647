// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Bodies of functions: scopes, labels, instructions and their operands. A name
// is looked up in the scopes around it, then among the special registers, and
// at the end of the function among labels, lists, functions and variables.
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/bit.h"

namespace fsr::ptx {

namespace {

bool isSpecial(llvm::StringRef name) {
  static constexpr llvm::StringLiteral names[] = {
      "%tid",
      "%ntid",
      "%laneid",
      "%warpid",
      "%nwarpid",
      "%ctaid",
      "%nctaid",
      "%smid",
      "%nsmid",
      "%gridid",
      "%is_explicit_cluster",
      "%clusterid",
      "%nclusterid",
      "%cluster_ctaid",
      "%cluster_nctaid",
      "%cluster_ctarank",
      "%cluster_nctarank",
      "%lanemask_eq",
      "%lanemask_le",
      "%lanemask_lt",
      "%lanemask_ge",
      "%lanemask_gt",
      "%clock",
      "%clock_hi",
      "%clock64",
      "%globaltimer",
      "%globaltimer_lo",
      "%globaltimer_hi",
      "%reserved_smem_offset_begin",
      "%reserved_smem_offset_end",
      "%reserved_smem_offset_cap",
      "%total_smem_size",
      "%aggr_smem_size",
      "%dynamic_smem_size",
      "%current_graph_exec",
  };
  for (llvm::StringRef one : names)
    if (one == name)
      return true;
  // %envreg0…, %pm0…, %pm0_64…, %reserved_smem_offset_0…
  for (llvm::StringRef prefix : {"%envreg", "%pm", "%reserved_smem_offset_"}) {
    llvm::StringRef rest = name;
    if (!rest.consume_front(prefix))
      continue;
    if (prefix == "%pm")
      rest.consume_back("_64");
    if (!rest.empty() && rest.size() <= 2 && llvm::all_of(rest, llvm::isDigit))
      return true;
  }
  return false;
}

} // namespace

// Scopes. ---------------------------------------------------------------------

void Parser::beginFunction(Function &into) {
  function = &into;
  scopes.clear();
  scopes.emplace_back();
  ++numScopes;
  scope = scopeDepth = 0;
  pending.clear();
  pendingCode.clear();
  pendingTargets.clear();
  locFile = locLine = 0;
  locSite = {};
  sites.clear();
}

bool Parser::openScope() {
  if (++scopeDepth > limits::depth)
    return fail(token.location,
                "braces nested deeper than " + llvm::Twine(limits::depth));
  if (++numScopes > limits::scopes)
    return fail(token.location,
                "more than " + llvm::Twine(limits::scopes) + " scopes");
  Scope made;
  made.parent = scope;
  scope = scopes.size();
  scopes.push_back(std::move(made));
  return true;
}

bool Parser::declare(llvm::StringRef name, Location location, Symbol symbol) {
  if (scopes[scope].symbols.try_emplace(name, symbol).second)
    return true;
  return fail(location,
              "`" + name.take_front(80) + "` is declared twice in its scope");
}

std::optional<uint32_t> Parser::findInRanges(const Scope &in,
                                             llvm::StringRef name) const {
  if (in.ranges.empty() || name.size() > 64 + 10)
    return std::nullopt;
  // Which digits belong to the range's own name is not known; a name that two
  // ranges have is nobody's.
  std::optional<uint32_t> result;
  for (size_t split = name.size();
       split > 1 && llvm::isDigit(name[split - 1]) && name.size() - split < 10;
       --split) {
    llvm::StringRef digits = name.substr(split - 1);
    if (digits.size() > 1 && digits.front() == '0')
      continue;
    auto found = in.ranges.find(name.take_front(split - 1));
    uint64_t number = 0;
    if (found == in.ranges.end() || digits.getAsInteger(10, number) ||
        number >= found->second.count)
      continue;
    if (result)
      return std::nullopt;
    result = found->second.index + uint32_t(number);
  }
  return result;
}

std::optional<Parser::Symbol> Parser::find(llvm::StringRef name) const {
  for (unsigned at = scope;; at = scopes[at].parent) {
    const Scope &in = scopes[at];
    auto found = in.symbols.find(name);
    if (found != in.symbols.end())
      return found->second;
    if (std::optional<uint32_t> index = findInRanges(in, name)) {
      Symbol symbol;
      symbol.index = *index;
      return symbol;
    }
    if (at == 0)
      return std::nullopt;
  }
}

bool Parser::parseBody() {
  if (!expect("{"))
    return false;
  while (scopeDepth != 0 || !token.is("}"))
    if (!parseStatement())
      return false;
  advance();
  return endFunction();
}

bool Parser::resolve(Operand &operand, size_t &next) {
  if (operand.kind == Operand::Kind::None) {
    const Pending &where = pending[next++];
    scope = where.scope;
    llvm::StringRef name = operand.name;
    if (std::optional<Symbol> symbol = find(name)) {
      if (symbol->kind == Symbol::Kind::Label) {
        operand.kind = Operand::Kind::Label;
        operand.index = symbol->index;
        return true;
      }
      if (symbol->kind == Symbol::Kind::List) {
        operand.kind = Operand::Kind::Targets;
        operand.name = function->labelLists[symbol->index].name;
        return true;
      }
    }
    if (functionIndex.count(name)) {
      operand.kind = Operand::Kind::Function;
      return true;
    }
    if (variableIndex.count(name)) {
      operand.kind = Operand::Kind::Variable;
      return true;
    }
    return fail(where.location,
                "`" + name.take_front(80) + "` is not declared");
  }
  for (Operand &element : operand.elements)
    if (!resolve(element, next))
      return false;
  return true;
}

bool Parser::endFunction() {
  size_t next = 0;
  for (uint32_t index : pendingCode)
    for (Operand &operand : function->code[index].operands)
      if (!resolve(operand, next))
        return false;
  for (const PendingTarget &target : pendingTargets) {
    scope = target.scope;
    std::optional<Symbol> symbol = find(target.name);
    LabelList &list = function->labelLists[target.list];
    if (symbol && symbol->kind == Symbol::Kind::Label)
      list.targets.push_back(symbol->index);
    else if (functionIndex.count(target.name))
      list.functions.push_back(target.name.str());
    else
      return fail(target.location, "`" + target.name.take_front(80) +
                                       "` is no label and no function");
  }
  return true;
}

// Statements. -----------------------------------------------------------------

bool Parser::parseStatement() {
  if (token.is("{")) {
    if (!openScope())
      return false;
    advance();
    return true;
  }
  if (token.is("}")) {
    scope = scopes[scope].parent;
    --scopeDepth;
    advance();
    return true;
  }
  if (accept(";"))
    return true;
  if (token.kind == Token::Kind::Dot)
    return parseDirective();
  if (token.kind == Token::Kind::Name || token.is("@"))
    return parseInstruction();
  return failExpected("a statement");
}

bool Parser::parseLoc() {
  uint64_t file = 0, line = 0, column = 0;
  if (!expectNumber(file, limits::fileNumber, "a file number") ||
      !expectNumber(line, ~0u, "a line") ||
      !expectNumber(column, ~0u, "a column"))
    return false;
  locFile = file;
  locLine = line;
  locSite = {locFile, locLine, locFile};
  std::array<unsigned, 3> key{locFile, locLine, unsigned(column)};
  // `, function_name LABEL+4, inlined_at 1 2 3`
  while (accept(",")) {
    llvm::StringRef word;
    if (!expectName(word, "`function_name` or `inlined_at`"))
      return false;
    if (word == "function_name") {
      uint64_t offset = 0;
      if (!expectName(word, "a label") || !parseOffset(offset))
        return false;
    } else if (word == "inlined_at") {
      if (!expectNumber(file, limits::fileNumber, "a file number") ||
          !expectNumber(line, ~0u, "a line") ||
          !expectNumber(column, ~0u, "a column"))
        return false;
      auto found =
          sites.find({unsigned(file), unsigned(line), unsigned(column)});
      Site caller = found == sites.end()
                        ? Site{unsigned(file), unsigned(line), unsigned(file)}
                        : found->second;
      if (caller.kernelFile != locFile)
        locSite = caller;
    } else {
      return fail(token.location, "expected `function_name` or `inlined_at`");
    }
  }
  sites[key] = locSite;
  return true;
}

bool Parser::parseDirective() {
  llvm::StringRef directive = token.text;
  Location location = token.location;
  advance();
  if (directive == "reg")
    return parseRegisters();
  if (std::optional<Space> space = spaceOf(directive))
    return parseLocalVariables(*space);
  if (directive == "loc")
    return parseLoc();
  if (directive == "file")
    return parseFile();
  if (directive == "pragma")
    return skipToSemicolon();
  if (directive == "section")
    return parseSection();
  return fail(location, "`." + directive.take_front(60) +
                            "` is no directive of a function");
}

bool Parser::parsePrototype() {
  // Only its shape is looked at: what is called knows its own parameters.
  if (token.is("(") && !skipParentheses())
    return false;
  llvm::StringRef name;
  if (!expectName(name, "`_`"))
    return false;
  if (token.is("(") && !skipParentheses())
    return false;
  while (token.kind == Token::Kind::Dot ||
         token.kind == Token::Kind::Integer) // `.noreturn`, `.abi_preserve 3`
    advance();
  return expect(";");
}

bool Parser::parseList(llvm::StringRef name, Location location) {
  Symbol symbol;
  symbol.kind = Symbol::Kind::List;
  symbol.index = function->labelLists.size();
  if (!declare(name, location, symbol))
    return false;
  LabelList &list = function->labelLists.emplace_back();
  list.name = name.str();
  if (scope != 0)
    list.name += "@" + std::to_string(scope);
  bool isPrototype = token.text == "callprototype";
  advance();
  if (isPrototype)
    return parsePrototype();
  do {
    PendingTarget target;
    target.location = token.location;
    target.scope = scope;
    target.list = symbol.index;
    if (!expectName(target.name, "a label or a function") || !countOperand())
      return false;
    pendingTargets.push_back(target);
  } while (accept(","));
  return expect(";");
}

bool Parser::parseInstruction() {
  Instruction made;
  made.location = token.location;
  made.file = locFile;
  made.line = locLine;
  made.siteFile = locSite.file;
  made.siteLine = locSite.line;
  if (accept("@")) {
    made.isGuardNegated = accept("!");
    Location location = token.location;
    llvm::StringRef name;
    if (!expectName(name, "a predicate"))
      return false;
    std::optional<Symbol> symbol = find(name);
    if (!symbol || symbol->kind != Symbol::Kind::Register)
      return fail(location, "`" + name.take_front(80) +
                                "` guards an instruction and is no register");
    if (function->registers[symbol->index].type != Type::Pred)
      return fail(location, "`" + name.take_front(80) +
                                "` guards an instruction and is no predicate");
    made.guard = symbol->index;
  }
  Location location = token.location;
  if (!expectName(made.opcode, "an instruction"))
    return false;
  if (!made.guard && token.is(":")) {
    advance();
    if (token.isDot("branchtargets") || token.isDot("calltargets") ||
        token.isDot("callprototype"))
      return parseList(made.opcode, location);
    Symbol symbol;
    symbol.kind = Symbol::Kind::Label;
    symbol.index = function->code.size();
    return declare(made.opcode, location, symbol);
  }
  if (++numInstructions > limits::instructions)
    return fail(location, "more than " + llvm::Twine(limits::instructions) +
                              " instructions");
  while (token.kind == Token::Kind::Dot) {
    if (made.modifiers.size() == 64)
      return fail(token.location, "an instruction of more than 64 modifiers");
    made.modifiers.push_back(token.text);
    advance();
  }
  size_t pendingBefore = pending.size();
  if (!token.is(";")) {
    bool isCall = made.opcode == "call";
    do {
      if (!parseOperand(made.operands.emplace_back(), 0, isCall))
        return false;
    } while (accept(","));
  }
  if (!expect(";"))
    return false;
  if (pending.size() != pendingBefore)
    pendingCode.push_back(function->code.size());
  function->code.push_back(std::move(made));
  return true;
}

// Operands. -------------------------------------------------------------------

bool Parser::countOperand() {
  return ++numOperands <= limits::operands ||
         fail(token.location,
              "more than " + llvm::Twine(limits::operands) + " operands");
}

bool Parser::parseElements(Operand &into, llvm::StringRef close,
                           unsigned depth) {
  advance();
  while (!token.is(close)) {
    if (!parseOperand(into.elements.emplace_back(), depth + 1, false))
      return false;
    if (!accept(","))
      break;
  }
  return expect(close);
}

bool Parser::parseAddress(Operand &into, unsigned depth) {
  into.kind = Operand::Kind::Address;
  advance();
  Operand &base = into.elements.emplace_back();
  Location location = token.location;
  if (!parseOperand(base, depth + 1, false))
    return false;
  switch (base.kind) {
  case Operand::Kind::Register:
  case Operand::Kind::None: // Not known yet.
  case Operand::Kind::Variable:
  case Operand::Kind::Integer:
    break;
  default:
    return fail(location, "an address that is no register, variable or number");
  }
  if (base.kind != Operand::Kind::Integer) {
    into.bits = base.bits;
    base.bits = 0;
    if (!parseOffset(into.bits))
      return false;
  }
  while (accept(","))
    if (!parseOperand(into.elements.emplace_back(), depth + 1, false))
      return false;
  if (!expect("]"))
    return false;
  if (token.kind == Token::Kind::Dot) {
    into.selector = token.text.str();
    advance();
  }
  return true;
}

bool Parser::parseNamed(Operand &into, bool allowPair) {
  llvm::StringRef name = token.text;
  Location location = token.location;
  advance();
  if (name == "_") {
    into.kind = Operand::Kind::Sink;
  } else if (std::optional<Symbol> symbol = find(name)) {
    switch (symbol->kind) {
    case Symbol::Kind::Register:
    case Symbol::Kind::Range:
      into.kind = Operand::Kind::Register;
      into.index = symbol->index;
      break;
    case Symbol::Kind::Vector:
      into.kind = Operand::Kind::Vector;
      if (token.kind == Token::Kind::Dot) {
        size_t part = llvm::StringRef("xyzw").find(token.text);
        if (part == llvm::StringRef::npos)
          part = llvm::StringRef("rgba").find(token.text);
        if (token.text.size() != 1 || part >= symbol->count)
          return failExpected("a part of `" + name.take_front(80) + "`");
        advance();
        into.kind = Operand::Kind::Register;
        into.index = symbol->index + part;
        break;
      }
      for (uint32_t i = 0; i < symbol->count; ++i) {
        Operand &part = into.elements.emplace_back();
        part.kind = Operand::Kind::Register;
        part.index = symbol->index + i;
        if (!countOperand())
          return false;
      }
      break;
    case Symbol::Kind::Variable:
      into.kind = Operand::Kind::Variable;
      into.name = symbol->index == ~0u
                      ? name.str()
                      : function->variables[symbol->index].name;
      break;
    case Symbol::Kind::Label:
    case Symbol::Kind::List:
      // One further down in an inner scope may hide it.
      into.name = name.str();
      pending.push_back({location, scope});
      break;
    }
  } else if (name.front() == '%') {
    if (!isSpecial(name))
      return fail(location,
                  "the register `" + name.take_front(80) + "` is not declared");
    into.kind = Operand::Kind::Special;
    into.name = name.str();
    if (token.kind == Token::Kind::Dot) {
      into.name += ("." + token.text).str();
      advance();
    }
  } else {
    into.name = name.str();
    pending.push_back({location, scope});
  }
  if (token.kind == Token::Kind::Dot) {
    into.selector = token.text.str();
    advance();
  }
  if (into.kind == Operand::Kind::Variable ||
      into.kind == Operand::Kind::None) {
    if (!parseOffset(into.bits))
      return false;
  }
  if (!token.is("|") || !allowPair)
    return true;
  if (into.kind != Operand::Kind::Register && into.kind != Operand::Kind::Sink)
    return fail(location, "`|` after what is no register");
  advance();
  Operand second;
  location = token.location;
  if (token.kind != Token::Kind::Name)
    return failExpected("a register");
  if (!countOperand() || !parseNamed(second, false))
    return false;
  if (second.kind != Operand::Kind::Register &&
      second.kind != Operand::Kind::Sink)
    return fail(location, "`|` before what is no register");
  Operand first = std::move(into);
  into = Operand();
  into.kind = Operand::Kind::Pair;
  into.elements.push_back(std::move(first));
  into.elements.push_back(std::move(second));
  return true;
}

bool Parser::parseOperand(Operand &into, unsigned depth, bool isCall) {
  if (depth > limits::depth)
    return fail(token.location,
                "an operand nested deeper than " + llvm::Twine(limits::depth));
  if (!countOperand())
    return false;
  if (token.is("{")) {
    into.kind = Operand::Kind::Vector;
    return parseElements(into, "}", depth);
  }
  if (token.is("["))
    return parseAddress(into, depth);
  if (token.is("(") && isCall) {
    into.kind = Operand::Kind::Parenthesised;
    return parseElements(into, ")", depth);
  }
  if (token.is("!") || token.is("-")) {
    // Of a register; else it is an operator of a constant.
    Lexer lexerBefore = lexer;
    Token tokenBefore = token;
    advance();
    if (token.kind == Token::Kind::Name && token.text != "WARP_SZ") {
      if (!parseNamed(into, false))
        return false;
      if (into.kind != Operand::Kind::Register)
        return fail(tokenBefore.location,
                    "`" + tokenBefore.text + "` before what is no register");
      into.isNegated = true;
      return true;
    }
    lexer = lexerBefore;
    token = tokenBefore;
  }
  if (startsConstant()) {
    Constant value;
    if (!parseConstant(value))
      return false;
    into.kind = value.isInteger()                      ? Operand::Kind::Integer
                : value.kind == Constant::Kind::Double ? Operand::Kind::Float
                                                       : Operand::Kind::Single;
    into.bits = value.bits;
    return true;
  }
  if (token.kind == Token::Kind::Name)
    return parseNamed(into, true);
  return failExpected("an operand");
}

} // namespace fsr::ptx
