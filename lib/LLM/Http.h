// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// POSTs in flight, on one thread. Says how each ended and nothing about what it
// means: retries, money and the form of an answer are for those who use this.
//
// Each request has a connection of its own. On one that is used again a server
// may close just as a request goes out, and libcurl would then send it twice
// without a word; what is paid for twice has to be counted twice.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_LIB_LLM_HTTP_H
#define FSR_LIB_LLM_HTTP_H

#include "llvm/Support/Error.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsr {

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers; ///< "Name: value".
  std::string body;
};

struct HttpReply {
  enum class End {
    Complete, ///< A status and a whole body.
    Broken,   ///< No connection, or it broke off.
    Refused,  ///< Cannot be otherwise next time: a certificate that is not
              ///< trusted, a wrong address.
    TimedOut,
    TooLong, ///< The body passed the cap.
    Stopped, ///< By abandonAll.
  };
  End end = End::Broken;
  bool sent = false; ///< The request, or a part of it, went out.
  std::string why;   ///< Where it is not complete, as a message.
  int64_t status = 0;
  std::string body;
  std::optional<std::chrono::milliseconds> retryAfter;
};

class HttpPool {
public:
  struct Settings {
    std::chrono::milliseconds timeout;
    size_t maxBodyBytes;
  };

  static llvm::Expected<std::unique_ptr<HttpPool>>
  create(const Settings &settings);
  HttpPool(const HttpPool &) = delete;
  HttpPool &operator=(const HttpPool &) = delete;
  ~HttpPool();

  void start(size_t id, HttpRequest request);
  size_t inFlight() const;

  /// Moves bytes, and waits up to `wait` for something to do; one request that
  /// has ended, or nothing.
  std::optional<std::pair<size_t, HttpReply>>
  turn(std::chrono::milliseconds wait);

  /// For time in which the user of this did something else.
  void extendDeadlines(std::chrono::steady_clock::duration by);

  /// Breaks off everything; `turn` then reports each as Stopped.
  void abandonAll();

private:
  struct Impl;
  explicit HttpPool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Nothing, or why `url` cannot be a base address, as a message.
std::optional<std::string> findUrlFault(llvm::StringRef url);

/// An address for messages: without user, password and query.
std::string printableUrl(llvm::StringRef url);

} // namespace fsr

#endif // FSR_LIB_LLM_HTTP_H
