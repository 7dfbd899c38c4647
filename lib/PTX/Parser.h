// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The parser's state, shared by the files that read directives (Parser.cpp),
// declarations (ParserDeclarations.cpp), constants (ParserConstants.cpp) and
// code (ParserCode.cpp). Functions give false after `fail`; the first message
// stays. Names that may be declared further down (labels, lists, functions) are
// noted while code is read and looked up at the end of the function.
//
// What a hostile text can make the parser hold is bounded by `limits`; nothing
// is allocated because a text says a number, and recursion is counted.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_PARSER_H
#define FSR_LIB_PTX_PARSER_H

#include "Lexer.h"

#include "llvm/ADT/DenseMap.h"

#include <map>

namespace fsr::ptx {

namespace limits {
constexpr size_t textBytes = size_t(256) << 20;
constexpr unsigned depth = 64; ///< Of scopes, expressions and braces each.
// Of a module.
constexpr size_t instructions = size_t(1) << 20;
constexpr size_t operands = size_t(4) << 20;
constexpr size_t registers = size_t(4) << 20;
constexpr size_t scopes = size_t(1) << 18;
constexpr size_t initialValues = size_t(16) << 20;
/// Of one variable. Never allocated here.
constexpr uint64_t variableBytes = uint64_t(1) << 34;
constexpr unsigned fileNumber = 1 << 16;
} // namespace limits

/// A value of a constant expression.
struct Constant {
  enum class Kind : uint8_t {
    Signed,
    Unsigned,
    Double,
    Single
  } kind = Kind::Signed;
  uint64_t bits = 0; ///< Of a double, or of a float for `Single`.
  bool isInteger() const {
    return kind == Kind::Signed || kind == Kind::Unsigned;
  }
};

class Parser {
public:
  explicit Parser(Module &module) : module(module), lexer(module.text) {
    advance();
  }

  bool parseModule();
  /// "LINE:COLUMN: message"
  std::string message;

private:
  // Tokens. -------------------------------------------------------------------

  void advance() { token = lexer.next(); }
  bool fail(Location location, const llvm::Twine &what);
  /// "expected `wanted`, got `…`"
  bool failExpected(const llvm::Twine &wanted);
  bool accept(llvm::StringRef punct);
  bool expect(llvm::StringRef punct);
  bool acceptDot(llvm::StringRef name);
  bool expectName(llvm::StringRef &name, const char *what);
  bool expectNumber(uint64_t &value, uint64_t most, const char *what);
  /// Skips to the closing brace of the opened one.
  bool skipBraces();
  bool skipParentheses();
  bool skipToSemicolon();

  // Parser.cpp ----------------------------------------------------------------

  struct Linkage {
    bool isExtern = false, isVisible = false;
  };
  bool parseTopLevel();
  bool parseVersion();
  bool parseTarget();
  bool parseFile();
  bool parseSection();
  bool parseAlias();
  bool parseFunction(const Linkage &linkage, bool isEntry);
  bool parsePerformance(Function &into);
  bool parseDimensions(std::array<unsigned, 3> &into);
  bool finish();

  // ParserDeclarations.cpp ----------------------------------------------------

  /// What stands before the names of a declaration.
  struct Prefix {
    Type type = Type::None;
    unsigned vector = 1;
    uint64_t alignment = 0;
  };
  static std::optional<Space> spaceOf(llvm::StringRef directive);
  bool parsePrefix(Prefix &into);
  /// From the name on: dimensions, and with `allowInitial` the initialiser.
  bool parseDeclarator(const Prefix &prefix, Variable &into, bool allowInitial);
  bool parseInitialiser(const Prefix &prefix, llvm::ArrayRef<uint64_t> sizes,
                        Variable &into);
  bool parseInitialList(const Prefix &prefix, llvm::ArrayRef<uint64_t> sizes,
                        Variable &into, unsigned depth);
  bool parseInitialValue(const Prefix &prefix, InitialValue &into);
  bool parseInitialAddress(InitialValue &into);
  bool convertInitial(const Constant &value, Type type, Location location,
                      uint64_t &bits);
  /// `(…)` of a function: parameters or results.
  bool parseParameters(Function &function, std::vector<Variable> &into);
  bool parseModuleVariables(const Linkage &linkage, Space space);
  bool parseLocalVariables(Space space);
  bool parseRegisters();

