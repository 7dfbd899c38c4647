// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Answers, good and bad. Each bad form has its own sentence, because that is
// all that the LLM hears of it; and no text whatever may end the process.
//
//===----------------------------------------------------------------------===//

#include "fsr/Search/Search.h"
#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

#include <random>

using namespace fsr;

namespace {

const char source[] = "extern \"C\" __global__ void f(float *x) { *x = 1; }\n";

const char plan[] = R"json({
  "launch": [ { "kernel": "f", "grid": ["ceildiv(x.size0, ROWS)", 2, 1],
                "block": [128], "cluster": [2, 1, 1], "shared": "4 * TILE",
                "args": ["x", "x.size0", "part"] },
              { "kernel": "g", "grid": 7, "block": "TILE" } ],
  "scratch": [ { "name": "part", "bytes": "8 * x.size0", "zero": true },
               { "name": "more", "bytes": 16 } ],
  "requires": [ "x.size1 % 4 == 0", "aligned(x, 16)" ],
  "params": { "TILE": [32, 64, 32], "ROWS": 2 },
  "strategy": "vectorised loads", "notes": "…"
})json";

std::string answerOf(const std::string &code, const std::string &json) {
  return "Some words.\n\n```cuda\n" + code + "```\n\n```json\n" + json +
         "\n```\nMore words.\n";
}

std::string sentence(const std::string &answer) {
  auto candidate = parseAnswer(answer);
  if (candidate)
    return "(accepted)";
  llvm::Error error = candidate.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
  return llvm::toString(std::move(error));
}

/// The sentence for a good source and the plan `json`.
std::string planSentence(const std::string &json) {
  return sentence(answerOf(source, json));
}

/// The sentence for a plan of one launch and the further `fields`.
std::string fieldSentence(const std::string &fields) {
  return planSentence(
      R"({ "launch": [ { "kernel": "f", "grid": [1], "block": [32] } ], )" +
      fields + " }");
}

/// The sentence for a plan whose one launch has also `fields`.
std::string launchSentence(const std::string &fields) {
  return planSentence(R"({ "launch": [ { "kernel": "f", )" + fields + " } ] }");
}

TEST(AnswerTest, ReadsEveryField) {
  auto candidate = parseAnswer(answerOf(source, plan));
  ASSERT_TRUE(bool(candidate)) << llvm::toString(candidate.takeError());
  EXPECT_EQ(candidate->source, source);
  ASSERT_EQ(candidate->plan.launches.size(), 2u);
  const PlannedLaunch &first = candidate->plan.launches[0];
  EXPECT_EQ(first.kernel, "f");
  using Three = std::array<std::string, 3>;
  EXPECT_EQ(first.grid, (Three{"ceildiv(x.size0, ROWS)", "2", "1"}));
  EXPECT_EQ(first.block, (Three{"128", "1", "1"}));
  EXPECT_EQ(first.cluster, (Three{"2", "1", "1"}));
  EXPECT_EQ(first.shared, "4 * TILE");
  EXPECT_EQ(first.args, (std::vector<std::string>{"x", "x.size0", "part"}));
  const PlannedLaunch &second = candidate->plan.launches[1];
  EXPECT_EQ(second.grid, (Three{"7", "1", "1"}));
  EXPECT_EQ(second.block, (Three{"TILE", "1", "1"}));
  EXPECT_EQ(second.shared, "0");
  EXPECT_EQ(second.args, std::vector<std::string>{"same"});
  ASSERT_EQ(candidate->plan.scratch.size(), 2u);
  EXPECT_EQ(candidate->plan.scratch[0].name, "part");
  EXPECT_EQ(candidate->plan.scratch[0].bytes, "8 * x.size0");
  EXPECT_TRUE(candidate->plan.scratch[0].zero);
  EXPECT_EQ(candidate->plan.scratch[1].bytes, "16");
  EXPECT_FALSE(candidate->plan.scratch[1].zero);
  EXPECT_EQ(candidate->guards,
            (std::vector<std::string>{"x.size1 % 4 == 0", "aligned(x, 16)"}));
  ASSERT_EQ(candidate->parameters.size(), 2u);
  EXPECT_EQ(candidate->parameters["TILE"], (std::vector<int64_t>{32, 64}));
  EXPECT_EQ(candidate->parameters["ROWS"], std::vector<int64_t>{2});
  EXPECT_EQ(candidate->strategy, "vectorised loads");
  EXPECT_EQ(candidate->notes, "…");
}

