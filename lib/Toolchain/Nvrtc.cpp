// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Calls NVRTC through dlopen. Only the answer "this source does not compile" is
// a result; every other failure of the library is an error.
//
//===----------------------------------------------------------------------===//

#include "Nvrtc.h"

#include "fsr/Support/Error.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"

#include <dlfcn.h>

namespace fsr {

llvm::Expected<Nvrtc> Nvrtc::load(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return makeError(ErrorKind::Unavailable,
                     "cannot load NVRTC from " + path + ": " +
                         llvm::Twine(why ? why : "unknown reason"));
  }
  Nvrtc nvrtc;
  std::string missing;
  auto get = [&](auto &function, const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol && missing.empty())
      missing = name;
    function = reinterpret_cast<std::decay_t<decltype(function)>>(symbol);
  };
  get(nvrtc.getVersion, "nvrtcVersion");
  get(nvrtc.getNumSupportedArchs, "nvrtcGetNumSupportedArchs");
  get(nvrtc.getSupportedArchs, "nvrtcGetSupportedArchs");
  get(nvrtc.getErrorString, "nvrtcGetErrorString");
  get(nvrtc.createProgram, "nvrtcCreateProgram");
  get(nvrtc.destroyProgram, "nvrtcDestroyProgram");
  get(nvrtc.compileProgram, "nvrtcCompileProgram");
  get(nvrtc.getLogSize, "nvrtcGetProgramLogSize");
  get(nvrtc.getLog, "nvrtcGetProgramLog");
  get(nvrtc.getPtxSize, "nvrtcGetPTXSize");
  get(nvrtc.getPtx, "nvrtcGetPTX");
  get(nvrtc.getCubinSize, "nvrtcGetCUBINSize");
  get(nvrtc.getCubin, "nvrtcGetCUBIN");
  if (!missing.empty())
    return makeError(ErrorKind::Unavailable, path + " has no " + missing +
                                                 "; NVRTC 11.2 or later is "
                                                 "needed");
  if (int status = nvrtc.getVersion(&nvrtc.major, &nvrtc.minor))
    return makeError(ErrorKind::Unavailable,
                     "nvrtcVersion: " +
                         llvm::Twine(nvrtc.getErrorString(status)));
  return nvrtc;
}

bool Nvrtc::supports(unsigned capability) const {
  int count = 0;
  if (getNumSupportedArchs(&count) || count <= 0 || count > 4096)
    return false;
  std::vector<int> capabilities(count);
  return getSupportedArchs(capabilities.data()) == 0 &&
         llvm::is_contained(capabilities, int(capability));
}

llvm::Expected<Nvrtc::Result>
Nvrtc::compile(const std::string &source, llvm::ArrayRef<MemoryHeader> headers,
               llvm::ArrayRef<std::string> options) const {
  auto fail = [&](const char *call, int status) {
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine(call) + ": " + getErrorString(status));
  };
  // NVRTC takes C strings: text must end in a null byte.
  std::vector<std::string> texts;
  std::vector<const char *> names, contents, arguments;
  texts.reserve(headers.size());
  for (const MemoryHeader &header : headers) {
    texts.push_back(header.text.str());
    names.push_back(header.name.c_str());
    contents.push_back(texts.back().c_str());
  }
  for (const std::string &option : options)
    arguments.push_back(option.c_str());

  void *program = nullptr;
  if (int status =
          createProgram(&program, source.c_str(), "kernel.cu",
                        int(headers.size()), contents.data(), names.data()))
    return fail("nvrtcCreateProgram", status);
  llvm::scope_exit destroy([&] { destroyProgram(&program); });
  int status = compileProgram(program, int(arguments.size()), arguments.data());
  constexpr int compilation = 6; // NVRTC_ERROR_COMPILATION
  if (status && status != compilation)
    return fail("nvrtcCompileProgram", status);

  Result result;
  result.compiled = status == 0;
  auto fetch = [&](GetSize size, GetText text, std::string &into) {
    size_t bytes = 0;
    if (int failed = size(program, &bytes))
      return failed;
    into.resize(bytes);
    return bytes ? text(program, into.data()) : 0;
  };
  if (int failed = fetch(getLogSize, getLog, result.log))
    return fail("nvrtcGetProgramLog", failed);
  if (result.compiled) {
    if (int failed = fetch(getPtxSize, getPtx, result.ptx))
      return fail("nvrtcGetPTX", failed);
    if (int failed = fetch(getCubinSize, getCubin, result.cubin))
      return fail("nvrtcGetCUBIN", failed);
  }
  // Text comes with the null byte that ends it.
  for (std::string *text : {&result.log, &result.ptx})
    while (!text->empty() && text->back() == '\0')
      text->pop_back();
  return result;
}

} // namespace fsr
