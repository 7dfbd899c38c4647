// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// HTTP providers against a real server on loopback that answers, refuses,
// breaks off, babbles and hangs. The first line of a prompt says what it does.
//
//===----------------------------------------------------------------------===//

#include "ServerFixture.h"
#include "TempFolder.h"

#include <chrono>
#include <thread>

using namespace fsr;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

class ServerTest : public ServerFixture {};

TEST_F(ServerTest, AsksInTheFormOfOpenAI) {
  Ended ended = ask("do: ok=hello\nplease \"…\"\n");
  EXPECT_EQ(ended.error, "");
  EXPECT_EQ(ended.text, "hello");
  EXPECT_EQ(ended.answer.promptTokens, 10);
  EXPECT_EQ(ended.answer.answerTokens, 5);
  EXPECT_EQ(ended.answer.remark, "");
  auto requests = received();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].getString("path"), "/v1/chat/completions");
  EXPECT_EQ(header(requests[0], "authorization"), "Bearer sk-open-secret-0001");
  EXPECT_EQ(header(requests[0], "content-type"), "application/json");
  EXPECT_EQ(
      llvm::json::Value(std::move(*requests[0].getObject("request"))),
      llvm::json::Value(llvm::json::Object{
          {"model", "m"},
          {"max_tokens", 1000},
          {"messages", llvm::json::Array{llvm::json::Object{
                           {"role", "user"},
                           {"content", "do: ok=hello\nplease \"…\"\n"}}}}}));
}

TEST_F(ServerTest, AsksInTheFormOfAnthropic) {
  options.url = server->address() + "/";
  Ended ended = ask("do: ok=hello", "anthropic:claude");
  EXPECT_EQ(ended.error, "");
  EXPECT_EQ(ended.text, "hello");
  EXPECT_EQ(ended.answer.promptTokens, 10);
  EXPECT_EQ(ended.answer.answerTokens, 5);
  auto requests = received();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].getString("path"), "/v1/messages");
  EXPECT_EQ(header(requests[0], "x-api-key"), "sk-ant-secret-0002");
  EXPECT_EQ(header(requests[0], "anthropic-version"), "2023-06-01");
  EXPECT_EQ(header(requests[0], "authorization"), "");
  EXPECT_EQ(requests[0].getObject("request")->getInteger("max_tokens"), 1000);
}

TEST_F(ServerTest, ProviderSaysTheModelAndNoAddress) {
  EXPECT_EQ(make("openai:org/m:free")->provider(), "openai:org/m:free");
  EXPECT_EQ(make("anthropic:claude")->provider(), "anthropic:claude");
}

