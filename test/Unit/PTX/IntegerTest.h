// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Instructions run over many operands at once. A test writes them with sources
// %a, %b, %c, %d and results %x, %y, says how wide each is, and what the answer
// is for given bits; a record of memory holds the operands of a thread. All is
// done by the handlers for plain CPUs and, where the CPU can, by the wide ones,
// by whole warps and by some of their lanes.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_TEST_UNIT_PTX_INTEGERTEST_H
#define FSR_TEST_UNIT_PTX_INTEGERTEST_H

#include "../../../lib/PTX/Integer.h"

#include "gtest/gtest.h"

#include <cstring>
#include <functional>

namespace fsr::ptx {

using Operands = std::array<uint64_t, 4>;
using Results = std::array<uint64_t, 2>;

class IntegerTest : public testing::Test {
protected:
  struct Record {
    Operands in{};
    Results out{};
  };

  void SetUp() override { gpu = makeVirtualGpu(VirtualGpuOptions()); }
  void TearDown() override { takesWideIntegers() = hasWideVectors(); }

  /// The lanes that go on where not all do.
  static constexpr uint32_t someLanes = 0x5a5a93c5;

  static std::string typeOf(unsigned width) {
    return width == 1 ? "pred" : "b" + std::to_string(width);
  }

  /// Widths: 1 (a predicate, of a lowest bit), 16, 32, 64.
  static std::string makeKernel(llvm::StringRef text,
                                llvm::ArrayRef<unsigned> sources,
                                llvm::ArrayRef<unsigned> results,
                                uint32_t lanes = ~uint32_t(0)) {
    std::string ptx = ".version 8.8\n.target sm_90\n.address_size 64\n"
                      ".visible .entry k(.param .u64 p) {\n"
                      ".reg .b64 %at, %base;\n.reg .b32 %i, %j, %n;\n"
                      ".reg .pred %q;\n.reg .b16 %h<8>;\n.reg .b32 %r<8>;\n"
                      ".reg .b64 %l<8>;\n.reg .pred %p<8>;\n"
                      "ld.param.u64 %base, [p];\nmov.u32 %i, %ctaid.x;\n"
                      "mov.u32 %j, %tid.x;\nmov.u32 %n, %ntid.x;\n"
                      "mad.lo.u32 %i, %i, %n, %j;\n"
                      "mad.wide.u32 %at, %i, 48, %base;\n";
    auto declare = [&](char name, unsigned width) {
      ptx += ".reg ." + typeOf(width) + " %" + name + ";\n";
    };
    for (size_t i = 0; i < sources.size(); ++i) {
      char name = "abcd"[i];
      std::string at = "[%at+" + std::to_string(8 * i) + "];\n";
      declare(name, sources[i]);
      if (sources[i] == 1)
        ptx +=
            "ld.global.u32 %j, " + at + "setp.ne.u32 %" + name + ", %j, 0;\n";
      else
        ptx += "ld.global." + typeOf(sources[i]) + " %" + name + ", " + at;
    }
    for (size_t i = 0; i < results.size(); ++i)
      declare("xy"[i], results[i]);
    if (~lanes)
      ptx += "mov.u32 %j, %lanemask_eq;\nand.b32 %j, %j, " +
             std::to_string(lanes) + ";\nsetp.eq.u32 %q, %j, 0;\n@%q exit;\n";
    ptx += text.str() + "\n";
    for (size_t i = 0; i < results.size(); ++i) {
      char name = "xy"[i];
      std::string at = "[%at+" + std::to_string(32 + 8 * i) + "], %";
      if (results[i] == 1)
        ptx += std::string("selp.b32 %j, 1, 0, %") + name +
               ";\nst.global.b32 " + at + "j;\n";
      else
        ptx += "st.global." + typeOf(results[i]) + " " + at + name + ";\n";
    }
    return ptx + "ret;\n}\n";
  }

  /// Runs the text for all of `operands`; bits beyond a width are none.
  std::vector<Record> evaluate(llvm::StringRef text,
                               llvm::ArrayRef<unsigned> sources,
                               llvm::ArrayRef<unsigned> results,
                               llvm::ArrayRef<Operands> operands,
                               uint32_t lanes) {
    // Whole blocks; operands of zero fill the last.
    std::vector<Record> records(operands.size());
    for (size_t i = 0; i < operands.size(); ++i)
      records[i].in = operands[i];
    constexpr size_t block = 128;
    size_t blocks = (records.size() + block - 1) / block;
    records.resize(blocks * block);
    size_t bytes = records.size() * sizeof(Record);
    llvm::Expected<unsigned> module =
        gpu->loadModule(makeKernel(text, sources, results, lanes));
    if (!module) {
      ADD_FAILURE() << text.str() << ": " << toString(module.takeError());
      return {};
    }
    uint64_t address = cantFail(gpu->allocate(bytes));
    cantFail(gpu->write(address, records.data(), bytes));
    uint8_t params[8];
    std::memcpy(params, &address, 8);
    LaunchShapeOf shape{
        {unsigned(blocks), 1, 1}, {block, 1, 1}, {1, 1, 1}, 0, false};
    llvm::Expected<LaunchResult> result =
        gpu->launch(*module, "k", shape, params, LaunchOptions());
    if (!result) {
      ADD_FAILURE() << text.str() << ": " << toString(result.takeError());
      return {};
    }
    EXPECT_TRUE(result->completed);
    for (const Finding &finding : result->findings)
      ADD_FAILURE() << finding.text();
    cantFail(gpu->read(records.data(), address, bytes));
    cantFail(gpu->release(address));
    cantFail(gpu->unloadModule(*module));
    records.resize(operands.size());
    return records;
  }

