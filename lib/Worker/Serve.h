// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What of the request loop is worth a test of its own: the words of an error.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_WORKER_SERVE_H
#define FSR_LIB_WORKER_SERVE_H

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace fsr {

/// The event that answers a request with an error: of several the kind of the
/// first, which led to the others, and what all of them say. `dead` is set
/// where one of them says that the context is.
llvm::json::Object errorEvent(llvm::Error error, bool &dead);

} // namespace fsr

#endif // FSR_LIB_WORKER_SERVE_H