TEST_F(ServerTest, BytesThatAreNotUtf8AreReplaced) {
  EXPECT_EQ(ask("do: ok\n\xff\xfe").text, "here it is");
  EXPECT_EQ(received()[0]
                .getObject("request")
                ->getArray("messages")
                ->front()
                .getAsObject()
                ->getString("content"),
            "do: ok\n\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_F(ServerTest, SeveralAreInFlightAndNotMore) {
  options.inFlight = 3;
  std::vector<std::string> prompts;
  for (int i = 0; i < 9; ++i)
    prompts.push_back("do: slow=0.4\n" + std::to_string(i));
  auto start = Clock::now();
  for (const Ended &ended : askAll(*make("openai:m"), prompts))
    EXPECT_EQ(ended.text, "here it is") << ended.error;
  // One after the other they would take 3.6 s.
  EXPECT_LT(Clock::now() - start, milliseconds(3000));
  EXPECT_EQ(server->stats().getInteger("most_in_flight"), 3);
}

TEST_F(ServerTest, AnswersAreGivenOutAsTheyCome) {
  std::vector<size_t> order;
  std::vector<Clock::duration> times;
  auto start = Clock::now();
  make("openai:m")
      ->ask(makeBatch({"do: slow=1", "do: ok"}),
            [&](size_t i, ChatResult result) {
              EXPECT_EQ(plain(std::move(result)).error, "");
              order.push_back(i);
              times.push_back(Clock::now() - start);
            });
  EXPECT_EQ(order, (std::vector<size_t>{1, 0}));
  EXPECT_LT(times[0], milliseconds(900));
}

TEST_F(ServerTest, TriesAgainWhatCanGetBetter) {
  for (const char *trouble : {"429", "500", "503", "cut", "close", "badjson",
                              "wrongform", "error200", "deep"}) {
    server->reset();
    Ended ended = ask(std::string("do: ") + trouble + " ok");
    EXPECT_EQ(ended.text, "here it is") << trouble << ": " << ended.error;
    EXPECT_EQ(received().size(), 2u) << trouble;
  }
}

TEST_F(ServerTest, GivesUpAfterTheRetries) {
  struct {
    const char *trouble;
    ErrorKind kind;
    const char *words;
  } cases[] = {
      {"429", ErrorKind::Unavailable,
       "HTTP status 429: the server says 'too many'"},
      {"500", ErrorKind::Unavailable,
       "HTTP status 500: the server says 'no luck'"},
      {"cut", ErrorKind::Unavailable, "transfer"},
      {"close", ErrorKind::Unavailable, "Empty reply"},
      {"badjson", ErrorKind::Corrupt,
       "a reply that is not JSON: '{\"choices\": ['"},
      {"wrongform", ErrorKind::Corrupt,
       "a reply of the wrong form: expected an object at choices[0].message"},
      {"error200", ErrorKind::Unavailable, "the server says 'overloaded'"},
      {"deep", ErrorKind::Corrupt, "not JSON"},
  };
  for (const auto &[trouble, kind, words] : cases) {
    server->reset();
    Ended ended = ask(std::string("do: ") + trouble);
    EXPECT_EQ(ended.kind, kind) << trouble;
    EXPECT_TRUE(contains(ended.error, "openai: " + options.url +
                                          "/chat/completions, after 2 "
                                          "retries: "))
        << ended.error;
    EXPECT_TRUE(contains(ended.error, words)) << ended.error;
    EXPECT_EQ(received().size(), 3u) << trouble;
  }
}

TEST_F(ServerTest, DoesNotTryAgainWhatStays) {
  for (const char *status : {"400", "401", "403", "404", "301"}) {
    server->reset();
    Ended ended = ask(std::string("do: ") + status);
    EXPECT_EQ(ended.kind, ErrorKind::Unavailable);
    EXPECT_TRUE(contains(ended.error, std::string("HTTP status ") + status))
        << ended.error;
    EXPECT_EQ(received().size(), 1u) << status;
  }
}

TEST_F(ServerTest, AKeyDoesNotFollowARedirection) {
  EXPECT_TRUE(contains(ask("do: redirect ok").error, "HTTP status 307"));
  EXPECT_EQ(received().size(), 1u);
}

TEST_F(ServerTest, WaitsAsLongAsTheServerWants) {
  for (const char *wait : {"429=1", "429=date2.5"}) {
    server->reset();
    auto start = Clock::now();
    EXPECT_EQ(ask(std::string("do: ") + wait + " ok").text, "here it is");
    EXPECT_GE(Clock::now() - start, milliseconds(1000)) << wait;
    EXPECT_LT(Clock::now() - start, milliseconds(10000)) << wait;
  }
}

TEST_F(ServerTest, DoesNotWaitForEver) {
  options.longestPause = milliseconds(300);
  auto start = Clock::now();
  EXPECT_EQ(ask("do: 429=86400 ok").text, "here it is");
  EXPECT_GE(Clock::now() - start, milliseconds(300));
  EXPECT_LT(Clock::now() - start, milliseconds(10000));
}

TEST_F(ServerTest, PausesGrow) {
  options.backOff = milliseconds(200);
  options.retries = 3;
  ask("do: 500");
  auto requests = received();
  ASSERT_EQ(requests.size(), 4u);
  for (int i = 0; i < 3; ++i) {
    double pause =
        *requests[i + 1].getNumber("time") - *requests[i].getNumber("time");
    EXPECT_GE(pause, 0.1 * (1 << i));
  }
}

TEST_F(ServerTest, AHangEndsAtTheLimit) {
  options.timeout = milliseconds(300);
  auto start = Clock::now();
  std::vector<Ended> ends =
      askAll(*make("openai:m"), {"do: hang\n1", "do: hang\n2", "do: ok"});
  EXPECT_LT(Clock::now() - start, milliseconds(10000));
  EXPECT_EQ(ends[0].kind, ErrorKind::TimedOut);
  EXPECT_TRUE(contains(ends[0].error, "no whole answer within 300 ms"))
      << ends[0].error;
  EXPECT_EQ(ends[1].kind, ErrorKind::TimedOut);
  EXPECT_EQ(ends[2].text, "here it is");
}

TEST_F(ServerTest, TimeSpentElsewhereIsNotTheServers) {
  options.timeout = milliseconds(1500);
  bool first = true;
  make("openai:m")
      ->ask(makeBatch({"do: ok", "do: slow=2.5"}),
            [&](size_t, ChatResult result) {
              EXPECT_EQ(plain(std::move(result)).error, "");
              if (first)
                std::this_thread::sleep_for(milliseconds(2000));
              first = false;
            });
}

TEST_F(ServerTest, AReplyHasACap) {
  Ended ended = ask("do: big");
  EXPECT_EQ(ended.kind, ErrorKind::Corrupt);
  EXPECT_TRUE(contains(ended.error, "a reply of more than 4194304 bytes"))
      << ended.error;
  EXPECT_EQ(received().size(), 1u);
}

TEST_F(ServerTest, RefusalsAndBadAnswersAreAnswers) {
  struct {
    const char *word, *text, *remark;
  } cases[] = {
      {"refusal", "I will not help with that.", "the model refused to answer"},
      {"filter", "", "the model refused to answer"},
      {"length", "half an ans", "the answer was cut at its limit of tokens"},
      {"nocode", "The kernel is fast enough as it is.", ""},
      {"wrongcode", "```python\nprint('softmax')\n```\n", ""},
  };
  for (const char *spec : {"openai:m", "anthropic:m"}) {
    for (const auto &[word, text, remark] : cases) {
      Ended ended = ask(std::string("do: ") + word, spec);
      EXPECT_EQ(ended.error, "") << word;
      EXPECT_EQ(ended.text, text) << word;
      EXPECT_EQ(ended.answer.remark, remark) << word;
    }
  }
}

TEST_F(ServerTest, TokensAreEstimatedWhereNotReported) {
  for (const char *word : {"nousage", "badusage"}) {
    std::string prompt = std::string("do: ") + word + std::string(300, ' ');
    Ended ended = ask(prompt);
    EXPECT_EQ(ended.text, "here it is");
    EXPECT_EQ(ended.answer.promptTokens, int64_t(prompt.size()) / 3);
    EXPECT_EQ(ended.answer.answerTokens, 10 / 3);
    EXPECT_EQ(lastSpent.answerTokens, 1000) << "counted at its dearest";
  }
}

TEST_F(ServerTest, TokensThroughACacheCount) {
  EXPECT_EQ(ask("do: cached", "anthropic:m").answer.promptTokens,
            10 + 30 + 200);
}

TEST_F(ServerTest, TakesTheOtherNameOfTheLimit) {
  std::vector<std::string> prompts;
  for (int i = 0; i < 4; ++i)
    prompts.push_back("do: oldlimit\n" + std::to_string(i));
  options.retries = 0;
  auto client = make("openai:m");
  for (int round = 0; round < 2; ++round)
    for (const Ended &ended : askAll(*client, prompts))
      EXPECT_EQ(ended.text, "here it is") << ended.error;
  EXPECT_EQ(received().size(), 4u + 4u + 4u);
}

TEST_F(ServerTest, NobodyThere) {
  std::string port;
  {
    std::string ignored;
    auto other = TestServer::start(ignored);
    ASSERT_TRUE(other) << ignored;
    port = std::to_string(other->portNumber());
  }
  options.url = "http://user:password1@127.0.0.1:" + port;
  Ended ended = ask("do: ok");
  EXPECT_EQ(ended.kind, ErrorKind::Unavailable);
  EXPECT_TRUE(contains(ended.error, "http://127.0.0.1:" + port +
                                        "/chat/completions, after 2 retries: "
                                        "Couldn't connect to server"))
      << ended.error;
  EXPECT_FALSE(contains(ended.error, "password1")) << ended.error;
  EXPECT_EQ(lastSpent.calls, 0);
}

TEST_F(ServerTest, AStopEndsWhatIsInFlight) {
  auto start = Clock::now();
  options.stopped = [&] { return Clock::now() - start > milliseconds(300); };
  options.inFlight = 2;
  for (const Ended &ended :
       askAll(*make("openai:m"), {"do: hang\n1", "do: hang\n2", "do: ok"})) {
    EXPECT_EQ(ended.kind, ErrorKind::Unavailable);
    EXPECT_TRUE(contains(ended.error, "stopped")) << ended.error;
  }
  EXPECT_LT(Clock::now() - start, milliseconds(10000));
  EXPECT_EQ(received().size(), 2u);
}

TEST_F(ServerTest, ABatchThatIsStoppedSendsNoMore) {
  options.inFlight = 2;
  auto client = make("openai:m");
  std::vector<std::string> prompts = {"do: ok=first", "do: slow=0.3"};
  prompts.resize(9, "do: ok=later");
  std::vector<Ended> ends(prompts.size());
  auto batch = makeBatch(prompts);
  client->ask(batch, [&](size_t index, ChatResult result) {
    ends[index] = plain(std::move(result));
    client->stopAsking();
  });
  EXPECT_EQ(received().size(), 2u);
  EXPECT_EQ(ends[0].text, "first");
  EXPECT_EQ(ends[1].error, "") << "it was in flight";
  for (size_t i = 2; i < ends.size(); ++i)
    EXPECT_TRUE(contains(ends[i].error, "openai: not asked")) << i;
  // It was about that batch.
  EXPECT_EQ(askAll(*client, {"do: ok=again"})[0].text, "again");
}

TEST_F(ServerTest, AWideReplyTakesNoLongerThanItsBytes) {
  options.retries = 0;
  auto before = std::chrono::steady_clock::now();
  // Inside the cap on a reply, so that all of it is parsed.
  for (const char *spec : {"openai:m", "anthropic:m"})
    EXPECT_EQ(ask("do: wide=1000000", spec).kind, ErrorKind::Corrupt);
  EXPECT_LT(std::chrono::steady_clock::now() - before,
            std::chrono::seconds(20));
}

TEST_F(ServerTest, AKeyIsRepeatedNowhere) {
  Ended said = ask("do: echo");
  EXPECT_TRUE(contains(said.text, "Authorization: Bearer ***")) << said.text;
  EXPECT_FALSE(contains(said.text, "secret"));
  for (const char *spec : {"openai:m", "anthropic:m"}) {
    Ended failed = ask("do: echofail", spec);
    EXPECT_TRUE(contains(failed.error, "***")) << failed.error;
    EXPECT_FALSE(contains(failed.error, "secret")) << failed.error;
  }
  EXPECT_FALSE(contains(make("openai:m")->provider().str(), "secret"));
}

TEST_F(ServerTest, AKeyIsWantedByTheProvidersOwnServerOnly) {
  ScopedVariable openai("OPENAI_API_KEY", std::nullopt);
  ScopedVariable anthropic("ANTHROPIC_API_KEY", "");
  EXPECT_EQ(ask("do: ok").text, "here it is");
  EXPECT_EQ(header(received()[0], "authorization"), "");
  options.url.clear();
  for (const auto &[spec, name] :
       {std::pair("openai:m", "OPENAI_API_KEY is not set"),
        std::pair("anthropic:m", "ANTHROPIC_API_KEY is not set")}) {
    auto client = makeChatClient(spec, options);
    ASSERT_FALSE(bool(client));
    llvm::Error error = client.takeError();
    EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
    std::string message = llvm::toString(std::move(error));
    EXPECT_TRUE(contains(message, name)) << message;
  }
}

TEST_F(ServerTest, AKeyMustFitInAHeader) {
  ScopedVariable key("OPENAI_API_KEY", "sk-one\r\nX-Evil: 1");
  auto client = makeChatClient("openai:m", options);
  ASSERT_FALSE(bool(client));
  EXPECT_EQ(llvm::toString(client.takeError()),
            "llm 'openai:m': OPENAI_API_KEY: expected printable characters "
            "without spaces");
}

TEST_F(ServerTest, TheAddressCanComeFromTheEnvironment) {
  ScopedVariable address("OPENAI_BASE_URL", server->address() + "/other/v1/");
  options.url.clear();
  EXPECT_EQ(ask("do: ok").text, "here it is");
  EXPECT_EQ(received()[0].getString("path"), "/other/v1/chat/completions");
}

TEST_F(ServerTest, BadAddresses) {
  for (const char *url : {"localhost:80", "ftp://host/v1", "file:///etc/passwd",
                          "http://", "http://host/v1?key=1", "no url"}) {
    options.url = url;
    auto client = makeChatClient("openai:m", options);
    ASSERT_FALSE(bool(client)) << url;
    std::string message = llvm::toString(client.takeError());
    EXPECT_TRUE(contains(message, "expected http://HOST")) << message;
  }
}

TEST_F(ServerTest, AProxyOfTheEnvironmentIsUsed) {
  // This server takes the place of the proxy: the name exists nowhere.
  ScopedVariable proxy("http_proxy", server->address());
  options.url = "http://llm.invalid/v1";
  EXPECT_EQ(ask("do: ok").text, "here it is");
  auto requests = received();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].getString("path"),
            "http://llm.invalid/v1/chat/completions");
  ScopedVariable none("no_proxy", "llm.invalid");
  EXPECT_TRUE(contains(ask("do: ok").error, "resolve host"));
}

