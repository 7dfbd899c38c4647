// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See Lexer.h. One pass, no look-back; columns count bytes from 1.
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include "llvm/ADT/StringExtras.h"

namespace fsr::ptx {

namespace {

bool startsName(char c) {
  return llvm::isAlpha(c) || c == '_' || c == '$' || c == '%';
}

bool continuesName(char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; }

} // namespace

bool Lexer::skipBlanks() {
  while (at != end) {
    char c = *at;
    if (c == '\n') {
      ++line;
      lineStart = ++at;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at;
    } else if (c == '/' && end - at > 1 && at[1] == '/') {
      while (at != end && *at != '\n')
        ++at;
    } else if (c == '/' && end - at > 1 && at[1] == '*') {
      const char *begin = at;
      const char *beginLine = lineStart;
      unsigned lineOfBegin = line;
      for (at += 2; end - at > 1 && !(at[0] == '*' && at[1] == '/'); ++at)
        if (*at == '\n') {
          ++line;
          lineStart = at + 1;
        }
      if (end - at < 2) {
        // Told where it begins: its end is that of the text.
        at = begin;
        line = lineOfBegin;
        lineStart = beginLine;
        return false;
      }
      at += 2;
    } else if (c == '#' && at == lineStart) {
      // A preprocessor's line marker.
      while (at != end && *at != '\n')
        ++at;
    } else {
      break;
    }
  }
  return true;
}

Token Lexer::make(Token::Kind kind, const char *begin, const char *stop) {
  Token token;
  token.kind = kind;
  token.text = llvm::StringRef(begin, stop - begin);
  token.location.line = line;
  token.location.column = unsigned(begin - lineStart) + 1;
  last = kind;
  return token;
}

Token Lexer::bad(const char *begin, llvm::StringRef why) {
  Token token = make(Token::Kind::Bad, begin, begin);
  token.text = why;
  at = begin; // Says the same again.
  return token;
}

Token Lexer::number() {
  const char *begin = at;
  auto take = [&](auto fits) {
    const char *from = at;
    while (at != end && fits(*at))
      ++at;
    return size_t(at - from);
  };
  auto isDigit = [](char c) { return llvm::isDigit(c); };
  auto isHex = [](char c) { return llvm::isHexDigit(c); };
  Token::Kind kind = Token::Kind::Integer;
  char second = end - at > 1 ? at[1] : 0;
  bool isWell = true;
  if (*at == '0' && (second == 'x' || second == 'X')) {
    at += 2;
    isWell = take(isHex) != 0;
  } else if (*at == '0' && (second == 'b' || second == 'B')) {
    at += 2;
    isWell = take([](char c) { return c == '0' || c == '1'; }) != 0;
  } else if (*at == '0' && (second == 'f' || second == 'F')) {
    at += 2;
    isWell = take(isHex) == 8;
    kind = Token::Kind::Real;
  } else if (*at == '0' && (second == 'd' || second == 'D')) {
    at += 2;
    isWell = take(isHex) == 16;
    kind = Token::Kind::Real;
  } else {
    take(isDigit);
    if (at != end && *at == '.') {
      ++at;
      take(isDigit);
      kind = Token::Kind::Real;
    }
    if (at != end && (*at == 'e' || *at == 'E')) {
      ++at;
      if (at != end && (*at == '+' || *at == '-'))
        ++at;
      isWell = take(isDigit) != 0;
      kind = Token::Kind::Real;
    }
  }
  if (kind == Token::Kind::Integer && at != end && (*at == 'U' || *at == 'u'))
    ++at;
  if (!isWell || (at != end && continuesName(*at)))
    return bad(begin, "a number that is none of PTX's forms");
  return make(kind, begin, at);
}

Token Lexer::next() {
  if (!skipBlanks())
    return bad(at, "a comment that does not end");
  if (at == end)
    return make(Token::Kind::End, at, at);
  const char *begin = at;
  char c = *at;
  if (startsName(c)) {
    ++at;
    while (at != end && continuesName(*at))
      ++at;
    if (c == '%' && at == begin + 1)
      return make(Token::Kind::Punct, begin, at); // Modulo.
    return make(Token::Kind::Name, begin, at);
  }
  if (llvm::isDigit(c))
    return number();
  if (c == '.') {
    // `.5` is a number where no modifier can stand.
    if (end - at > 1 && llvm::isDigit(at[1]) && last != Token::Kind::Name &&
        last != Token::Kind::Dot)
      return number();
    ++at;
    while (at != end &&
           (continuesName(*at) || (*at == ':' && end - at > 2 && at[1] == ':' &&
                                   continuesName(at[2]) && at != begin + 1))) {
      at += *at == ':' ? 2 : 1;
    }
    if (at == begin + 1)
      return bad(begin, "a dot without a name");
    Token token = make(Token::Kind::Dot, begin, at);
    token.text = token.text.drop_front();
    return token;
  }
  if (c == '"') {
    for (++at; at != end && *at != '"' && *at != '\n'; ++at)
      if (*at == '\\' && end - at > 1 && at[1] != '\n')
        ++at;
    if (at == end || *at != '"')
      return bad(begin, "a string that does not end");
    Token token = make(Token::Kind::String, begin, at++);
    token.text = token.text.drop_front();
    return token;
  }
  llvm::StringRef two(begin, std::min<size_t>(2, end - begin));
  for (llvm::StringRef known :
       {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "@@"})
    if (two == known) {
      at += 2;
      return make(Token::Kind::Punct, begin, at);
    }
  if (llvm::StringRef("{}()[]<>,;:@!|&^~+-*/?=").contains(c)) {
    ++at;
    return make(Token::Kind::Punct, begin, at);
  }
  return bad(begin, "a character that PTX does not use");
}

} // namespace fsr::ptx
