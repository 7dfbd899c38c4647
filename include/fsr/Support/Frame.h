// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What travels between FSR and its workers: JSON length (u32), blob length
// (u64), both little endian, then the JSON, then the blob. Both ends treat the
// other as hostile: lengths are capped before anything is allocated.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_SUPPORT_FRAME_H
#define FSR_SUPPORT_FRAME_H

#include "fsr/Support/Deadline.h"
#include "fsr/Support/Error.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fsr {

struct Frame {
  llvm::json::Object header;
  std::string blob;
};

struct FrameLimits {
  uint32_t headerBytes = 16u << 20;
  uint64_t blobBytes = uint64_t(256) << 20;
};

/// The stream ended in the middle of a frame: Corrupt, and perhaps no fault of
/// what wrote it but its end.
class FrameCutOff : public llvm::ErrorInfo<FrameCutOff, FsrError> {
public:
  static char ID;
  using ErrorInfo::ErrorInfo;
};

/// Writes one frame to a socket or pipe without raising SIGPIPE. Errors:
/// Unavailable (the peer is gone), TimedOut.
llvm::Error writeFrame(int fd, const Frame &frame, Deadline deadline = {});

/// Reads one frame; nothing at a clean end of the stream. Errors: Corrupt (over
/// a cap, no JSON object, cut off in the middle: FrameCutOff), TimedOut.
llvm::Expected<std::optional<Frame>> readFrame(int fd, Deadline deadline = {},
                                               const FrameLimits &limits = {});

} // namespace fsr

#endif // FSR_SUPPORT_FRAME_H
