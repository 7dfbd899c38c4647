// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Candidates: names, combinations, the ABI, and JSON as an LLM writes it.
//
//===----------------------------------------------------------------------===//

#include "Samples.h"

#include "gtest/gtest.h"

#include <set>

using namespace fsr;
using namespace fsr::test;

namespace {

TEST(Candidate, RoundTrips) {
  Candidate candidate = sampleCandidate();
  EXPECT_EQ(roundTrip(candidate), print(toJSON(candidate)));
  EXPECT_EQ(roundTrip(candidate.plan), print(toJSON(candidate.plan)));
  EXPECT_EQ(roundTrip(sampleResolved()), print(toJSON(sampleResolved())));
}

TEST(Candidate, EveryFieldComesBack) {
  Candidate candidate = sampleCandidate(), back;
  llvm::json::Path::Root root("candidate");
  ASSERT_TRUE(fromJSON(toJSON(candidate), back, root));
  EXPECT_EQ(back.hash(), candidate.hash());
  EXPECT_EQ(back.parameters, candidate.parameters);
  EXPECT_EQ(back.strategy, "vectorised loads");
  EXPECT_EQ(back.notes, "two passes");
  EXPECT_EQ(back.source, candidate.source);
  EXPECT_EQ(back.plan.launches[0].args, candidate.plan.launches[0].args);
  EXPECT_EQ(back.plan.launches[1].args, (std::vector<std::string>{"same"}));
  EXPECT_TRUE(back.plan.scratch[0].zero);
}

TEST(Candidate, ReadsWhatAnLlmWrites) {
  llvm::Expected<llvm::json::Value> json = llvm::json::parse(R"json({
    "launch": [ { "kernel": "softmax_rows",
                  "grid": ["ceildiv(x.size0, ROWS)", 1], "block": 128,
                  "args": "same", "comment": "ignored" } ],
    "scratch": [ { "name": "part", "bytes": 64 } ],
    "params": { "TILE": [32, 64], "ROWS": 2 } })json");
  ASSERT_TRUE(bool(json));
  Candidate candidate;
  llvm::json::Path::Root root("plan");
  ASSERT_TRUE(fromJSON(*json, candidate, root));
  const PlannedLaunch &launch = candidate.plan.launches[0];
  EXPECT_EQ(launch.grid,
            (std::array<std::string, 3>{"ceildiv(x.size0, ROWS)", "1", "1"}));
  EXPECT_EQ(launch.block, (std::array<std::string, 3>{"128", "1", "1"}));
  EXPECT_EQ(launch.shared, "0");
  EXPECT_EQ(launch.args, (std::vector<std::string>{"same"}));
  EXPECT_EQ(candidate.plan.scratch[0].bytes, "64");
  EXPECT_FALSE(candidate.plan.scratch[0].zero);
  EXPECT_EQ(candidate.parameters, (std::map<std::string, std::vector<int64_t>>{
                                      {"ROWS", {2}}, {"TILE", {32, 64}}}));
}

struct Refusal {
  llvm::StringLiteral path;
  llvm::json::Value value;
  llvm::StringLiteral error;
};

TEST(Candidate, Refused) {
  llvm::json::Object seventeen;
  for (int i = 0; i < 17; ++i)
    seventeen["P" + std::to_string(i)] = i;
  const Refusal refusals[] = {
      {"launch", nullptr, "expected array at plan.launch"},
      {"launch.0", 1, "expected object at plan.launch[0]"},
      {"launch.0.kernel", 1, "expected string at plan.launch[0].kernel"},
      {"launch.0.grid", llvm::json::Array{},
       "expected one to three dimensions at plan.launch[0].grid"},
      {"launch.0.grid", llvm::json::Array{1, 1, 1, 1},
       "expected one to three dimensions at plan.launch[0].grid"},
      {"launch.0.grid.1", 1.5,
       "expected an expression (string or integer) at plan.launch[0].grid[1]"},
      {"launch.0.block", nullptr,
       "expected an expression (string or integer) at plan.launch[0].block"},
      {"launch.0.shared", true,
       "expected an expression (string or integer) at plan.launch[0].shared"},
      {"launch.0.args", "x",
       "expected \"same\" or array of names at plan.launch[0].args"},
      {"launch.0.args.1", 7, "expected string at plan.launch[0].args[1]"},
      {"scratch.0.name", 7, "expected string at plan.scratch[0].name"},
      {"scratch.0.zero", 1, "expected boolean at plan.scratch[0].zero"},
      {"requires", "n == 1", "expected array at plan.requires"},
      {"params.TILE", llvm::json::Array{},
       "expected 1 to 64 values at plan.params.TILE"},
      {"params.TILE", llvm::json::Array(std::vector<int64_t>(65, 1)),
       "expected 1 to 64 values at plan.params.TILE"},
      {"params.TILE", "32", "expected array at plan.params.TILE"},
      {"params.TILE.0", 1.5, "expected integer at plan.params.TILE[0]"},
      {"params.int", 1,
       "expected a C identifier that is no keyword at plan.params.int"},
      {"params.__x", 1,
       "expected a C identifier that is no keyword at plan.params.__x"},
      {"params.A=1 -I/", 1,
       "expected a C identifier that is no keyword at plan.params.A=1 -I/"},
      {"params", std::move(seventeen),
       "expected at most 16 parameters at plan.params"},
      {"source", 3, "expected string at plan.source"},
  };
  for (const Refusal &refusal : refusals)
    EXPECT_EQ(readError<Candidate>(
                  with(toJSON(sampleCandidate()), refusal.path, refusal.value),
                  "plan"),
              refusal.error)
        << refusal.path.str();
  EXPECT_EQ(readError<Candidate>(without(toJSON(sampleCandidate()), "launch"),
                                 "plan"),
            "missing value at plan.launch");
}