  /// Why the text is not supported.
  std::string refusal(llvm::StringRef text, llvm::ArrayRef<unsigned> sources,
                      llvm::ArrayRef<unsigned> results) {
    llvm::Expected<unsigned> module =
        gpu->loadModule(makeKernel(text, sources, results));
    if (!module)
      return toString(module.takeError());
    llvm::Expected<LaunchResult> result =
        gpu->launch(*module, "k", LaunchShapeOf(), std::vector<uint8_t>(8),
                    LaunchOptions());
    if (!result)
      return toString(result.takeError());
    return "";
  }

  using Truth = std::function<Results(const Operands &)>;
  using One = std::function<uint64_t(uint64_t, uint64_t, uint64_t, uint64_t)>;

  void checkOnce(llvm::StringRef text, llvm::ArrayRef<unsigned> sources,
                 llvm::ArrayRef<unsigned> results,
                 llvm::ArrayRef<Operands> operands, const Truth &truth,
                 uint32_t lanes) {
    unsigned shown = 0;
    std::vector<Record> records =
        evaluate(text, sources, results, operands, lanes);
    for (size_t at = 0; at < records.size(); ++at) {
      const Record &record = records[at];
      Results wanted{};
      if (lanes >> (at % 32) & 1)
        wanted = truth(record.in);
      for (size_t i = 0; i < results.size() && shown < 3; ++i) {
        if (record.out[i] == (wanted[i] & maskOf(results[i])))
          continue;
        ++shown;
        ADD_FAILURE() << text.str() << " of " << std::hex << record.in[0] << " "
                      << record.in[1] << " " << record.in[2] << " "
                      << record.in[3] << ": result " << i << " is "
                      << record.out[i] << ", expected "
                      << (wanted[i] & maskOf(results[i])) << ", lanes " << lanes
                      << ", wide " << takesWideIntegers();
      }
    }
  }

  void check(llvm::StringRef text, llvm::ArrayRef<unsigned> sources,
             llvm::ArrayRef<unsigned> results,
             llvm::ArrayRef<Operands> operands, const Truth &truth) {
    for (bool wide : {false, true}) {
      if (wide && !hasWideVectors())
        continue;
      takesWideIntegers() = wide;
      for (uint32_t lanes : {~uint32_t(0), someLanes})
        checkOnce(text, sources, results, operands, truth, lanes);
    }
  }
  /// With one result, over all tuples of values that matter.
  void check(llvm::StringRef text, llvm::ArrayRef<unsigned> sources,
             unsigned result, const One &truth) {
    check(text, sources, result, tuples(sources),
          [&](const Operands &in) -> Results {
            return {truth(in[0], in[1], in[2], in[3]), 0};
          });
  }

  static uint64_t maskOf(unsigned width) {
    return ~uint64_t(0) >> (64 - width);
  }

  /// Ends of ranges, powers of two, small counts, and a few without a pattern.
  static std::vector<uint64_t> valuesOf(unsigned width, size_t most) {
    std::vector<uint64_t> values;
    auto add = [&](uint64_t value) {
      value &= maskOf(width);
      if (!llvm::is_contained(values, value))
        values.push_back(value);
    };
    if (width == 1)
      return {0, 1};
    uint64_t top = uint64_t(1) << (width - 1);
    for (uint64_t value : {uint64_t(0),
                           uint64_t(1),
                           ~uint64_t(0),
                           top,
                           top - 1,
                           top + 1,
                           uint64_t(2),
                           uint64_t(31),
                           uint64_t(32),
                           uint64_t(0) - 2,
                           uint64_t(33),
                           uint64_t(63),
                           uint64_t(64),
                           uint64_t(0xff),
                           uint64_t(0x8000),
                           uint64_t(0x7fff),
                           uint64_t(0x80008000),
                           uint64_t(0x123456789abcdef0),
                           uint64_t(0xfedcba9876543210),
                           uint64_t(0x00ff00ff00ff00ff),
                           uint64_t(0x800000),
                           uint64_t(16),
                           uint64_t(7),
                           uint64_t(0x80000000),
                           uint64_t(0x7fffffff80000001)})
      add(value);
    uint64_t state = 88172645463325252u;
    while (values.size() < most) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      add(state);
    }
    values.resize(std::min(values.size(), most));
    return values;
  }
  static std::vector<Operands> tuples(llvm::ArrayRef<unsigned> widths) {
    static constexpr size_t most[] = {600, 40, 18, 9};
    std::vector<Operands> tuples = {Operands{}};
    for (size_t i = 0; i < widths.size(); ++i) {
      std::vector<Operands> longer;
      for (uint64_t value : valuesOf(widths[i], most[widths.size() - 1]))
        for (Operands tuple : tuples) {
          tuple[i] = value;
          longer.push_back(tuple);
        }
      tuples = std::move(longer);
    }
    return tuples;
  }

  std::unique_ptr<VirtualGpu> gpu;
};

} // namespace fsr::ptx

#endif // FSR_TEST_UNIT_PTX_INTEGERTEST_H
