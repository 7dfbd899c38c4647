// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Errors are taken apart by LLVM's handlers only, so joined lists and errors of
// LLVM's own libraries get their context too.
//
//===----------------------------------------------------------------------===//

#include "fsr/Support/Error.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <memory>
#include <optional>

using namespace fsr;

char FsrError::ID = 0;

void FsrError::log(llvm::raw_ostream &os) const { os << message; }

std::error_code FsrError::convertToErrorCode() const {
  switch (kind) {
  case ErrorKind::BadInput:
    return std::make_error_code(std::errc::invalid_argument);
  case ErrorKind::Unavailable:
    return std::make_error_code(std::errc::resource_unavailable_try_again);
  case ErrorKind::TimedOut:
    return std::make_error_code(std::errc::timed_out);
  case ErrorKind::Corrupt:
    return std::make_error_code(std::errc::bad_message);
  case ErrorKind::Unsupported:
    return std::make_error_code(std::errc::not_supported);
  case ErrorKind::OverBudget:
    return std::make_error_code(std::errc::operation_not_permitted);
  }
  llvm_unreachable("a kind that is not in the enum");
}

llvm::Error fsr::makeError(ErrorKind kind, const llvm::Twine &message) {
  return llvm::make_error<FsrError>(kind, message.str());
}

llvm::Error fsr::addContext(llvm::Error error, const llvm::Twine &context) {
  if (!error)
    return llvm::Error::success();
  std::string prefix = (context + ": ").str();
  return llvm::handleErrors(
      std::move(error),
      [&](std::unique_ptr<FsrError> info) -> llvm::Error {
        info->message.insert(0, prefix);
        return llvm::Error(std::move(info));
      },
      [&](const llvm::ErrorInfoBase &info) -> llvm::Error {
        return makeError(ErrorKind::Unavailable, prefix + info.message());
      });
}

ErrorKind fsr::kindOf(const llvm::Error &error) {
  std::optional<ErrorKind> first;
  llvm::visitErrors(error, [&](const llvm::ErrorInfoBase &info) {
    if (!first && info.isA<FsrError>())
      first = static_cast<const FsrError &>(info).kind;
  });
  return first.value_or(ErrorKind::Unavailable);
}
