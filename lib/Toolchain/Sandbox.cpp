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
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

namespace fsr {
namespace {

constexpr int compilerNiceness = 5;

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

/// What a program of the toolkit may not do. Its files are Landlock's matter;
/// a list of what it needs would be one of what libc does from release to
/// release.
const int forbiddenCalls[] = {
    // The network.
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_io_uring_setup,
    // Other processes.
    SYS_kill,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_perf_event_open,
    // The kernel, and what holds this process.
    SYS_add_key,
    SYS_bpf,
    SYS_chroot,
    SYS_keyctl,
    SYS_mount,
    SYS_open_by_handle_at,
    SYS_request_key,
    SYS_setns,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
};

/// A filter that answers `listed` to the calls of the list, and `others` to all
/// that are not.
bool applySeccomp(llvm::ArrayRef<int> calls, uint32_t listed, uint32_t others) {
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
#if defined(__x86_64__)
  // The same calls once more under other numbers, for 32-bit pointers.
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1));
  answer(SECCOMP_RET_ERRNO | EPERM);
#endif
  for (int call : calls) {
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, uint32_t(call), 0, 1));
    answer(listed);
  }
  answer(others);
  sock_fprog filter{static_cast<unsigned short>(program.size()),
                    program.data()};
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                 SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

/// Rights of Landlock, as far as a rule gives them.
constexpr uint64_t readRights = 1 << 0 | 1 << 2 | 1 << 3; // Execute, read.

/// Denies every access to files, and where the kernel can, TCP, signals and
/// abstract sockets, but for reading `readable`, and all within `writable`.
bool applyLandlock(llvm::ArrayRef<std::string> readable = {},
                   const std::string &writable = "") {
#ifdef SYS_landlock_create_ruleset
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0,
                     LANDLOCK_CREATE_RULESET_VERSION);
  if (abi < 1)
    return false;
  // The header at hand may be older than the kernel: what each version of the
  // interface brought is written out. Files: 13 rights at first, then linking
  // between folders, cutting, ioctl; TCP with version 4; scopes with 6.
  struct {
    uint64_t files, tcp, scopes;
  } rules{};
  unsigned rights = abi >= 5 ? 16 : abi >= 3 ? 15 : abi == 2 ? 14 : 13;
  rules.files = (uint64_t(1) << rights) - 1;
  size_t size = sizeof(rules.files);
  if (abi >= 4) {
    rules.tcp = 3;
    size = offsetof(decltype(rules), scopes);
  }
  if (abi >= 6) {
    rules.scopes = 3;
    size = sizeof(rules);
  }
  long fd = syscall(SYS_landlock_create_ruleset, &rules, size, 0);
  if (fd < 0)
    return false;
  auto allow = [&](const std::string &path, uint64_t wanted) {
    int place = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (place < 0)
      return; // Nothing there, nothing to allow.
    struct stat status;
    bool isFolder = fstat(place, &status) == 0 && S_ISDIR(status.st_mode);
    landlock_path_beneath_attr rule{};
    // Of a file, what a file has: execute, write, read.
    rule.allowed_access = isFolder ? wanted : wanted & 7;
    rule.parent_fd = place;
    syscall(SYS_landlock_add_rule, int(fd), LANDLOCK_RULE_PATH_BENEATH, &rule,
            0);
    close(place);
  };
  for (const std::string &path : readable)
    allow(path, readRights);
  if (!writable.empty())
    allow(writable, rules.files & ~uint64_t(1)); // Nothing there is executed.
  bool applied = syscall(SYS_landlock_restrict_self, int(fd), 0) == 0;
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
  // Many compile at a time; who waits for a GPU goes first.
  setpriority(PRIO_PROCESS, 0, compilerNiceness);
  // Keys live in the environment: overwrite the bytes, not only the table.
  for (char **entry = environ; entry && *entry; ++entry)
    std::memset(*entry, 0, std::strlen(*entry));
  clearenv();
  // Where this machine is must not show in what it compiles.
  setenv("TZ", "UTC0", 1);
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
  if (applySeccomp(allowedCalls, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM))
    held.push_back("seccomp");
  if (landlock)
    held.push_back("landlock");
  return held;
}

llvm::Error runTool(llvm::StringRef root, llvm::StringRef folder,
                    llvm::ArrayRef<std::string> command) {
  auto fail = [](const llvm::Twine &what) {
    return makeError(ErrorKind::Unavailable,
                     what + ": " + std::strerror(errno));
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  clearenv();
  std::string place = folder.str();
  setenv("TMPDIR", place.c_str(), 1);
  setenv("LC_ALL", "C", 1);
  if (chdir(place.c_str()) != 0)
    return fail("cannot enter the folder of the tool");
  if (limitsAddresses())
    if (llvm::Error error = limit(RLIMIT_AS, uint64_t(16) << 30, "AS"))
      return error;
  if (llvm::Error error = limit(RLIMIT_CPU, 600, "CPU"))
    return error;
  if (llvm::Error error = limit(RLIMIT_FSIZE, uint64_t(1) << 30, "FSIZE"))
    return error;
  if (llvm::Error error = limit(RLIMIT_CORE, 0, "CORE"))
    return error;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    return fail("cannot give up privileges");
  // The toolkit, and where a loader finds libraries.
  applyLandlock({root.str(), command.front(), "/lib", "/lib64", "/usr/lib",
                 "/usr/lib64", "/etc/ld.so.cache", "/nix/store", "/gnu/store",
                 "/dev/null", "/dev/urandom"},
                place);
  applySeccomp(forbiddenCalls, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ALLOW);
  std::vector<char *> arguments;
  for (const std::string &argument : command)
    arguments.push_back(const_cast<char *>(argument.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  return fail("cannot start " + command.front());
}

} // namespace fsr
