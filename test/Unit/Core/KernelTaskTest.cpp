// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Tasks: derived sizes, the JSON form, and each input that the reader refuses,
// with its message.
//
//===----------------------------------------------------------------------===//

#include "Samples.h"

#include "fsr/Support/Error.h"

#include "gtest/gtest.h"

using namespace fsr;
using namespace fsr::test;

namespace {

TEST(KernelTask, Extents) {
  KernelTask task = sampleTask();
  const Argument *x = task.find("x");
  ASSERT_TRUE(x);
  EXPECT_EQ(x->numElements(), 15);
  // The last of 3 rows of 8 is reached up to its fifth element.
  EXPECT_EQ(x->extentBytes(), (2 * 8 + 4 + 1) * 4);
  EXPECT_EQ(task.find("y")->extentBytes(), 8);
  EXPECT_EQ(task.find("n")->extentBytes(), 0);
  EXPECT_EQ(task.find("n")->numElements(), 0);
  EXPECT_FALSE(task.find("z"));
  EXPECT_EQ(buffer("e", {3, 0}, {8, 1}, Access::Read).extentBytes(), 0);
  EXPECT_EQ(buffer("e", {3, 0}, {8, 1}, Access::Read).numElements(), 0);
  EXPECT_EQ(buffer("r0", {}, {}, Access::Read).extentBytes(), 4);
  EXPECT_EQ(buffer("r0", {}, {}, Access::Read).numElements(), 1);
  // Broadcast: one element reached many times.
  EXPECT_EQ(buffer("b", {100}, {0}, Access::Read).extentBytes(), 4);
}

TEST(KernelTask, RoundTrips) {
  KernelTask task = sampleTask();
  EXPECT_EQ(roundTrip(task), print(toJSON(task)));
  EXPECT_EQ(roundTrip(task.launch), print(toJSON(task.launch)));
  for (const Argument &argument : task.arguments)
    EXPECT_EQ(roundTrip(argument), print(toJSON(argument)));
  EXPECT_EQ(roundTrip(task.workload[0]), print(toJSON(task.workload[0])));
}

TEST(KernelTask, EveryFieldComesBack) {
  KernelTask task = sampleTask(), back;
  llvm::json::Path::Root root("task");
  ASSERT_TRUE(fromJSON(toJSON(task), back, root));
  EXPECT_EQ(back.name, "softmax");
  EXPECT_EQ(back.key, digest('a'));
  EXPECT_EQ(back.target, "sm_90a");
  ASSERT_EQ(back.arguments.size(), 5u);
  EXPECT_EQ(back.arguments[0].name, "x");
  EXPECT_TRUE(back.arguments[0].isBuffer);
  EXPECT_EQ(back.arguments[0].sizes, (std::vector<int64_t>{3, 5}));
  EXPECT_EQ(back.arguments[0].strides, (std::vector<int64_t>{8, 1}));
  EXPECT_EQ(back.arguments[0].offset, 2);
  EXPECT_EQ(back.arguments[0].alignment, 16);
  EXPECT_EQ(back.arguments[0].access, Access::Read);
  EXPECT_EQ(back.arguments[1].element, ElementType::BF16);
  EXPECT_EQ(back.arguments[2].constantBits, "fffffffa");
  EXPECT_EQ(back.arguments[4].constantBits, std::nullopt);
  EXPECT_EQ(back.launch.grid, task.launch.grid);
  EXPECT_EQ(back.launch.block, task.launch.block);
  EXPECT_EQ(back.launch.cluster, task.launch.cluster);
  EXPECT_EQ(back.launch.sharedBytes, 11);
  EXPECT_EQ(back.reference.mlir, "module {}");
  EXPECT_EQ(back.reference.ptx, ".version 8.0");
  EXPECT_EQ(back.reference.truePtx, ".version 8.1");
  EXPECT_EQ(back.reference.noTruePtx, "a reason");
  EXPECT_EQ(back.reference.entry, "softmax_entry");
  EXPECT_EQ(back.reference.abi, ReferenceAbi::BarePointer);
  EXPECT_EQ(back.kernelMlir, "gpu.func");
  EXPECT_EQ(back.launchMlir, "gpu.launch_func");
  EXPECT_EQ(back.facts, task.facts);
  EXPECT_TRUE(back.fastMath);
  EXPECT_EQ(back.work.flops, 1.5e9);
  EXPECT_EQ(back.work.bytesRead, 123456789);
  EXPECT_EQ(back.work.bytesWritten, 2.5);
  EXPECT_EQ(back.work.accumulation, 1024);
  EXPECT_TRUE(back.work.exactOnIntegers);
  EXPECT_TRUE(back.work.movesOnly);
  EXPECT_TRUE(back.work.addsAtomically);
  EXPECT_EQ(back.work.finiteOnly, "it says so");
  ASSERT_EQ(back.workload.size(), 2u);
  EXPECT_EQ(back.workload[0].name, "usual");
  EXPECT_EQ(back.workload[0].weight, 0.75);
  EXPECT_EQ(back.workload[0].fills[1].family, "integers");
  EXPECT_EQ(back.workload[0].fills[1].parameters, (std::vector<double>{-4, 4}));
}

TEST(KernelTask, WhatDoesNotSayIsFiniteOnly) {
  llvm::json::Value json = toJSON(sampleTask());
  llvm::json::Object *work = json.getAsObject()->getObject("work");
  (*work)["finite_only"] = "";
  KernelTask back;
  llvm::json::Path::Root root("task");
  ASSERT_TRUE(fromJSON(json, back, root));
  EXPECT_EQ(back.work.finiteOnly, "");
  work->erase("finite_only");
  ASSERT_TRUE(fromJSON(json, back, root));
  EXPECT_EQ(back.work.finiteOnly, "the task does not say what they lead to");
}

TEST(KernelTask, UnknownKeysAreIgnored) {
  llvm::json::Value json = with(toJSON(sampleTask()), "later", 3);
  EXPECT_EQ(readError<KernelTask>(json, "task"), "ok");
}

TEST(KernelTask, MandatoryFields) {
  for (llvm::StringRef key : {"format_version", "name", "key", "target",
                              "arguments", "launch", "reference", "workload"})
    EXPECT_EQ(readError<KernelTask>(without(toJSON(sampleTask()), key), "task"),
              "missing value at task." + key.str());
  llvm::json::Value json = toJSON(sampleTask());
  for (llvm::StringRef key :
       {"kernel_mlir", "launch_mlir", "facts", "fast_math", "work"})
    json = without(json, key);
  EXPECT_EQ(readError<KernelTask>(json, "task"), "ok");
}

struct Refusal {
  llvm::StringLiteral path;
  llvm::json::Value value;
  llvm::StringLiteral error;
};

TEST(KernelTask, Refused) {
  const int64_t huge = INT64_MAX / 2;
  const Refusal refusals[] = {
      {"format_version", 1, "expected format version 2 at task.format_version"},
      {"format_version", "1", "expected integer at task.format_version"},
      {"name", "",
       "expected 1 to 1024 characters without control characters at task.name"},
      {"name", "a\nb",
       "expected 1 to 1024 characters without control characters at task.name"},
      {"key", "abc", "expected 64 lower-case hex digits at task.key"},
      {"key", digest('A'), "expected 64 lower-case hex digits at task.key"},
      {"key", std::string(63, 'a') + "/",
       "expected 64 lower-case hex digits at task.key"},
      {"target", "gfx90a", "expected a target, as sm_90 at task.target"},
      {"arguments", 3, "expected array at task.arguments"},
      {"arguments.0.name", "x-y",
       "expected a C identifier that is no keyword at task.arguments[0].name"},
      {"arguments.0.name", "float",
       "expected a C identifier that is no keyword at task.arguments[0].name"},
      {"arguments.0.name", "__x",
       "expected a C identifier that is no keyword at task.arguments[0].name"},
      {"arguments.0.name", "x;}",
       "expected a C identifier that is no keyword at task.arguments[0].name"},
      {"arguments.1.name", "x",
       "expected a name that no other argument has at task.arguments[1].name"},
      {"arguments.0.element", "f8",
       "expected i1, i8, i16, i32, i64, f16, bf16, f32 or f64 at "
       "task.arguments[0].element"},
      {"arguments.0.kind", "tensor",
       "expected buffer or scalar at task.arguments[0].kind"},
      {"arguments.0.sizes.0", -1,
       "expected integer of at least 0 at task.arguments[0].sizes[0]"},
      {"arguments.0.sizes.0", "3",
       "expected integer of at least 0 at task.arguments[0].sizes[0]"},
      {"arguments.0.strides.1", -1,
       "expected integer of at least 0 at task.arguments[0].strides[1]"},
      {"arguments.0.strides", llvm::json::Array{1},
       "expected as many strides as sizes at task.arguments[0].strides"},
      {"arguments.0.sizes.0", huge,
       "expected a buffer of at most 2^62 bytes at task.arguments[0].sizes"},
      {"arguments.0.strides.0", huge,
       "expected a buffer of at most 2^62 bytes at task.arguments[0].sizes"},
      {"arguments.0.offset", huge,
       "expected a buffer of at most 2^62 bytes at task.arguments[0].sizes"},
      {"arguments.0.offset", -1,
       "expected integer of at least 0 at task.arguments[0].offset"},
      {"arguments.0.alignment_bytes", 0,
       "expected a power of two up to 2^32 at "
       "task.arguments[0].alignment_bytes"},
      {"arguments.0.alignment_bytes", 12,
       "expected a power of two up to 2^32 at "
       "task.arguments[0].alignment_bytes"},
      {"arguments.0.access", "rw",
       "expected none, read, write or read_write at task.arguments[0].access"},
      {"arguments.2.constant_bits", "xyz",
       "expected hex digits, at most two a byte of the element at "
       "task.arguments[2].constant_bits"},
      {"arguments.2.constant_bits", "123456789",
       "expected hex digits, at most two a byte of the element at "
       "task.arguments[2].constant_bits"},
      {"arguments.2.constant_bits", "",
       "expected hex digits, at most two a byte of the element at "
       "task.arguments[2].constant_bits"},
      {"launch.grid", llvm::json::Array{1, 2},
       "expected array of three integers at task.launch.grid"},
      {"launch.grid.1", 0,
       "expected integer of at least 1 at task.launch.grid[1]"},
      {"launch.block.2", -4,
       "expected integer of at least 1 at task.launch.block[2]"},
      {"launch.cluster.0", "1", "expected integer at task.launch.cluster[0]"},
      {"launch.shared_bytes", -1,
       "expected integer of at least 0 at task.launch.shared_bytes"},
      {"reference.abi", "c",
       "expected descriptor or bare_pointer at task.reference.abi"},
      {"reference.entry", 1, "expected string at task.reference.entry"},
      {"work.flops", "many", "expected number at task.work.flops"},
      {"work.flops", -1,
       "expected finite number of at least 0 at task.work.flops"},
      {"work.bytes_read", "7ff8000000000000",
       "expected finite number of at least 0 at task.work.bytes_read"},
      {"work.bytes_written", "7ff0000000000000",
       "expected finite number of at least 0 at task.work.bytes_written"},
      {"work.accumulation", 0,
       "expected integer of at least 1 at task.work.accumulation"},
      {"facts", llvm::json::Array{1}, "expected string at task.facts[0]"},
      {"fast_math", 1, "expected boolean at task.fast_math"},
      {"workload", llvm::json::Array{},
       "expected 1 to 1024 cases at task.workload"},
      {"workload.0.weight", 0,
       "expected finite number above 0 at task.workload[0].weight"},
      {"workload.1.fills", llvm::json::Array{"zeros"},
       "expected one fill an argument at task.workload[1].fills"},
      {"workload.0.fills.2", "gauss",
       "expected a fill recipe, as normal(0, 1) or zeros at "
       "task.workload[0].fills[2]"},
  };
  for (const Refusal &refusal : refusals)
    EXPECT_EQ(
        readError<KernelTask>(
            with(toJSON(sampleTask()), refusal.path, refusal.value), "task"),
        refusal.error)
        << refusal.path.str();
  EXPECT_EQ(readError<KernelTask>(llvm::json::Array{}, "task"),
            "expected object when parsing task");
}

TEST(KernelTask, DamagedFormsAreRefusedOrRead) {
  expectNoDamageCrashes(sampleTask());
}

TEST(KernelTask, Caps) {
  KernelTask task = sampleTask();
  while (task.arguments.size() < 257)
    task.arguments.push_back(scalar("s" + std::to_string(task.arguments.size()),
                                    ElementType::I32, std::nullopt));
  EXPECT_EQ(readError<KernelTask>(toJSON(task), "task"),
            "expected at most 256 arguments at task.arguments");
  Argument deep = buffer("d", std::vector<int64_t>(33, 1),
                         std::vector<int64_t>(33, 1), Access::Read);
  EXPECT_EQ(readError<Argument>(toJSON(deep), "argument"),
            "expected at most 32 sizes at argument.sizes");
  task = sampleTask();
  task.facts.assign(4097, "f");
  EXPECT_EQ(readError<KernelTask>(toJSON(task), "task"),
            "expected at most 4096 facts at task.facts");
  task = sampleTask();
  task.workload.assign(1025, task.workload[0]);
  EXPECT_EQ(readError<KernelTask>(toJSON(task), "task"),
            "expected 1 to 1024 cases at task.workload");
}

TEST(KernelTask, FilesAreSealed) {
  const std::string text = printTask(sampleTask());
  llvm::Expected<KernelTask> task = parseTask(text);
  ASSERT_TRUE(bool(task)) << llvm::toString(task.takeError());
  EXPECT_EQ(print(toJSON(*task)), print(toJSON(sampleTask())));
  auto errorAfter = [&](llvm::StringRef from, llvm::StringRef to,
                        ErrorKind kind) {
    std::string edited = text;
    size_t at = edited.find(from);
    EXPECT_NE(at, std::string::npos) << from.str();
    llvm::Expected<KernelTask> task =
        parseTask(edited.replace(at, from.size(), to));
    if (task)
      return std::string();
    llvm::Error error = task.takeError();
    EXPECT_EQ(kindOf(error), kind);
    return llvm::toString(std::move(error));
  };
  EXPECT_NE(errorAfter("\"launch_mlir\": \"", "\"launch_mlir\": \"x",
                       ErrorKind::Corrupt)
                .find("it was changed"),
            std::string::npos);
  EXPECT_EQ(errorAfter("sha256", "sha", ErrorKind::Corrupt),
            "it has no field 'sha256'");
  EXPECT_EQ(errorAfter("\"format_version\": 2", "\"format_version\": 1",
                       ErrorKind::Unsupported),
            "expected format version 2 at task.format_version");
  EXPECT_EQ(errorAfter(text, "[]", ErrorKind::Corrupt),
            "expected object when parsing task");
  EXPECT_EQ(errorAfter(text, "{}", ErrorKind::Corrupt),
            "missing value at task.format_version");
}

TEST(KernelTask, BrokenUtf8IsReplaced) {
  KernelTask task = sampleTask();
  task.kernelMlir = "a\xff";
  EXPECT_EQ(roundTrip(task), print(toJSON(task)));
  EXPECT_NE(print(toJSON(task)).find("a\xef\xbf\xbd"), std::string::npos);
}

} // namespace
