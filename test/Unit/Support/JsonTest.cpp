// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// JSON from outside: depth, encoding, and the one text form.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Json.h"
#include "fsr/Support/Error.h"
#include "fsr/Support/Hash.h"

#include "gtest/gtest.h"

using namespace fsr;

static std::string errorOf(llvm::StringRef text) {
  llvm::Expected<llvm::json::Value> value = parseJson(text);
  if (value)
    return "";
  llvm::Error error = value.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::Corrupt);
  return llvm::toString(std::move(error));
}

static std::string nested(unsigned depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(Json, Depth) {
  EXPECT_EQ(errorOf(nested(maxJsonDepth)), "");
  EXPECT_EQ(errorOf(nested(maxJsonDepth + 1)),
            "JSON is nested deeper than 128 levels");
  EXPECT_NE(errorOf(std::string(16 << 20, '[')), "");
  std::string objects;
  for (int i = 0; i < 1000000; ++i)
    objects += "{\"\":";
  EXPECT_NE(errorOf(objects), "");
}

TEST(Json, DepthIgnoresStringsAndSiblings) {
  std::string brackets(1000, '[');
  EXPECT_EQ(errorOf("[\"\\\"" + brackets + "\"]"), "");
  std::string siblings = "[";
  for (int i = 0; i < 1000; ++i)
    siblings += "[],";
  EXPECT_EQ(errorOf(siblings + "[]]"), "");
  // A string that ends in an escaped backslash has ended.
  EXPECT_EQ(errorOf("[\"\\\\\"," + brackets), "JSON is nested deeper than "
                                              "128 levels");
}

TEST(Json, Garbage) {
  EXPECT_NE(errorOf(""), "");
  EXPECT_NE(errorOf("{"), "");
  EXPECT_NE(errorOf("{\"a\": 1} x"), "");
  EXPECT_NE(errorOf("\""), "");
  EXPECT_NE(errorOf("\"\\"), "");
  EXPECT_NE(errorOf("\"\xff\""), "");
}

TEST(Json, PrintIsCanonical) {
  llvm::json::Object one{{"b", 1}, {"a", llvm::json::Array{true}}};
  llvm::json::Object two{{"a", llvm::json::Array{true}}, {"b", 1}};
  std::string text = printJson(std::move(one));
  EXPECT_EQ(text, "{\n  \"a\": [\n    true\n  ],\n  \"b\": 1\n}\n");
  EXPECT_EQ(text, printJson(std::move(two)));
}

TEST(Json, SealShowsWhatWasChanged) {
  llvm::json::Object object{{"b", 1}, {"z", 0.1}, {"a", "text"}};
  std::string text = printSealed(llvm::json::Object(object));
  // Over the text without it, which anybody can make.
  EXPECT_NE(text.find("\"sha256\": \"" + sha256(printJson(std::move(object)))),
            std::string::npos)
      << text;
  auto errorAfter = [&](llvm::StringRef from, llvm::StringRef to) {
    std::string edited = text;
    size_t at = edited.find(from);
    EXPECT_NE(at, std::string::npos) << from.str();
    edited.replace(at, from.size(), to);
    llvm::Expected<llvm::json::Value> json = parseJson(edited);
    if (!json)
      return llvm::toString(json.takeError());
    llvm::Error error = unseal(*json->getAsObject());
    if (!error)
      return std::string();
    EXPECT_EQ(kindOf(error), ErrorKind::Corrupt);
    return llvm::toString(std::move(error));
  };
  EXPECT_EQ(errorAfter("", ""), "");
  EXPECT_EQ(errorAfter("  \"a\"", "\"a\""), "") << "the form does not count";
  for (auto [from, to] :
       {std::pair("text", "test"), std::pair(": 1,", ": 2,"),
        std::pair("\"b\": 1,", ""), std::pair("{", "{\"new\": 1,"),
        std::pair("\"sha256\": \"", "\"sha256\": \"0")})
    EXPECT_NE(errorAfter(from, to).find("it was changed"), std::string::npos)
        << to;
  EXPECT_EQ(errorAfter("sha256", "sha255"), "it has no field 'sha256'");
}

TEST(Json, SealIsOverWhatIsReadBack) {
  llvm::json::Object object{
      {"zero", -0.0}, {"whole", 1e15}, {"large", 1e300}, {"small", 5e-324}};
  llvm::Expected<llvm::json::Value> json = parseJson(printSealed(object));
  ASSERT_TRUE(bool(json));
  EXPECT_EQ(llvm::toString(unseal(*json->getAsObject())), "");
  EXPECT_EQ(json->getAsObject()->size(), 4u);
}
