// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One function a provider; `makeChatClient` picks among them. Each checks its
// argument and options at once, so that a wrong folder or a missing key is
// known before any request is made.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_LLM_CLIENTS_H
#define FSR_LIB_LLM_CLIENTS_H

#include "fsr/LLM/ChatClient.h"

namespace fsr {

llvm::Expected<std::unique_ptr<ChatClient>>
makeExchangeClient(llvm::StringRef folder);

llvm::Expected<std::unique_ptr<ChatClient>>
makeReplayClient(llvm::StringRef folder, const ChatOptions &options);

llvm::Expected<std::unique_ptr<ChatClient>>
makeOpenAIClient(llvm::StringRef model, const ChatOptions &options);

llvm::Expected<std::unique_ptr<ChatClient>>
makeAnthropicClient(llvm::StringRef model, const ChatOptions &options);

llvm::Expected<std::unique_ptr<ChatClient>>
makeExecClient(llvm::StringRef command, const ChatOptions &options);

/// Bytes of one answer that are read from a server or a command.
constexpr size_t maxReplyBytes = size_t(4) << 20;

} // namespace fsr

#endif // FSR_LIB_LLM_CLIENTS_H
