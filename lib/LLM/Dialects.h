// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What two families of servers want to be sent, and what they send back. No
// network here; text in, text out.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_LLM_DIALECTS_H
#define FSR_LIB_LLM_DIALECTS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsr {

/// One question, without history.
struct ServerQuestion {
  llvm::StringRef model, prompt;
  int64_t maxAnswerTokens = 0;
  llvm::StringRef limitField; ///< Name of the field for maxAnswerTokens.
};

struct ServerAnswer {
  std::string text;
  std::optional<int64_t> promptTokens, answerTokens; ///< As reported, from 0.
  std::string remark;
};

struct Dialect {
  llvm::StringLiteral name;
  const char *keyName;      ///< Environment variable of the key.
  const char *urlName;      ///< Environment variable of the address, or null.
  llvm::StringLiteral url;  ///< The provider's own address.
  llvm::StringLiteral path; ///< After the address.
  /// For the limit of an answer, at the provider's own server and elsewhere.
  llvm::StringLiteral limitField, otherLimitField;
  std::vector<std::string> (*headers)(const std::string &key);
  /// Errors (Corrupt): not JSON, or not of the form; (Unavailable): the server
  /// says in a reply that looks like a success that it failed.
  llvm::Expected<ServerAnswer> (*parse)(llvm::StringRef body);
};

extern const Dialect openAIDialect, anthropicDialect;

/// The body of a request; both dialects have the same. Bytes of the prompt that
/// are not UTF-8 become U+FFFD.
std::string printQuestion(const ServerQuestion &question);

/// What a server says went wrong, from a reply of any form; for messages.
std::string describeFailure(llvm::StringRef body);

} // namespace fsr

#endif // FSR_LIB_LLM_DIALECTS_H