  // ParserConstants.cpp -------------------------------------------------------

  bool startsConstant() const;
  bool parseConstant(Constant &into, unsigned depth = 0);
  /// As far as operators bind at least as tight as `tightness`.
  bool parseBinary(Constant &into, int tightness, unsigned depth);
  bool parseUnary(Constant &into, unsigned depth);
  bool parseLiteral(Constant &into);
  bool applyBinary(llvm::StringRef op, Location location, Constant &left,
                   const Constant &right);
  /// `+4`, `+-8`, `-8`, also none; adds to `offset`.
  bool parseOffset(uint64_t &offset);

  // ParserCode.cpp ------------------------------------------------------------

  struct Symbol {
    enum class Kind : uint8_t {
      Register,
      Range,  ///< `count` registers from `index` on.
      Vector, ///< The same.
      Variable,
      Label,
      List,
    } kind = Kind::Register;
    uint32_t index = 0, count = 0;
  };
  struct Scope {
    unsigned parent = 0;
    llvm::SmallDenseMap<llvm::StringRef, Symbol, 4> symbols;
    /// Registers `<…>` by what stands before the number.
    llvm::SmallDenseMap<llvm::StringRef, Symbol, 4> ranges;
  };
  /// A name that is looked up at the end of the function.
  struct Pending {
    Location location;
    unsigned scope = 0;
  };
  /// A target of a label list, likewise.
  struct PendingTarget {
    llvm::StringRef name;
    Location location;
    unsigned scope = 0;
    uint32_t list = 0;
  };

  void beginFunction(Function &into);
  bool endFunction();
  bool parseBody();
  bool openScope();
  bool declare(llvm::StringRef name, Location location, Symbol symbol);
  /// Number of the registers of `function` after adding `count` of them.
  bool countRegisters(Location location, uint64_t count);
  std::optional<Symbol> find(llvm::StringRef name) const;
  std::optional<uint32_t> findInRanges(const Scope &scope,
                                       llvm::StringRef name) const;
  bool parseStatement();
  bool parseDirective();
  bool parseLoc();
  bool parseList(llvm::StringRef name, Location location);
  bool parsePrototype();
  bool parseInstruction();
  bool parseOperand(Operand &into, unsigned depth, bool isCall);
  bool parseElements(Operand &into, llvm::StringRef close, unsigned depth);
  bool parseAddress(Operand &into, unsigned depth);
  bool parseNamed(Operand &into, bool allowPair);
  bool countOperand();
  bool resolve(Operand &operand, size_t &next);

  Module &module;
  Lexer lexer;
  Token token;

  llvm::DenseMap<llvm::StringRef, uint32_t> functionIndex, variableIndex;
  llvm::DenseMap<llvm::StringRef, llvm::StringRef> aliases;
  /// Symbols of initialisers and call lists, looked up at the end.
  std::vector<std::pair<std::string, Location>> wantedSymbols;
  size_t numInstructions = 0, numOperands = 0, numRegisters = 0, numScopes = 0,
         numInitialValues = 0;

  // Of the function being read.
  Function *function = nullptr;
  std::vector<Scope> scopes;
  unsigned scope = 0, scopeDepth = 0;
  std::vector<Pending> pending;
  std::vector<uint32_t> pendingCode; ///< Instructions that have pending names.
  std::vector<PendingTarget> pendingTargets;
  /// `.loc`: the last one's place, and those of the function, by file, line and
  /// column, for what is inlined there.
  struct Site {
    unsigned file = 0, line = 0; ///< `Instruction::siteFile`
    unsigned kernelFile = 0;
  };
  unsigned locFile = 0, locLine = 0;
  Site locSite;
  std::map<std::array<unsigned, 3>, Site> sites;
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_PARSER_H
