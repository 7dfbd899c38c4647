// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each conversion is checked and then given to the host's snprintf with a value
// of the type that it names, so the format is never trusted. Width and
// precision are capped.
//
//===----------------------------------------------------------------------===//

#include "Printf.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

namespace fsr::ptx {

namespace {
class Formatter {
public:
  Formatter(llvm::StringRef format,
            llvm::function_ref<bool(uint64_t, void *, size_t)> read,
            llvm::function_ref<std::string(uint64_t)> readText)
      : format(format), read(read), readText(readText) {}

  std::string run() {
    while (at < format.size()) {
      if (format[at] != '%') {
        text += format[at++];
        continue;
      }
      size_t start = at;
      if (!convert())
        text += format.slice(start, at);
    }
    return std::move(text);
  }

private:
  static constexpr int mostWidth = 4096;

  template <typename T>
  T value() {
    T result{};
    offset = (offset + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    if (!read(offset, &result, sizeof(T)))
      result = T{};
    offset += sizeof(T);
    return result;
  }
  int number() {
    if (at < format.size() && format[at] == '*') {
      ++at;
      return std::clamp(value<int>(), -mostWidth, mostWidth);
    }
    int result = 0;
    while (at < format.size() && format[at] >= '0' && format[at] <= '9')
      result = std::min(result * 10 + (format[at++] - '0'), mostWidth);
    return result;
  }
  template <typename T>
  void print(const std::string &conversion, int width, int precision,
             T argument) {
    auto make = [&](char *to, size_t size) {
      // The conversion is ours: `%`, flags, `*.*`, length, letter.
      return precision >= 0
                 ? std::snprintf(to, size, conversion.c_str(), width, precision,
                                 argument)
                 : std::snprintf(to, size, conversion.c_str(), width, argument);
    };
    int size = make(nullptr, 0);
    if (size <= 0)
      return;
    std::vector<char> buffer(size_t(size) + 1);
    make(buffer.data(), buffer.size());
    text.append(buffer.data(), size_t(size));
  }
  /// False: it is no conversion; `at` is behind it.
  bool convert() {
    ++at;
    std::string flags;
    while (at < format.size() && std::strchr("-+ #0", format[at]) &&
           flags.size() < 8)
      flags += format[at++];
    int width = number(), precision = -1;
    if (at < format.size() && format[at] == '.') {
      ++at;
      precision = number();
    }
    std::string length;
    while (at < format.size() && std::strchr("hlLjzt", format[at]) &&
           length.size() < 2)
      length += format[at++];
    if (at >= format.size())
      return false;
    char letter = format[at++];
    bool isLong = length == "l" || length == "ll" || length == "j" ||
                  length == "z" || length == "t";
    std::string start = "%" + flags + "*" + (precision >= 0 ? ".*" : "");
    switch (letter) {
    case '%':
      text += '%';
      return true;
    case 'd':
    case 'i':
      if (isLong)
        print(start + "lld", width, precision, value<long long>());
      else if (length == "h")
        print(start + "d", width, precision, int(short(value<int>())));
      else if (length == "hh")
        print(start + "d", width, precision,
              int(static_cast<signed char>(value<int>())));
      else
        print(start + "d", width, precision, value<int>());
      return true;
    case 'u':
    case 'x':
    case 'X':
    case 'o':
      if (isLong)
        print(start + "ll" + letter, width, precision,
              value<unsigned long long>());
      else if (length == "h")
        print(start + letter, width, precision,
              unsigned(static_cast<unsigned short>(value<unsigned>())));
      else if (length == "hh")
        print(start + letter, width, precision,
              unsigned(static_cast<unsigned char>(value<unsigned>())));
      else
        print(start + letter, width, precision, value<unsigned>());
      return true;
    case 'c':
      print(start + "c", width, precision, value<int>());
      return true;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      print(start + letter, width, precision, value<double>());
      return true;
    case 'p':
      text += "0x";
      print("%0*llx", 0, -1, value<unsigned long long>());
      return true;
    case 's': {
      std::string argument = readText(value<unsigned long long>());
      print(start + "s", width, precision, argument.c_str());
      return true;
    }
    default:
      return false;
    }
  }

  llvm::StringRef format;
  llvm::function_ref<bool(uint64_t, void *, size_t)> read;
  llvm::function_ref<std::string(uint64_t)> readText;
  size_t at = 0;
  uint64_t offset = 0;
  std::string text;
};
} // namespace

std::string
formatPrintf(llvm::StringRef format,
             llvm::function_ref<bool(uint64_t, void *, size_t)> read,
             llvm::function_ref<std::string(uint64_t)> readText) {
  return Formatter(format, read, readText).run();
}

} // namespace fsr::ptx