TEST(AnswerTest, FencesAsLlmsWriteThem) {
  std::string launch =
      R"({"launch":[{"kernel":"f","grid":[1],"block":[32],"args":"same"}]})";
  for (const char *language :
       {"cuda", "cpp", "c++", "cu", "CUDA", "cuda title=\"k.cu\"", " cuda ",
        "cuda{.numberLines}"}) {
    std::string answer = std::string("```") + language + "\n" + source +
                         "```\n```json\n" + launch + "\n```";
    EXPECT_EQ(sentence(answer), "(accepted)") << language;
  }
  // Carriage returns, longer fences, tildes, indentation, blocks of no matter.
  std::string odd = std::string("```text\nwords\n```\r\n  ~~~~cuda\r\n") +
                    "// ~~~\r\nint a;\r\n~~~~\r\n````JSON\r\n" + launch +
                    "\r\n````\r\n";
  auto candidate = parseAnswer(odd);
  ASSERT_TRUE(bool(candidate)) << llvm::toString(candidate.takeError());
  EXPECT_EQ(candidate->source, "// ~~~\nint a;\n");
  EXPECT_EQ(sentence("Use ```cuda``` here.\n" + answerOf(source, launch)),
            "(accepted)");
}

TEST(AnswerTest, ExactlyOneBlockOfEach) {
  std::string json = "```json\n" + std::string(plan) + "\n```\n";
  std::string code = "```cuda\n" + std::string(source) + "```\n";
  EXPECT_EQ(sentence(json),
            "the answer has no fenced `cuda` block; expected exactly one");
  EXPECT_EQ(sentence(code),
            "the answer has no fenced `json` block; expected exactly one");
  EXPECT_EQ(sentence(code + code + json),
            "the answer has 2 fenced `cuda` blocks; expected exactly one");
  EXPECT_EQ(sentence(code + json + json),
            "the answer has 2 fenced `json` blocks; expected exactly one");
  EXPECT_EQ(sentence("```\nint a;\n```\n" + json),
            "the answer has no fenced `cuda` block; expected exactly one "
            "(fenced blocks in another or no language: 1)");
  EXPECT_EQ(sentence("\n" + json + "```cuda\nint a;\n"),
            "the fenced block that line 15 opens is not closed");
}

TEST(AnswerTest, TextsThatAreNoAnswers) {
  EXPECT_EQ(sentence(""), "the answer is empty");
  EXPECT_EQ(sentence(" \n\t\n"), "the answer is empty");
  EXPECT_EQ(sentence("\xff"), "the answer is not valid UTF-8");
  EXPECT_EQ(sentence(std::string("a\0b", 3)), "the answer holds a zero byte");
  EXPECT_EQ(sentence(std::string((1 << 20) + 1, 'x')),
            "the answer is longer than 1048576 bytes");
  EXPECT_EQ(sentence(answerOf("", plan)), "the cuda block is empty");
  EXPECT_EQ(sentence(answerOf(std::string(256 << 10, 'x') + "\n", plan)),
            "the cuda block is longer than 262144 bytes");
  EXPECT_EQ(planSentence(std::string(64 << 10, ' ')),
            "the json block is longer than 65536 bytes");
}