TEST(Candidate, ResolvedPlanRefused) {
  const Refusal refusals[] = {
      {"launch", llvm::json::Array{},
       "expected at least one launch at plan.launch"},
      {"launch.0.kernel", "a b",
       "expected a C identifier that is no keyword at plan.launch[0].kernel"},
      {"launch.0.grid.0", 0,
       "expected integer of at least 1 at plan.launch[0].grid[0]"},
      {"launch.0.args", "same", "expected array at plan.launch[0].args"},
      {"scratch.0.bytes", -1,
       "expected integer of at least 0 at plan.scratch[0].bytes"},
      {"scratch.0.name", "1",
       "expected a C identifier that is no keyword at plan.scratch[0].name"},
  };
  for (const Refusal &refusal : refusals)
    EXPECT_EQ(readError<ResolvedPlan>(
                  with(toJSON(sampleResolved()), refusal.path, refusal.value),
                  "plan"),
              refusal.error);
}

TEST(Candidate, HashCoversSourcePlanAndGuards) {
  std::set<std::string> hashes{sampleCandidate().hash()};
  EXPECT_EQ(hashes.begin()->size(), 64u);
  auto differs = [&](auto change) {
    Candidate candidate = sampleCandidate();
    change(candidate);
    EXPECT_TRUE(hashes.insert(candidate.hash()).second);
  };
  differs([](Candidate &c) { c.source += " "; });
  differs([](Candidate &c) { c.plan.launches[0].kernel = "other"; });
  differs([](Candidate &c) { c.plan.launches[0].grid[2] = "9"; });
  differs([](Candidate &c) { c.plan.launches[0].block[0] = "9"; });
  differs([](Candidate &c) { c.plan.launches[0].cluster[1] = "9"; });
  differs([](Candidate &c) { c.plan.launches[0].shared = "9"; });
  differs([](Candidate &c) { c.plan.launches[0].args.pop_back(); });
  differs([](Candidate &c) { c.plan.launches.pop_back(); });
  differs([](Candidate &c) { c.plan.scratch[0].name = "other"; });
  differs([](Candidate &c) { c.plan.scratch[0].bytes = "9"; });
  differs([](Candidate &c) { c.plan.scratch[0].zero = false; });
  differs([](Candidate &c) { c.plan.scratch.clear(); });
  differs([](Candidate &c) { c.guards.pop_back(); });
  differs([](Candidate &c) { std::swap(c.guards[0], c.guards[1]); });

  Candidate described = sampleCandidate();
  described.strategy = described.notes = "other words";
  described.parameters.clear();
  EXPECT_EQ(described.hash(), sampleCandidate().hash());
}

TEST(Candidate, Combinations) {
  Candidate candidate = sampleCandidate();
  std::vector<Parameters> all = candidate.combinations(100);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0], (Parameters{{"ROWS", 1}, {"TILE", 32}}));
  EXPECT_EQ(all[1], (Parameters{{"ROWS", 1}, {"TILE", 64}}));
  EXPECT_EQ(all[2], (Parameters{{"ROWS", 2}, {"TILE", 32}}));
  EXPECT_EQ(all[5], (Parameters{{"ROWS", 3}, {"TILE", 64}}));
  EXPECT_EQ(candidate.combinations(4).size(), 4u);
  EXPECT_EQ(candidate.combinations(6).size(), 6u);
  EXPECT_EQ(candidate.combinations(0).size(), 0u);
  // Sixteen parameters of 64 values are 2^96: the limit alone bounds the work.
  for (int i = 0; i < 16; ++i)
    candidate.parameters["P" + std::to_string(i)].assign(64, i);
  EXPECT_EQ(candidate.combinations(1000).size(), 1000u);
  candidate.parameters.clear();
  ASSERT_EQ(candidate.combinations(5).size(), 1u);
  EXPECT_TRUE(candidate.combinations(5)[0].empty());
}

TEST(Candidate, Abi) {
  KernelTask task = sampleTask();
  EXPECT_EQ(candidateAbiNames(task),
            (std::vector<std::string>{"x", "y", "n", "alpha", "m"}));
  EXPECT_EQ(candidateSignature(task), "const float *x,\n"
                                      "    __nv_bfloat16 *y,\n"
                                      "    int n,\n"
                                      "    float alpha,\n"
                                      "    long long m");
  task.arguments[1].access = Access::Write;
  EXPECT_NE(candidateSignature(task).find("    __nv_bfloat16 *y"),
            std::string::npos);
  task.arguments.clear();
  EXPECT_EQ(candidateSignature(task), "");
}

} // namespace
