// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What one run spent on one task: a file of lines that only grows. The ledger
// of the providers writes and reads it, whoever verifies a store reads it: one
// reader, so that both refuse the same. A file is opened below a folder that is
// open already, so that no link is followed. docs/formats/store.md, "Spending",
// is the reference.
//
//===----------------------------------------------------------------------===//

#ifndef FSR_CORE_SPENDINGFILE_H
#define FSR_CORE_SPENDINGFILE_H

#include "fsr/Support/Error.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace fsr {

struct Tokens {
  int64_t prompt = 0, answer = 0;

  int64_t sum() const { return prompt + answer; }
};

inline Tokens operator+(const Tokens &a, const Tokens &b) {
  return {a.prompt + b.prompt, a.answer + b.answer};
}

inline Tokens operator-(const Tokens &a, const Tokens &b) {
  return {a.prompt - b.prompt, a.answer - b.answer};
}

/// Of one call, and the most of any. A server that reports more is not
/// believed. Keeps the sums of any number of calls far from overflow.
constexpr int64_t mostTokens = int64_t(1) << 40;
constexpr double mostUsd = 1e12; ///< Of one call, likewise.

/// What a call takes.
struct Cost {
  Tokens tokens;
  std::optional<double> usd; ///< Nothing where no price was known.
};

/// A descriptor that is closed.
class OwnedFd {
public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd(fd) {}
  OwnedFd(OwnedFd &&other) : fd(std::exchange(other.fd, -1)) {}
  OwnedFd &operator=(OwnedFd &&other) {
    std::swap(fd, other.fd);
    return *this;
  }
  ~OwnedFd();

  explicit operator bool() const { return fd >= 0; }
  int operator*() const { return fd; }

private:
  int fd = -1;
};

/// The folder `name` below the open folder `parent`; no link is followed. No
/// descriptor, and errno, where it cannot be opened.
OwnedFd openFolderAt(int parent, const std::string &name);

/// As far as it was read.
struct SpendingFile {
  uint64_t offset = 0; ///< Behind the last whole line.
  unsigned lines = 0;
  std::map<int64_t, Cost> calls;
};

/// Why a file cannot be believed.
struct SpendingFault {
  ErrorKind kind = ErrorKind::Corrupt;
  unsigned line = 0; ///< From 1; 0: it is about the whole file.
  std::string why;
};

/// Whether a file of this name in a task's folder counts.
bool isSpendingName(llvm::StringRef name);

/// Reads what is new of the file `name` in the open folder `folder`.
std::optional<SpendingFault> readSpending(int folder, const std::string &name,
                                          SpendingFile &file);

/// The first line of a file.
std::string spendingHead(llvm::StringRef provider);

/// A line of a call, which the reader above takes whatever `cost` says: what is
/// beyond its bounds is written as the bound. `round` and `slot` from 1; 0:
/// left out.
std::string spendingLine(int64_t call, const Cost &cost, int64_t round = 0,
                         int64_t slot = 0);

} // namespace fsr

#endif // FSR_CORE_SPENDINGFILE_H
