// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A libcuda.so.1 without a GPU: memory is the host's, kernels do nothing, calls
// that matter are logged. It lets tests see what FSR asks of the driver, and
// how it takes a refusal, on any machine.
//
//   FSR_FAKE_CUDA_LOG=FILE   appends one line a call of interest
//   FSR_FAKE_CUDA_FAIL=cuLaunchKernel=1   that call gives that CUresult
//   FSR_FAKE_CUDA_GPUS=N     how many GPUs there are; 1
//   FSR_FAKE_CUDA_VERSION=N  driver version; 13000
//
// A function's handle is its name; it has 1024 bytes of static shared memory.
//
//===----------------------------------------------------------------------===//

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#define FAKE extern "C" __attribute__((visibility("default")))

using Handle = void *;
using Pointer = uint64_t;

static long setting(const char *name, long otherwise) {
  const char *text = getenv(name);
  return text ? atol(text) : otherwise;
}

static void log(const char *format, ...) {
  const char *path = getenv("FSR_FAKE_CUDA_LOG");
  FILE *file = path ? fopen(path, "a") : nullptr;
  if (!file)
    return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(file, format, arguments);
  va_end(arguments);
  fputc('\n', file);
  fclose(file);
}

/// What the call named `name` must give.
static int planned(const char *name) {
  const char *plan = getenv("FSR_FAKE_CUDA_FAIL");
  size_t length = strlen(name);
  if (plan && !strncmp(plan, name, length) && plan[length] == '=')
    return atoi(plan + length + 1);
  return 0;
}

#define ENTER                                                                  \
  if (int result = planned(__func__))                                          \
  return result

template <typename T>
static int give(T *to, T value) {
  *to = value;
  return 0;
}

static Handle newHandle() {
  static uintptr_t last = 0;
  return Handle(++last);
}

FAKE int cuInit(unsigned) {
  ENTER;
  return setting("FSR_FAKE_CUDA_GPUS", 1) ? 0 : 100;
}
FAKE int cuDriverGetVersion(int *version) {
  ENTER;
  return give(version, int(setting("FSR_FAKE_CUDA_VERSION", 13000)));
}
FAKE int cuGetErrorName(int error, const char **name) {
  switch (error) {
  case 1:
    return give(name, "CUDA_ERROR_INVALID_VALUE");
  case 100:
    return give(name, "CUDA_ERROR_NO_DEVICE");
  case 218:
    return give(name, "CUDA_ERROR_INVALID_PTX");
  case 700:
    return give(name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  default:
    return 1; // The name stays as it was.
  }
}
FAKE int cuDeviceGet(int *device, int ordinal) {
  ENTER;
  return give(device, ordinal);
}
FAKE int cuDeviceGetCount(int *count) {
  ENTER;
  return give(count, int(setting("FSR_FAKE_CUDA_GPUS", 1)));
}
FAKE int cuDeviceGetName(char *name, int size, int) {
  ENTER;
  snprintf(name, size_t(size), "fake");
  return 0;
}
FAKE int cuDeviceGetUuid_v2(unsigned char *bytes, int device) {
  ENTER;
  memset(bytes, 0xfa, 16);
  bytes[15] = static_cast<unsigned char>(device);
  return 0;
}
FAKE int cuDeviceGetPCIBusId(char *bus, int size, int) {
  ENTER;
  snprintf(bus, size_t(size), "0000:1B:00.0");
  return 0;
}
FAKE int cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER;
  return give(value, attribute == 75 ? 9 : attribute == 76 ? 0 : attribute);
}
FAKE int cuDeviceTotalMem_v2(size_t *bytes, int) {
  ENTER;
  return give(bytes, size_t(1) << 34);
}
FAKE int cuDevicePrimaryCtxRetain(Handle *context, int device) {
  ENTER;
  log("retain %d", device);
  return give(context, Handle(uintptr_t(device) + 1));
}
FAKE int cuDevicePrimaryCtxRelease_v2(int device) {
  ENTER;
  log("release %d", device);
  return 0;
}
FAKE int cuCtxSetCurrent(Handle) {
  ENTER;
  return 0;
}
FAKE int cuCtxSynchronize() {
  ENTER;
  return 0;
}

