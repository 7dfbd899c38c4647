// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Element types, names that device code may use, targets and hex doubles.
//
//===----------------------------------------------------------------------===//

#include "fsr/Core/Types.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace fsr;

namespace {

constexpr ElementType allTypes[] = {
    ElementType::I1,   ElementType::I8,  ElementType::I16,
    ElementType::I32,  ElementType::I64, ElementType::F16,
    ElementType::BF16, ElementType::F32, ElementType::F64};

TEST(Types, NamesRoundTrip) {
  for (ElementType type : allTypes)
    EXPECT_EQ(parseElementType(nameOf(type)), type) << nameOf(type).str();
  EXPECT_FALSE(parseElementType("index"));
  EXPECT_FALSE(parseElementType(""));
  EXPECT_FALSE(parseElementType("F32"));
}

TEST(Types, SizesAndSpelling) {
  EXPECT_EQ(byteSize(ElementType::I1), 1u);
  EXPECT_EQ(byteSize(ElementType::BF16), 2u);
  EXPECT_EQ(byteSize(ElementType::F32), 4u);
  EXPECT_EQ(byteSize(ElementType::I64), 8u);
  EXPECT_EQ(cudaName(ElementType::BF16), "__nv_bfloat16");
  EXPECT_EQ(cudaName(ElementType::F16), "__half");
  EXPECT_EQ(cudaName(ElementType::I64), "long long");
  EXPECT_TRUE(isFloat(ElementType::F16));
  EXPECT_FALSE(isFloat(ElementType::I32));
}

TEST(Types, UnitRoundoff) {
  EXPECT_EQ(unitRoundoff(ElementType::F16), std::ldexp(1.0, -11));
  EXPECT_EQ(unitRoundoff(ElementType::BF16), std::ldexp(1.0, -8));
  EXPECT_EQ(unitRoundoff(ElementType::F32), std::ldexp(1.0, -24));
  EXPECT_EQ(unitRoundoff(ElementType::F64), std::ldexp(1.0, -53));
  EXPECT_EQ(unitRoundoff(ElementType::I8), 0.0);
}

TEST(Types, Names) {
  EXPECT_TRUE(isCIdentifier("a_1"));
  EXPECT_TRUE(isCIdentifier("__x"));
  for (llvm::StringRef bad : {"", "1a", "a-b", "a.b", "a b", "\xc3\xa4", "a;"})
    EXPECT_FALSE(isCIdentifier(bad)) << bad.str();
  EXPECT_FALSE(isCIdentifier(std::string(256, 'a')));
  EXPECT_TRUE(isUsableName("TILE"));
  EXPECT_TRUE(isUsableName("_x"));
  for (llvm::StringRef bad :
       {"__x", "__global__", "int", "float", "alignas", "threadIdx",
        "thread_local", "xor_eq", "xor", "new", "and", "size_t", "while",
        "int64_t", "const_cast", "consteval", "warpSize", "reinterpret_cast"})
    EXPECT_FALSE(isUsableName(bad)) << bad.str();
}

TEST(Types, TargetsParse) {
  for (llvm::StringRef good :
       {"sm_75", "sm_90", "sm_90a", "sm_100f", "sm_121"}) {
    llvm::Expected<Target> target = Target::parse(good);
    ASSERT_TRUE(bool(target)) << good.str();
    EXPECT_EQ(target->chip, good);
  }
  EXPECT_EQ(Target{"sm_90a"}.family(), "sm_90");
  EXPECT_EQ(Target{"sm_90"}.family(), "sm_90");
  EXPECT_EQ(Target{"sm_100f"}.family(), "sm_100");
  EXPECT_EQ(Target{"sm_90a"}.computeCapability(), 90u);
  EXPECT_EQ(Target{"sm_121"}.computeCapability(), 121u);
}

TEST(Types, TargetsRefused) {
  for (llvm::StringRef bad :
       {"", "sm_", "sm_a", "sm_9", "sm_90af", "sm_90b", "sm90", "SM_90",
        "sm_1000", "sm_90 ", "sm_+9", "sm_09", "../sm_90", "compute_90"}) {
    llvm::Expected<Target> target = Target::parse(bad);
    ASSERT_FALSE(bool(target)) << bad.str();
    EXPECT_EQ(llvm::toString(target.takeError()),
              "got target '" + bad.str() +
                  "', wanted sm_ and a compute capability, as sm_90 or sm_90a");
  }
}

TEST(Types, HexDoubles) {
  EXPECT_EQ(doubleToHex(1.0), "3ff0000000000000");
  EXPECT_EQ(doubleToHex(0.0), "0000000000000000");
  EXPECT_EQ(doubleToHex(-0.0), "8000000000000000");
  for (double value : {0.0, -0.0, 1.0 / 3, -1e308, 5e-324,
                       std::numeric_limits<double>::infinity(),
                       -std::numeric_limits<double>::infinity()}) {
    std::optional<double> back = doubleFromHex(doubleToHex(value));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, value);
    EXPECT_EQ(std::signbit(*back), std::signbit(value));
  }
  EXPECT_TRUE(std::isnan(*doubleFromHex("7ff8000000000001")));
  EXPECT_EQ(doubleToHex(*doubleFromHex("7ff8000000000001")),
            "7ff8000000000001");
  for (llvm::StringRef bad :
       {"", "3ff", "3ff00000000000000", "3ff000000000000g", "0x3ff00000000000",
        "-ff0000000000000"})
    EXPECT_FALSE(doubleFromHex(bad)) << bad.str();
}

} // namespace
