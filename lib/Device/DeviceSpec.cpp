// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Commas, quotes and the numbers of GPUs in the texts that name devices.
//
//===----------------------------------------------------------------------===//

#include "DeviceSpec.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace fsr;

/// More are a mistake, and each is a process.
static constexpr size_t mostDevices = 256;

/// Where the device at the start of `text` ends. Quotes mean something in
/// commands only, and there what they mean to `splitCommandLine`.
static size_t endOfDevice(llvm::StringRef text) {
  if (!text.starts_with("exec:"))
    return std::min(text.find(','), text.size());
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\' && quote != '\'')
      ++i;
    else if (quote)
      quote = c == quote ? 0 : quote;
    else if (c == '\'' || c == '"')
      quote = c;
    else if (c == ',')
      return i;
  }
  return text.size();
}

static llvm::Error addDevice(llvm::StringRef device, llvm::StringRef spec,
                             std::vector<std::string> &devices) {
  auto add = [&](std::string name) -> llvm::Error {
    if (llvm::StringRef(name).starts_with("cuda:") &&
        llvm::is_contained(devices, name))
      return makeError(ErrorKind::BadInput,
                       "device '" + spec + "' names " + name +
                           " twice: kernels that are timed on one GPU at once "
                           "disturb each other");
    if (devices.size() == mostDevices)
      return makeError(ErrorKind::BadInput, "device: more than " +
                                                llvm::Twine(mostDevices) +
                                                " are named");
    devices.push_back(std::move(name));
    return llvm::Error::success();
  };
  auto [kind, rest] = device.split(':');
  if (device == "cuda")
    return add("cuda:0");
  if (kind == "cuda") {
    llvm::SmallVector<llvm::StringRef> ordinals;
    rest.split(ordinals, '+');
    for (llvm::StringRef text : ordinals) {
      unsigned ordinal = 0;
      if (text.getAsInteger(10, ordinal))
        return makeError(ErrorKind::BadInput,
                         "device '" + spec + "': got '" + text +
                             "', wanted the number of a GPU");
      if (llvm::Error error = add("cuda:" + std::to_string(ordinal)))
        return error;
    }
    return llvm::Error::success();
  }
  if (kind == "virtual" || device == "auto" || device.starts_with("exec:"))
    return add(device.str());
  bool isList = device.size() != spec.size();
  return makeError(
      ErrorKind::BadInput,
      "unknown device '" + device + "'" +
          (isList ? " in '" + spec + "'" : llvm::Twine()) +
          "; known: cuda, cuda:N, cuda:N+M, virtual, "
          "virtual:CHIP, exec:COMMAND, and several of them with "
          "commas between" +
          (isList ? "; a comma of a command stands in quotes" : ""));
}

llvm::Expected<std::vector<std::string>>
fsr::splitDeviceSpec(llvm::StringRef spec) {
  std::vector<std::string> devices;
  for (llvm::StringRef rest = spec;;) {
    rest = rest.ltrim();
    size_t end = endOfDevice(rest);
    if (llvm::Error error =
            addDevice(rest.take_front(end).rtrim(), spec, devices))
      return std::move(error);
    if (end == rest.size())
      return devices;
    rest = rest.drop_front(end + 1);
  }
}
