// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One function a provider; `makeChatClient` picks among them. Each checks its
// argument at once, so that a wrong folder is known before any request is made.
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

} // namespace fsr

#endif // FSR_LIB_LLM_CLIENTS_H
