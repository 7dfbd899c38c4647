// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A management library that pretends: one GPU at the address that the fake
// driver gives, hot, at its power cap, with a process in it beside this one.
// What is named in FSR_FAKE_NVML_FAIL is refused.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <cstring>
#include <unistd.h>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

struct ProcessInfo {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpuInstance, computeInstance;
};

int answer(const char *name) {
  const char *fails = getenv("FSR_FAKE_NVML_FAIL");
  return fails && !strcmp(fails, name) ? 3 : 0; // NVML_ERROR_NOT_SUPPORTED
}

template <typename T>
int give(const char *name, T *to, T value) {
  if (int status = answer(name))
    return status;
  *to = value;
  return 0;
}

} // namespace

FAKE int nvmlInit_v2() { return answer("init"); }
FAKE int nvmlShutdown() { return 0; }
FAKE const char *nvmlErrorString(int) { return "Not Supported"; }
FAKE int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device) {
  if (strcmp(bus, "0000:1B:00.0"))
    return 6; // NVML_ERROR_NOT_FOUND
  *device = device;
  return 0;
}
FAKE int nvmlSystemGetDriverVersion(char *to, unsigned size) {
  strncpy(to, "580.65.06", size);
  return 0;
}
FAKE int nvmlDeviceGetClockInfo(void *, int kind, unsigned *to) {
  return give("clock", to, kind == 1 ? 1755u : 3201u);
}
FAKE int nvmlDeviceGetTemperature(void *, int, unsigned *to) {
  return give("temperature", to, 71u);
}
FAKE int nvmlDeviceGetPowerUsage(void *, unsigned *to) {
  return give("power", to, 698500u);
}
FAKE int nvmlDeviceGetEnforcedPowerLimit(void *, unsigned *to) {
  return give("limit", to, 700000u);
}
FAKE int nvmlDeviceGetCurrentClocksEventReasons(void *,
                                                unsigned long long *to) {
  return give("reasons", to, 0x25ull);
}
FAKE int nvmlDeviceGetComputeRunningProcesses_v3(void *, unsigned *count,
                                                 ProcessInfo *to) {
  if (int status = answer("processes"))
    return status;
  if (*count < 2)
    return 7;
  to[0].pid = unsigned(getpid());
  to[1].pid = 1;
  *count = 2;
  return 0;
}