TEST(AnswerTest, PlansThatAreNoPlans) {
  EXPECT_EQ(planSentence("[]"),
            "the json block: expected an object, got a list");
  EXPECT_EQ(planSentence("{}"), "launch: expected at least one launch");
  EXPECT_EQ(planSentence(R"({"launch": {}})"),
            "launch: expected a list, got an object");
  EXPECT_EQ(planSentence(R"({"launch": [4]})"),
            "launch[0]: expected an object, got a number");
  EXPECT_EQ(planSentence(R"({"launches": []})"),
            "the json block: unknown key 'launches'; known are launch, "
            "scratch, requires, params, strategy, notes");
  std::string many = R"({"launch": [)";
  for (int i = 0; i < 17; ++i)
    many += std::string(i ? "," : "") + "{}";
  EXPECT_EQ(planSentence(many + "]}"),
            "launch: 17 entries; at most 16 are taken");
  std::string broken = planSentence("{ \"launch\": [ }");
  EXPECT_EQ(broken.find("the json block: "), 0u) << broken;
  std::string deep = planSentence(std::string(60000, '['));
  EXPECT_EQ(deep.find("the json block: "), 0u) << deep;
}

TEST(AnswerTest, Launches) {
  EXPECT_EQ(planSentence(R"({"launch": [{"grid": [1], "block": [1]}]})"),
            "launch[0].kernel is missing");
  EXPECT_EQ(planSentence(R"({"launch": [{"kernel": 3}]})"),
            "launch[0].kernel: expected a name, got a number");
  EXPECT_EQ(planSentence(R"({"launch": [{"kernel": "f<4>"}]})"),
            "launch[0].kernel: 'f<4>' is not a C identifier of at most 64 "
            "characters");
  EXPECT_EQ(launchSentence(R"("block": [1])"), "launch[0].grid is missing");
  EXPECT_EQ(launchSentence(R"("grid": [1])"), "launch[0].block is missing");
  EXPECT_EQ(launchSentence(R"("grid": [], "block": [1])"),
            "launch[0].grid: expected one to three entries (x, y, z), got 0");
  EXPECT_EQ(launchSentence(R"("grid": [1,1,1,1], "block": [1])"),
            "launch[0].grid: expected one to three entries (x, y, z), got 4");
  EXPECT_EQ(launchSentence(R"("grid": [1.5], "block": [1])"),
            "launch[0].grid[0]: expected an integer or an expression in a "
            "string, got a number");
  EXPECT_EQ(launchSentence(R"("grid": [1], "block": [null])"),
            "launch[0].block[0]: expected an integer or an expression in a "
            "string, got null");
  std::string parsed = launchSentence(R"("grid": ["4 *"], "block": [1])");
  EXPECT_EQ(parsed.find("launch[0].grid[0] '4 *': "), 0u) << parsed;
  std::string guard = launchSentence(R"("grid": ["a == 4"], "block": [1])");
  EXPECT_EQ(guard.find("launch[0].grid[0] 'a == 4': "), 0u) << guard;
  EXPECT_EQ(launchSentence(R"("grid": [1], "block": [1], "shared": [4])"),
            "launch[0].shared: expected an integer or an expression in a "
            "string, got a list");
  EXPECT_EQ(launchSentence(R"("grid": [1], "block": [1], "threads": 4)"),
            "launch[0]: unknown key 'threads'; known are kernel, grid, block, "
            "cluster, shared, args");
  EXPECT_EQ(launchSentence(R"("grid": [1], "block": [1], "args": "all")"),
            "launch[0].args: expected \"same\" or a list of names, got 'all'");
  EXPECT_EQ(launchSentence(R"("grid": [1], "block": [1], "args": true)"),
            "launch[0].args: expected \"same\" or a list of names, got a "
            "boolean");
  EXPECT_EQ(launchSentence(R"("grid": [1], "block": [1], "args": [4])"),
            "launch[0].args[0]: expected a name, got a number");
  EXPECT_EQ(launchSentence(R"("grid": [1], "block": [1], "args": ["4 * n"])"),
            "launch[0].args[0]: '4 * n' is not a name; pass buffers, sizes "
            "such as x.size0, scalars or scratch buffers, and hand constants "
            "on as params");
}

