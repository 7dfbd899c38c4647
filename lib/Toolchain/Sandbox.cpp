// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The seccomp filter is written by hand: a list of allowed calls needs no
// library, and fsr-worker stays one file that is copied to another machine. All
// else answers EPERM, so that a compiler that tries to open a header goes on
// and says that there is none.
//
//===----------------------------------------------------------------------===//

#include "Sandbox.h"

#include "fsr/Support/Error.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

namespace fsr {
namespace {

#if defined(__x86_64__)
constexpr uint32_t thisArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t thisArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the sandbox knows no system call table for this architecture"
#endif

/// What a compiler in memory needs, and the one open connection. Nothing here
/// takes a path, names another process, or makes a descriptor.
const int allowedCalls[] = {
    // Memory.
    SYS_brk,
    SYS_madvise,
    SYS_mmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_munmap,
    // The connection and what is open.
    SYS_close,
    SYS_fstat,
    SYS_lseek,
    SYS_ppoll,
    SYS_read,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendmsg,
    SYS_sendto,
    SYS_write,
    SYS_writev,
    // Time and itself.
    SYS_clock_gettime,
    SYS_clock_nanosleep,
    SYS_exit,
    SYS_exit_group,
    SYS_futex,
    SYS_getpid,
    SYS_getrandom,
    SYS_getrusage,
    SYS_gettid,
    SYS_gettimeofday,
    SYS_nanosleep,
    SYS_restart_syscall,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sched_getaffinity,
    SYS_sched_yield,
    SYS_sigaltstack,
    SYS_sysinfo,
    SYS_uname,
#if defined(__x86_64__)
    SYS_poll,
    SYS_time,
#endif
};

bool applySeccomp() {
  std::vector<sock_filter> program;
  auto load = [&](size_t offset) {
    program.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, uint32_t(offset)));
  };
  auto answer = [&](uint32_t action) {
    program.push_back(BPF_STMT(BPF_RET | BPF_K, action));
  };
  load(offsetof(seccomp_data, arch));
  program.push_back(
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, thisArchitecture, 1, 0));
  answer(SECCOMP_RET_KILL_PROCESS);
  load(offsetof(seccomp_data, nr));
  for (int call : allowedCalls) {
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(call), 0, 1));
    answer(SECCOMP_RET_ALLOW);
  }
  answer(SECCOMP_RET_ERRNO | EPERM);
  sock_fprog filter{static_cast<unsigned short>(program.size()),
                    program.data()};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                 SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

/// A rule set that handles every access to files and allows none.
bool applyLandlock() {
#ifdef SYS_landlock_create_ruleset
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0,
                     LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1)
    return false;
  landlock_ruleset_attr rules{};
  rules.handled_access_fs = (uint64_t(1) << 13) - 1; // ABI 1 has 13 rights.
  long fd = syscall(SYS_landlock_create_ruleset, &rules,
                    sizeof(rules.handled_access_fs), 0);
  if (fd < 0)
    return false;
  bool applied = syscall(SYS_landlock_restrict_self, fd, 0) == 0;
  close(int(fd));
  return applied;
#else
  return false;
#endif
}

llvm::Error limit(int resource, uint64_t value, const char *name) {
  rlimit now{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &now))
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("cannot read the limit ") + name + ": " +
                         std::strerror(errno));
  rlimit wanted{};
  wanted.rlim_cur = wanted.rlim_max = std::min<rlim_t>(value, now.rlim_max);
  if (setrlimit(static_cast<__rlimit_resource_t>(resource), &wanted))
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("cannot set the limit ") + name + ": " +
                         std::strerror(errno));
  return llvm::Error::success();
}

/// Address sanitizers reserve terabytes.
constexpr bool limitsAddresses() {
#if defined(__SANITIZE_ADDRESS__)
  return false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return false;
#else
  return true;
#endif
#else
  return true;
#endif
}

} // namespace

llvm::Error dropSurroundings(const SandboxLimits &limits) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // Keys live in the environment: overwrite the bytes, not only the table.
  for (char **entry = environ; entry && *entry; ++entry)
    std::memset(*entry, 0, std::strlen(*entry));
  clearenv();
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (null < 0 || dup2(null, STDERR_FILENO) < 0 || chdir("/") != 0)
    return makeError(ErrorKind::Unavailable,
                     llvm::Twine("cannot leave the surroundings: ") +
                         std::strerror(errno));
#ifdef SYS_close_range
  syscall(SYS_close_range, 3u, ~0u, 0u);
#endif
  if (limitsAddresses())
    if (llvm::Error error = limit(RLIMIT_AS, limits.addressBytes, "AS"))
      return error;
  if (llvm::Error error = limit(RLIMIT_CPU, limits.cpuSeconds, "CPU"))
    return error;
  if (llvm::Error error = limit(RLIMIT_FSIZE, 0, "FSIZE"))
    return error;
  if (llvm::Error error = limit(RLIMIT_CORE, 0, "CORE"))
    return error;
  // Loading NVRTC opens a few files, one after another.
  return limit(RLIMIT_NOFILE, 32, "NOFILE");
}

std::vector<std::string> enterSandbox() {
  std::vector<std::string> held;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    return held;
  // No further thread or process; failing that, seccomp refuses them anyway.
  llvm::consumeError(limit(RLIMIT_NPROC, 0, "NPROC"));
  // Landlock first: seccomp would refuse its system calls.
  bool landlock = applyLandlock();
  if (applySeccomp())
    held.push_back("seccomp");
  if (landlock)
    held.push_back("landlock");
  return held;
}

} // namespace fsr
