// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Writing to a pipe or socket whose reader may be gone, in a process that
// leaves SIGPIPE at its default and whose handlers are not ours to change.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_SUPPORT_SIGPIPE_H
#define FSR_LIB_SUPPORT_SIGPIPE_H

#include <cstddef>
#include <sys/types.h>

namespace fsr {

/// send(2) with MSG_NOSIGNAL and MSG_DONTWAIT on a socket; on anything else
/// write(2) with SIGPIPE blocked in this thread and consumed if it was raised.
/// Returns and sets errno as they do.
ssize_t writeNoSignal(int fd, const char *bytes, size_t size);

} // namespace fsr

#endif // FSR_LIB_SUPPORT_SIGPIPE_H