FAKE int cuMemAlloc_v2(Pointer *pointer, size_t bytes) {
  ENTER;
  return give(pointer, Pointer(calloc(1, bytes)));
}
FAKE int cuMemAllocManaged(Pointer *pointer, size_t bytes, unsigned flags) {
  ENTER;
  log("managed %zu flags %u", bytes, flags);
  return give(pointer, Pointer(calloc(1, bytes)));
}
FAKE int cuMemFree_v2(Pointer pointer) {
  ENTER;
  free(reinterpret_cast<void *>(pointer));
  return 0;
}
FAKE int cuMemAllocAsync(Pointer *pointer, size_t bytes, Handle) {
  ENTER;
  log("ordered %zu", bytes);
  return give(pointer, Pointer(calloc(1, bytes)));
}
FAKE int cuMemFreeAsync(Pointer pointer, Handle) {
  ENTER;
  log("free ordered");
  free(reinterpret_cast<void *>(pointer));
  return 0;
}
FAKE int cuDeviceGetDefaultMemPool(Handle *pool, int) {
  ENTER;
  return give(pool, Handle(&pool));
}
FAKE int cuMemPoolSetAttribute(Handle, int, void *) {
  ENTER;
  return 0;
}
FAKE int cuMemGetInfo_v2(size_t *free, size_t *total) {
  ENTER;
  *total = size_t(1) << 34;
  return give(free, size_t(1) << 33);
}
FAKE int cuMemHostRegister_v2(void *, size_t bytes, unsigned flags) {
  ENTER;
  log("register %zu flags %u", bytes, flags);
  return 0;
}
FAKE int cuMemHostUnregister(void *) {
  ENTER;
  log("unregister");
  return 0;
}
static int copy(Pointer to, Pointer from, size_t bytes) {
  memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), bytes);
  return 0;
}
FAKE int cuMemcpyHtoD_v2(Pointer to, const void *from, size_t bytes) {
  ENTER;
  return copy(to, Pointer(from), bytes);
}
FAKE int cuMemcpyDtoH_v2(void *to, Pointer from, size_t bytes) {
  ENTER;
  return copy(Pointer(to), from, bytes);
}
FAKE int cuMemcpyHtoDAsync_v2(Pointer to, const void *from, size_t bytes,
                              Handle) {
  ENTER;
  return copy(to, Pointer(from), bytes);
}
FAKE int cuMemcpyDtoHAsync_v2(void *to, Pointer from, size_t bytes, Handle) {
  ENTER;
  return copy(Pointer(to), from, bytes);
}
FAKE int cuMemcpyAsync(Pointer to, Pointer from, size_t bytes, Handle) {
  ENTER;
  return copy(to, from, bytes);
}
template <typename T>
static int fill(Pointer to, T value, size_t count) {
  for (size_t i = 0; i < count; ++i)
    reinterpret_cast<T *>(to)[i] = value;
  return 0;
}
FAKE int cuMemsetD8Async(Pointer to, unsigned char value, size_t count,
                         Handle) {
  ENTER;
  return fill(to, value, count);
}
FAKE int cuMemsetD16Async(Pointer to, unsigned short value, size_t count,
                          Handle) {
  ENTER;
  return fill(to, value, count);
}
FAKE int cuMemsetD32Async(Pointer to, unsigned value, size_t count, Handle) {
  ENTER;
  return fill(to, value, count);
}

FAKE int cuModuleLoadDataEx(Handle *module, const void *image, unsigned count,
                            int *options, void **values) {
  auto *text = static_cast<const char *>(image);
  bool binary = !memcmp(text,
                        "\x7f"
                        "ELF",
                        4) ||
                !memcmp(text, "\x50\xed\x55\xba", 4);
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 7)
      log("load %s level %d", binary ? "binary" : "PTX",
          int(uintptr_t(values[i])));
    if (options[i] == 5 && planned(__func__))
      strcpy(static_cast<char *>(values[i]), "ptxas: line 3; no such thing\n");
  }
  ENTER;
  return give(module, newHandle());
}
FAKE int cuModuleUnload(Handle) {
  ENTER;
  log("unload");
  return 0;
}
FAKE int cuModuleGetFunction(Handle *function, Handle, const char *name) {
  ENTER;
  static char names[16][64]; // Small tests; a handle must stay valid.
  for (char (&known)[64] : names) {
    if (!*known)
      snprintf(known, sizeof(known), "%s", name);
    if (!strcmp(known, name))
      return give(function, Handle(known));
  }
  return 500;
}
FAKE int cuModuleGetGlobal_v2(uint64_t *pointer, size_t *bytes, Handle,
                              const char *name) {
  ENTER;
  if (strcmp(name, "state"))
    return 500;
  *pointer = 0x7f0000001000;
  *bytes = 4;
  return 0;
}
FAKE int cuFuncGetAttribute(int *value, int attribute, Handle) {
  ENTER;
  return give(value, attribute == 1 ? 1024 : 0);
}
FAKE int cuFuncSetAttribute(Handle function, int attribute, int value) {
  ENTER;
  log("attribute %d of %s is %d", attribute, static_cast<char *>(function),
      value);
  return 0;
}
FAKE int cuLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz,
                        unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        Handle, void **, void **) {
  log("launch %s grid %u %u %u block %u %u %u shared %u",
      static_cast<char *>(function), gx, gy, gz, bx, by, bz, shared);
  ENTER;
  return 0;
}

// As cuda.h has it; written out once more, so that a slip in FSR's own
// declaration shows.
struct Attribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    void *alignment;
    unsigned cluster[3];
  } value;
};
struct Config {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, shared;
  Handle stream;
  Attribute *attributes;
  unsigned count;
};
FAKE int cuLaunchKernelEx(const Config *config, Handle function, void **,
                          void **) {
  const unsigned *cluster = config->attributes[0].value.cluster;
  log("launch %s grid %u %u %u block %u %u %u shared %u attributes %u: %d is "
      "%u %u %u",
      static_cast<char *>(function), config->gridX, config->gridY,
      config->gridZ, config->blockX, config->blockY, config->blockZ,
      config->shared, config->count, config->attributes[0].id, cluster[0],
      cluster[1], cluster[2]);
  ENTER;
  return 0;
}

FAKE int cuStreamCreate(Handle *stream, unsigned flags) {
  ENTER;
  log("stream flags %u", flags);
  return give(stream, newHandle());
}
FAKE int cuStreamDestroy_v2(Handle) {
  ENTER;
  return 0;
}
FAKE int cuStreamSynchronize(Handle) {
  ENTER;
  return 0;
}
FAKE int cuStreamWaitEvent(Handle, Handle, unsigned) {
  ENTER;
  return 0;
}
FAKE int cuEventCreate(Handle *event, unsigned flags) {
  ENTER;
  log("event flags %u", flags);
  return give(event, newHandle());
}
FAKE int cuEventDestroy_v2(Handle) {
  ENTER;
  return 0;
}
FAKE int cuEventRecord(Handle, Handle) {
  ENTER;
  return 0;
}
FAKE int cuEventSynchronize(Handle) {
  ENTER;
  return 0;
}
FAKE int cuEventElapsedTime(float *ms, Handle, Handle) {
  ENTER;
  return give(ms, 1.5f);
}
