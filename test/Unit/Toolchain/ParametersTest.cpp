// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a kernel takes, read from its PTX; and a plan that passes otherwise.
//
//===----------------------------------------------------------------------===//

#include "ToolchainTesting.h"

#include "Contract.h"

using namespace fsr;
using namespace fsr::testing;

TEST(Parameters, OfEachForm) {
  const char *ptx =
      ".visible .entry longer(\n .param .u64 longer_param_0\n)\n{}\n"
      ".visible .entry k(\n"
      "\t.param .u64 .ptr .align 1 k_param_0,\n"
      "\t.param .f32 k_param_1,\n"
      "\t.param .align 8 .b8 k_param_2[24],\n"
      "\t.param .u8 k_param_3\n)\n{}\n"
      ".visible .entry none()\n{}\n"
      ".visible .entry bare\n{}\n";
  EXPECT_EQ(parameterBytes(ptx, "k"), (std::vector<unsigned>{8, 4, 24, 1}));
  EXPECT_EQ(parameterBytes(ptx, "longer"), (std::vector<unsigned>{8}));
  EXPECT_EQ(parameterBytes(ptx, "long"), std::nullopt);
  EXPECT_EQ(parameterBytes(ptx, "none"), std::vector<unsigned>());
  EXPECT_EQ(parameterBytes(ptx, "bare"), std::vector<unsigned>());
  EXPECT_EQ(parameterBytes(".entry k(.param .texref t)", "k"), std::nullopt);
}
