// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The PTX inside a fat binary, as `fatbinary` of CUDA 11 to 13 writes them: a
// header of 16 bytes, then entries, each with a header of its own. PTX may be
// packed, by LZ4 or (from CUDA 12.9 on) zstd; the latter's library is loaded at
// run time and only for such an image.
//
// The bytes are hostile: every offset is checked against what is there.
//
//===----------------------------------------------------------------------===//

#include "fsr/Backend/VirtualBackend.h"
#include "fsr/Support/Error.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"

#include <dlfcn.h>

using namespace fsr;
namespace endian = llvm::support::endian;

namespace {

constexpr uint32_t containerMagic = 0xBA55ED50;
constexpr size_t containerHeader = 16;
/// Of an entry: kind, version, bytes of header, of payload, packed bytes…
constexpr size_t leastEntryHeader = 64;
enum : uint16_t { KindPtx = 1, KindElf = 2 };
enum : uint64_t { PackedLz4 = 0x2000, PackedZstd = 0x8000 };
constexpr uint64_t mostPtxBytes = uint64_t(256) << 20;

llvm::Error broken(const llvm::Twine &what) {
  return makeError(ErrorKind::BadInput, "a broken fat binary: " + what);
}

/// An LZ4 block of known size.
llvm::Expected<std::string> unpackLz4(llvm::StringRef from, uint64_t bytes) {
  std::string to;
  to.reserve(bytes);
  size_t at = 0;
  auto length = [&](size_t nibble) -> std::optional<size_t> {
    size_t total = nibble;
    if (nibble != 15)
      return total;
    while (at < from.size()) {
      uint8_t more = from[at++];
      total += more;
      if (more != 255)
        return total;
      if (total > mostPtxBytes)
        break;
    }
    return std::nullopt;
  };
  while (at < from.size()) {
    uint8_t token = from[at++];
    auto literals = length(token >> 4);
    if (!literals || *literals > from.size() - at ||
        *literals > bytes - to.size())
      return broken("packed PTX that does not unpack");
    to += from.substr(at, *literals);
    at += *literals;
    if (to.size() == bytes)
      return to;
    if (from.size() - at < 2)
      break;
    size_t back = endian::read16le(from.data() + at);
    at += 2;
    auto match = length(token & 15);
    if (!match || !back || back > to.size() || *match + 4 > bytes - to.size())
      return broken("packed PTX that does not unpack");
    // What is copied may be what this copy wrote.
    for (size_t i = 0; i < *match + 4; ++i)
      to += to[to.size() - back];
  }
  return broken("packed PTX that ends early");
}

llvm::Expected<std::string> unpackZstd(llvm::StringRef from, uint64_t bytes) {
  using Decompress = size_t (*)(void *, size_t, const void *, size_t);
  static const auto decompress = []() -> Decompress {
    void *library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
    return library
               ? reinterpret_cast<Decompress>(dlsym(library, "ZSTD_decompress"))
               : nullptr;
  }();
  if (!decompress)
    return makeError(ErrorKind::Unavailable,
                     "the PTX of the fat binary is packed with zstd, and "
                     "libzstd.so.1 cannot be loaded");
  std::string to(bytes, '\0');
  if (decompress(to.data(), to.size(), from.data(), from.size()) != bytes)
    return broken("packed PTX that does not unpack");
  return to;
}

/// The number of "sm_90a"; 0 where there is none.
unsigned numberOf(llvm::StringRef chip) {
  unsigned number = 0;
  if (!chip.consume_front("sm_") ||
      chip.take_while(llvm::isDigit).getAsInteger(10, number))
    return 0;
  return number;
}

} // namespace

llvm::Expected<std::string> fsr::findPtx(llvm::StringRef image,
                                         llvm::StringRef chip) {
  if (image.starts_with("\x7f"
                        "ELF"))
    return makeError(ErrorKind::Unsupported,
                     "the image is a cubin; the virtual device runs PTX");
  if (image.size() < containerHeader ||
      endian::read32le(image.data()) != containerMagic) {
    // Text may end in NULs.
    llvm::StringRef text = image.rtrim('\0');
    if (text.contains('\0'))
      return makeError(ErrorKind::BadInput,
                       "the image is neither PTX nor a fat binary");
    return text.str();
  }
  size_t header = endian::read16le(image.data() + 6);
  uint64_t bytes = endian::read64le(image.data() + 8);
  if (header < containerHeader || header > image.size() ||
      bytes > image.size() - header)
    return broken("it says it has " + llvm::Twine(bytes) + " bytes, and has " +
                  llvm::Twine(image.size()));
  llvm::StringRef rest = image.substr(header, bytes);
  const unsigned most = numberOf(chip);
  unsigned bestArch = 0;
  llvm::StringRef best, others;
  uint64_t bestFlags = 0, bestBytes = 0;
  while (rest.size() >= leastEntryHeader) {
    const char *entry = rest.data();
    uint16_t kind = endian::read16le(entry);
    uint64_t entryHeader = endian::read32le(entry + 4);
    uint64_t payload = endian::read64le(entry + 8);
    uint64_t packed = endian::read32le(entry + 16);
    unsigned arch = endian::read32le(entry + 28);
    uint64_t flags = endian::read64le(entry + 40);
    uint64_t unpacked = endian::read64le(entry + 56);
    if (entryHeader < leastEntryHeader || entryHeader > rest.size() ||
        payload > rest.size() - entryHeader || packed > payload)
      return broken("an entry that leaves it");
    if (kind == KindPtx && arch <= most && arch >= bestArch) {
      bestArch = arch;
      bestFlags = flags & (PackedLz4 | PackedZstd);
      best = rest.substr(entryHeader, bestFlags ? packed : payload);
      bestBytes = unpacked;
    } else if (kind == KindPtx) {
      others = "for another chip";
    }
    rest = rest.drop_front(entryHeader + payload);
  }
  if (best.empty())
    return makeError(ErrorKind::Unsupported,
                     others.empty()
                         ? "the fat binary holds no PTX, which is what the "
                           "virtual device runs"
                         : "the fat binary holds no PTX that a " + chip +
                               " takes, only " + others);
  if (!bestFlags)
    return best.take_until([](char c) { return !c; }).str();
  if (!bestBytes || bestBytes > mostPtxBytes)
    return broken("packed PTX of " + llvm::Twine(bestBytes) + " bytes");
  auto text = bestFlags & PackedZstd ? unpackZstd(best, bestBytes)
                                     : unpackLz4(best, bestBytes);
  if (!text)
    return text.takeError();
  return llvm::StringRef(*text).take_until([](char c) { return !c; }).str();
}
