// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ways to ask a client in a test, which all check that each request of a batch
// is reported exactly once.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_LLM_ASKING_H
#define FSR_TEST_UNIT_LLM_ASKING_H

#include "fsr/LLM/ChatClient.h"
#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

#include <map>
#include <string>
#include <vector>

namespace fsr {

inline ChatResult askOne(ChatClient &client, const ChatRequest &request) {
  std::optional<ChatResult> result;
  client.ask(request, [&](size_t index, ChatResult got) {
    EXPECT_EQ(index, 0u);
    EXPECT_FALSE(result.has_value());
    result.emplace(std::move(got));
  });
  if (!result)
    return makeError(ErrorKind::Corrupt, "the request was not reported");
  return std::move(*result);
}

/// How a request ended, as plain data.
struct Ended {
  std::string text;  ///< Or "pending".
  std::string error; ///< Empty for an answer.
  ErrorKind kind = ErrorKind::BadInput;
  ChatAnswer answer;
};

inline Ended plain(ChatResult result) {
  Ended ended;
  if (!result) {
    llvm::Error error = result.takeError();
    ended.kind = kindOf(error);
    ended.error = llvm::toString(std::move(error));
  } else if (!*result) {
    ended.text = "pending";
  } else {
    ended.answer = **result;
    ended.text = ended.answer.text;
  }
  return ended;
}

inline std::vector<ChatRequest>
makeBatch(const std::vector<std::string> &prompts) {
  std::vector<ChatRequest> batch;
  for (const std::string &prompt : prompts)
    batch.push_back({std::string(64, 'a'), "softmax", 1,
                     int64_t(batch.size()) + 1, prompt});
  return batch;
}

inline std::vector<Ended> askAll(ChatClient &client,
                                 const std::vector<std::string> &prompts) {
  std::map<size_t, Ended> ends;
  client.ask(makeBatch(prompts), [&](size_t index, ChatResult result) {
    EXPECT_LT(index, prompts.size());
    EXPECT_TRUE(ends.emplace(index, plain(std::move(result))).second);
  });
  EXPECT_EQ(ends.size(), prompts.size());
  std::vector<Ended> inOrder(prompts.size());
  for (auto &[index, ended] : ends)
    inOrder[index] = std::move(ended);
  return inOrder;
}

} // namespace fsr

#endif // FSR_TEST_UNIT_LLM_ASKING_H
