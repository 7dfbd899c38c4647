// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The error class, and the deadline that most errors of time come from.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Error.h"
#include "fsr/Support/Deadline.h"

#include "gtest/gtest.h"

#include <climits>

using namespace fsr;

TEST(Error, KindAndMessage) {
  llvm::Error error = makeError(ErrorKind::Corrupt, "got a, wanted b");
  EXPECT_EQ(kindOf(error), ErrorKind::Corrupt);
  EXPECT_EQ(llvm::toString(std::move(error)), "got a, wanted b");
}

TEST(Error, ContextKeepsTheKind) {
  llvm::Error error =
      addContext(makeError(ErrorKind::TimedOut, "too late"), "worker 3");
  EXPECT_EQ(kindOf(error), ErrorKind::TimedOut);
  EXPECT_EQ(llvm::toString(std::move(error)), "worker 3: too late");
}

TEST(Error, ContextOfSuccessIsSuccess) {
  EXPECT_FALSE(addContext(llvm::Error::success(), "anything"));
}

TEST(Error, ForeignErrors) {
  llvm::Error error = llvm::createStringError("not ours");
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  error = addContext(std::move(error), "where");
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  EXPECT_EQ(llvm::toString(std::move(error)), "where: not ours");
}

TEST(Error, KindOfAListIsTheFirstOfOurs) {
  llvm::Error error =
      llvm::joinErrors(llvm::createStringError("not ours"),
                       llvm::joinErrors(makeError(ErrorKind::BadInput, "a"),
                                        makeError(ErrorKind::Corrupt, "b")));
  EXPECT_EQ(kindOf(error), ErrorKind::BadInput);
  EXPECT_EQ(llvm::toString(addContext(std::move(error), "in")),
            "in: not ours\nin: a\nin: b");
}

TEST(Error, ErrorCode) {
  EXPECT_EQ(llvm::errorToErrorCode(makeError(ErrorKind::TimedOut, "x")),
            std::make_error_code(std::errc::timed_out));
}

TEST(Deadline, Never) {
  EXPECT_EQ(Deadline().pollTimeout(), -1);
  EXPECT_FALSE(Deadline().passed());
  Deadline longest = Deadline::in(std::chrono::milliseconds::max());
  EXPECT_EQ(longest.pollTimeout(), -1);
  EXPECT_FALSE(longest.passed());
}

TEST(Deadline, Passed) {
  Deadline deadline = Deadline::in(std::chrono::milliseconds(-5));
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.pollTimeout(), 0);
}

TEST(Deadline, RoundsUpAndFitsAnInt) {
  Deadline soon = Deadline::in(std::chrono::milliseconds(1000));
  int left = soon.pollTimeout();
  EXPECT_TRUE(soon.passed() || left >= 1);
  EXPECT_LE(left, 1000);
  EXPECT_EQ(Deadline::in(std::chrono::hours(24 * 365)).pollTimeout(), INT_MAX);
}
