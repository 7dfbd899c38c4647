// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one error class of FSR. An error means that the world failed (a file, a
// process, a device, bad input); a candidate that is no good is a `Verdict`.
// Messages are lower case without a full stop and say what, where, got and
// wanted; a layer that knows more puts a few words in front with `addContext`.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_ERROR_H
#define FSR_SUPPORT_ERROR_H

#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"

#include <string>

namespace fsr {

enum class ErrorKind {
  BadInput,    ///< What the user gave cannot be used.
  Unavailable, ///< A device, tool, server or file cannot be reached.
  TimedOut,    ///< A limit of time was passed.
  Corrupt,     ///< Stored or received bytes are not what they must be.
  Unsupported, ///< Understood, but not done.
  OverBudget,  ///< It could pass a cap on spending, and was not begun.
};

class FsrError : public llvm::ErrorInfo<FsrError> {
public:
  static char ID;

  FsrError(ErrorKind kind, std::string message)
      : kind(kind), message(std::move(message)) {}

  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;

  ErrorKind kind;
  std::string message;
};

llvm::Error makeError(ErrorKind kind, const llvm::Twine &message);

/// Puts "`context`: " in front of the message; the kind stays. Success stays
/// success.
llvm::Error addContext(llvm::Error error, const llvm::Twine &context);

/// The kind of the first FsrError in `error`, `Unavailable` for a foreign
/// error. Does not consume.
ErrorKind kindOf(const llvm::Error &error);

} // namespace fsr

#endif // FSR_SUPPORT_ERROR_H
