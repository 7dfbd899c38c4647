// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Where answers come from. A provider is named by a text, `kind:argument`:
//
//   exchange:FOLDER   each request becomes a readable file; the answer is taken
//                     from a file that somebody renames into place beside it
//   replay:FOLDER     recorded talks of a store folder only; never the network
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LLM_CHATCLIENT_H
#define FSR_LLM_CHATCLIENT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace fsr {

struct ChatRequest {
  std::string taskKey;
  std::string taskName;
  int64_t round = 1, slot = 1; ///< From 1.
  std::string prompt;
};

struct ChatAnswer {
  std::string text;
  int64_t promptTokens = 0, answerTokens = 0; ///< 0 where not reported.
  /// Something worth a remark: the prompt has changed since the recording.
  std::string remark;
};

class ChatClient {
public:
  virtual ~ChatClient();

  /// The answer, or nothing where it is still to come (exchange). An error is
  /// about the provider, never about what the answer says.
  virtual llvm::Expected<std::optional<ChatAnswer>>
  ask(const ChatRequest &request) = 0;

  /// "exchange", "replay": what records and talks say; no folder, no key.
  virtual llvm::StringRef provider() const = 0;
};

struct ChatOptions {
  bool replayStrict = false; ///< A changed prompt is an error.
};

/// Makes the client that `spec` names. Errors (BadInput): an unknown provider
/// (the message lists the known ones), a missing argument, a folder that cannot
/// be used.
llvm::Expected<std::unique_ptr<ChatClient>>
makeChatClient(llvm::StringRef spec, const ChatOptions &options = {});

} // namespace fsr

#endif // FSR_LLM_CHATCLIENT_H