TEST(AnswerTest, ScratchGuardsAndParameters) {
  EXPECT_EQ(fieldSentence(R"("scratch": [{"bytes": 4}])"),
            "scratch[0].name is missing");
  EXPECT_EQ(fieldSentence(R"("scratch": [{"name": "p"}])"),
            "scratch[0].bytes is missing");
  EXPECT_EQ(fieldSentence(R"("scratch": [{"name": "p", "bytes": 4,
                              "zero": 1}])"),
            "scratch[0].zero: expected true or false, got a number");
  EXPECT_EQ(fieldSentence(R"("requires": "n == 4")"),
            "requires: expected a list, got a string");
  EXPECT_EQ(fieldSentence(R"("requires": [4])"),
            "requires[0]: expected a condition in a string, got a number");
  std::string size = fieldSentence(R"("requires": ["n + 4"])");
  EXPECT_EQ(size.find("requires[0] 'n + 4': "), 0u) << size;
  EXPECT_EQ(fieldSentence(R"("params": [4])"),
            "params: expected an object of lists of integers, got a list");
  EXPECT_EQ(fieldSentence(R"("params": {"T": []})"),
            "params.T: expected 1 to 16 values, got 0");
  EXPECT_EQ(
      fieldSentence(R"("params": {"T": [1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7]})"),
      "params.T: expected 1 to 16 values, got 17");
  EXPECT_EQ(fieldSentence(R"("params": {"T": ["32"]})"),
            "params.T[0]: expected an integer, got a string");
  EXPECT_EQ(fieldSentence(R"("params": {"T x": [1]})"),
            "params: 'T x' cannot be the name of a macro; expected a letter, "
            "then letters, digits and underscores, and no word of C++");
  EXPECT_EQ(fieldSentence(R"("params": {"__CUDA_ARCH__": [1]})"),
            "params: '__CUDA_ARCH__' cannot be the name of a macro; expected a "
            "letter, then letters, digits and underscores, and no word of C++");
  for (const char *word : {"int", "asm"})
    EXPECT_EQ(fieldSentence(
                  ("\"params\": {\"" + std::string(word) + "\": [1]}").c_str()),
              "params: '" + std::string(word) +
                  "' cannot be the name of a macro; expected a letter, then "
                  "letters, digits and underscores, and no word of C++");
  EXPECT_EQ(fieldSentence(R"("params": {"A":1,"B":1,"C":1,"D":1,"E":1,"F":1,
                              "G":1,"H":1,"I":1})"),
            "params: 9 parameters; at most 8 are taken");
  EXPECT_EQ(fieldSentence(R"("strategy": 4)"),
            "strategy: expected a string, got a number");
  EXPECT_EQ(fieldSentence("\"notes\": \"" + std::string(9000, 'x') + "\""),
            "notes: longer than 8192 bytes");
}

TEST(AnswerTest, AMessageQuotesLittleOfAHostileText) {
  std::string message =
      fieldSentence("\"" + std::string(5000, 'k') + "\\u0007\": 1");
  EXPECT_LT(message.size(), 300u);
  std::string control = fieldSentence("\"a\\nb\\u0007\": 1");
  EXPECT_EQ(control.find("the json block: unknown key 'a?b?'"), 0u) << control;
}

// No mutation of a good answer may do more than be refused.
TEST(AnswerTest, RandomMutationsNeverCrash) {
  const std::string good = answerOf(source, plan);
  const std::string pieces[] = {"```",  "```json\n", "{", "}",    "[", "]",
                                "\"",   "\\",        ",", "null", "(", ")",
                                "1e99", "\n",        "~", "9",    "-", "\xc3"};
  std::mt19937 random(20);
  auto below = [&](size_t n) { return random() % n; };
  size_t accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (size_t edits = 1 + below(6); edits > 0 && !text.empty(); --edits) {
      size_t at = below(text.size());
      switch (below(5)) {
      case 0:
        text[at] = char(random());
        break;
      case 1:
        text.erase(at, 1 + below(40));
        break;
      case 2:
        text.insert(at, pieces[below(std::size(pieces))]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(60)));
        break;
      case 4:
        text.resize(at);
        break;
      }
    }
    auto candidate = parseAnswer(text);
    if (candidate) {
      ++accepted;
      EXPECT_FALSE(candidate->plan.launches.empty());
      continue;
    }
    ++refused;
    std::string message = llvm::toString(candidate.takeError());
    EXPECT_FALSE(message.empty());
    EXPECT_LT(message.size(), 2000u);
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
  // Both happen often, or the mutations are no test.
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(refused, 1000u);
}

} // namespace