TEST_F(ServerTest, CertificatesOfTheEnvironmentAreTrusted) {
  if (findOnPath("openssl").empty())
    GTEST_SKIP() << "this test needs openssl to make a certificate";
  TempFolder folder;
  std::string certificate = folder.path("cert.pem"),
              key = folder.path("key.pem");
  auto made = runProcess({"openssl", "req", "-x509", "-newkey", "rsa:2048",
                          "-nodes", "-days", "2", "-subj", "/CN=localhost",
                          "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                          key, "-out", certificate},
                         "");
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  ASSERT_TRUE(made->succeeded()) << made->err;
  std::string whyNot;
  auto secure = TestServer::start(whyNot, {"--tls", certificate, key});
  ASSERT_TRUE(secure) << whyNot;
  options.url = "https://127.0.0.1:" + std::to_string(secure->portNumber());

  Ended refused = ask("do: ok");
  EXPECT_TRUE(contains(refused.error, "certificate")) << refused.error;
  EXPECT_FALSE(contains(refused.error, "retries")) << refused.error;
  EXPECT_EQ(lastSpent.calls, 0);
  for (const char *name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    ScopedVariable trusted(name, certificate);
    EXPECT_EQ(ask("do: ok").text, "here it is") << name;
  }
}

} // namespace
