// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// PTX text as tokens. A token points into the text; nothing is copied. A name
// that begins with a dot is one token with all that `::` joins to it, such as
// `.shared::cta`; numbers keep their spelling, the parser reads their value.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_PTX_LEXER_H
#define FSR_LIB_PTX_LEXER_H

#include "fsr/PTX/Module.h"

namespace fsr::ptx {

struct Token {
  enum class Kind : uint8_t {
    End,
    Name,    ///< `foo`, `%r1`, `$L__BB0_1`, `_`
    Dot,     ///< `.global`; `text` has no dot.
    Integer, ///< With its prefix and suffix.
    Real,    ///< `0f…`, `0d…`, or with a decimal point or an exponent.
    String,  ///< `text` is what stands between the quotes, as written.
    Punct,   ///< One or two characters.
    Bad,     ///< `text` says why.
  } kind = Kind::End;
  llvm::StringRef text;
  Location location;

  bool is(llvm::StringRef punct) const {
    return kind == Kind::Punct && text == punct;
  }
  bool isDot(llvm::StringRef name) const {
    return kind == Kind::Dot && text == name;
  }
};

class Lexer {
public:
  /// `text` outlives the lexer.
  explicit Lexer(llvm::StringRef text)
      : at(text.begin()), end(text.end()), lineStart(text.begin()) {}

  /// After the end it gives `End` for ever; after `Bad`, `Bad`.
  Token next();

private:
  /// False: a comment that does not end.
  bool skipBlanks();
  Token make(Token::Kind kind, const char *begin, const char *stop);
  Token bad(const char *begin, llvm::StringRef why);
  Token number();

  const char *at, *end, *lineStart;
  unsigned line = 1;
  Token::Kind last = Token::Kind::Punct; ///< Of the token before.
};

} // namespace fsr::ptx

#endif // FSR_LIB_PTX_LEXER_H
