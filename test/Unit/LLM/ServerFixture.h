// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One server for all tests of a suite, and an environment without the proxies
// and addresses of whoever runs the tests.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_LLM_SERVERFIXTURE_H
#define FSR_TEST_UNIT_LLM_SERVERFIXTURE_H

#include "Asking.h"
#include "TestServer.h"

#include <list>

namespace fsr {

class ServerFixture : public testing::Test {
protected:
  static void SetUpTestSuite() { server = TestServer::start(why); }
  static void TearDownTestSuite() { server.reset(); }

  void SetUp() override {
    if (!server && why.find("needs") != std::string::npos)
      GTEST_SKIP() << why;
    ASSERT_TRUE(server) << why;
    for (const char *name :
         {"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY",
          "no_proxy", "NO_PROXY", "OPENAI_BASE_URL", "CURL_CA_BUNDLE",
          "SSL_CERT_FILE", "SSL_CERT_DIR"})
      variables.emplace_back(name, std::nullopt);
    variables.emplace_back("OPENAI_API_KEY", "sk-open-secret-0001");
    variables.emplace_back("ANTHROPIC_API_KEY", "sk-ant-secret-0002");
    options.url = server->address() + "/v1";
    options.timeout = std::chrono::seconds(20);
    options.backOff = std::chrono::milliseconds(1);
    options.retries = 2;
    options.maxAnswerTokens = 1000;
    server->reset();
  }

  std::unique_ptr<ChatClient> make(const std::string &spec) const {
    auto client = makeChatClient(spec, options);
    if (client)
      return std::move(*client);
    ADD_FAILURE() << llvm::toString(client.takeError());
    return nullptr;
  }

  Ended ask(const std::string &prompt, const std::string &spec = "openai:m") {
    std::unique_ptr<ChatClient> client = make(spec);
    if (!client)
      return {};
    Ended ended = askAll(*client, {prompt})[0];
    lastSpent = client->spent();
    return ended;
  }

  /// What the server received, in order.
  static std::vector<llvm::json::Object> received() {
    std::vector<llvm::json::Object> all;
    llvm::json::Object stats = server->stats();
    if (llvm::json::Array *requests = stats.getArray("requests"))
      for (llvm::json::Value &request : *requests)
        all.push_back(*request.getAsObject());
    return all;
  }
  static std::string header(const llvm::json::Object &request,
                            llvm::StringRef name) {
    return request.getObject("headers")->getString(name).value_or("").str();
  }

  static inline std::unique_ptr<TestServer> server;
  static inline std::string why;
  ChatOptions options;
  ChatSpending lastSpent;
  std::list<ScopedVariable> variables;
};

inline bool contains(const std::string &text, llvm::StringRef part) {
  return llvm::StringRef(text).contains(part);
}

} // namespace fsr

#endif // FSR_TEST_UNIT_LLM_SERVERFIXTURE_H
