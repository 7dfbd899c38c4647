// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What is read off PTX, also where it cannot be read.
//
//===----------------------------------------------------------------------===//

#include "PtxFacts.h"

#include "gtest/gtest.h"

using namespace fsr;

TEST(PtxFactsTest, APointerIsNoVariable) {
  for (llvm::StringRef none :
       {"", "ld.global.f32 %f1, [%rd1];", "cvta.to.global.u64 %rd1, %rd2;",
        ".visible .entry k(\n.param .u64 .ptr .global .align 4 x,\n"
        "\t.param .u64 .ptr\t.global .align 4 y)",
        "isspacep.global %p1, %rd1;", ".globally"})
    EXPECT_FALSE(mayDeclareGlobal(none)) << none.str();
}

TEST(PtxFactsTest, WhatMayDeclareAVariable) {
  for (llvm::StringRef one :
       {".global .align 4 .u32 state;", ".visible .global .u32 state;",
        "\t.global\t.u32 state;", ".global.align 4 .u32 state;", "}.global\n",
        // What stands before it is of a comment, or of another line.
        "/* .param .ptr */ .global .u32 state;",
        "// .param .ptr\n.global .u32 state;",
        ".param .u64 .ptr .global .align 4 x) {\n .global .u32 state;",
        ".ptr .global .u32 state;"})
    EXPECT_TRUE(mayDeclareGlobal(one)) << one.str();
}
