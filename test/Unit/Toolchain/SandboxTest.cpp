// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Attacks on the compiler. Each text tries to read what it must not, to stay
// for ever, or to take all memory; none may change more than its own verdict.
//
//===----------------------------------------------------------------------===//

#include "ToolchainTesting.h"

#include "fsr/Support/Files.h"
#include "fsr/Support/Frame.h"
#include "fsr/Support/Subprocess.h"

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define FSR_TEST_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FSR_TEST_ADDRESS_SANITIZER
#endif
#endif

using namespace fsr;
using namespace fsr::testing;
using llvm::StringRef;

namespace {

const char kernel[] = "extern \"C\" __global__ void k(int *x) { x[0] = 1; }\n";

/// Keeps any compiler busy for hours.
const char templateBomb[] = R"(
template <int N, int M> struct F {
  enum { v = F<N - 1, 2 * M>::v + F<N - 1, 2 * M + 1>::v };
};
template <int M> struct F<0, M> { enum { v = M }; };
extern "C" __global__ void k(int *x) { x[0] = F<26, 1>::v; }
)";

TEST(Sandbox, AbsoluteIncludeReadsNothing) {
  FSR_NEED_NVRTC();
  TemporaryFolder folder;
  std::string secret = folder.write("secret.txt", "HIDDEN_TEXT of a key\n");
  CompileOutcome outcome = compile("#include \"" + secret + "\"\n" + kernel);
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_FALSE(outcome.build);
  EXPECT_FALSE(StringRef(outcome.message).contains("HIDDEN"))
      << outcome.message;
  EXPECT_FALSE(StringRef(outcome.message).contains(folder.path))
      << outcome.message;
}

TEST(Sandbox, RelativeIncludeReadsNothing) {
  FSR_NEED_NVRTC();
  for (const char *name : {"../../../../../../../../etc/passwd",
                           "cub/../../../../../../etc/passwd", "etc/passwd",
                           "proc/self/environ"}) {
    CompileOutcome outcome =
        compile(std::string("#include \"") + name + "\"\n" + kernel);
    EXPECT_EQ(outcome.verdict, Verdict::CompileFailed) << name;
    EXPECT_FALSE(StringRef(outcome.message).contains("root:"))
        << outcome.message;
    EXPECT_TRUE(StringRef(outcome.message).contains("open source file"))
        << outcome.message;
  }
}

TEST(Sandbox, HasIncludeIsNoOracle) {
  FSR_NEED_NVRTC();
  TemporaryFolder folder;
  std::string there = folder.write("there.h", "");
  for (const std::string &name :
       {there, std::string("/etc/passwd"), std::string("/dev/null")}) {
    CompileOutcome outcome =
        compile("#if __has_include(\"" + name +
                "\")\n#error it_is_there\n#endif\n" + kernel);
    EXPECT_TRUE(outcome.build) << name << ": " << outcome.message;
  }
}

TEST(Sandbox, DevicesAreNotRead) {
  FSR_NEED_NVRTC();
  for (const char *name :
       {"/dev/zero", "/dev/stdin", "/proc/self/environ", "/proc/self/fd/0"}) {
    CompileOutcome outcome =
        compile(std::string("#include \"") + name + "\"\n" + kernel);
    EXPECT_EQ(outcome.verdict, Verdict::CompileFailed) << name;
  }
}

TEST(Sandbox, IncbinIsRefused) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome =
      compile("extern \"C\" __global__ void k(int *x) {\n"
              "  asm volatile(\".incbin \\\"/etc/passwd\\\"\");\n"
              "  x[0] = 1;\n"
              "}\n");
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed) << outcome.message;
  EXPECT_FALSE(StringRef(outcome.message).contains("root:"));
}

TEST(Sandbox, TemplateBombIsStopped) {
  FSR_NEED_NVRTC();
  CompilerOptions options;
  options.wall = std::chrono::milliseconds(2500);
  auto start = std::chrono::steady_clock::now();
  CompileOutcome outcome = compile(templateBomb, {"k"}, {}, options);
  auto took = std::chrono::steady_clock::now() - start;
  EXPECT_FALSE(outcome.build);
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_EQ(outcome.message, "the compiler was stopped after 2500 ms");
  EXPECT_LT(took, std::chrono::seconds(10));
}

TEST(Sandbox, HugeOutputFailsToCompile) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome =
      compile("__device__ const int table[1 << 24] = {1};\n"
              "extern \"C\" __global__ void k(int *x) { *x = table[x[1]]; }\n");
  EXPECT_FALSE(outcome.build);
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_TRUE(StringRef(outcome.message).starts_with("the machine code has "))
      << outcome.message;
}

TEST(Sandbox, HugeLogIsCapped) {
  FSR_NEED_NVRTC();
  std::string source;
  for (int i = 0; i < 5000; ++i)
    source += "#warning this text is long and says nothing at all\n";
  source += "extern \"C\" __global__ void k(int *x) { x[0] = wrong_name; }\n";
  CompileOutcome outcome = compile(source);
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_LE(outcome.message.size(), 8192u);
  EXPECT_TRUE(StringRef(outcome.message).contains("wrong_name"))
      << outcome.message;
}

/// A worker that has said that it is ready, with a text that keeps it busy.
class BusyWorker {
public:
  BusyWorker() {
    auto toolkit = findToolkit();
    if (!toolkit) {
      ADD_FAILURE() << llvm::toString(toolkit.takeError());
      return;
    }
    auto started = ChildProcess::start({FSR_TEST_WORKER, "compile"});
    if (!started) {
      ADD_FAILURE() << llvm::toString(started.takeError());
      return;
    }
    child = std::move(*started);
    Frame frame;
    frame.blob = templateBomb;
    frame.header =
        llvm::json::Object{{"op", "compile"},
                           {"nvrtc", toolkit->nvrtcLibrary},
                           {"chip", "sm_90"},
                           {"params", llvm::json::Object()},
                           {"headers", llvm::json::Array()},
                           {"sourceBytes", int64_t(frame.blob.size())}};
    llvm::Error error = writeFrame(child->socket(), frame);
    EXPECT_FALSE(bool(error));
    llvm::consumeError(std::move(error));
    auto answer =
        readFrame(child->socket(), Deadline::in(std::chrono::seconds(20)));
    if (!answer || !*answer) {
      ADD_FAILURE() << "no answer";
      llvm::consumeError(answer.takeError());
      return;
    }
    ready = std::move((*answer)->header);
  }
  /// A file of /proc about it; files there have no size.
  std::string proc(const char *name) const {
    std::string path = "/proc/" + std::to_string(child->pid()) + "/" + name;
    std::string text;
    if (FILE *file = std::fopen(path.c_str(), "r")) {
      char buffer[65536];
      text.assign(buffer, std::fread(buffer, 1, sizeof(buffer), file));
      std::fclose(file);
    }
    return text;
  }
  std::unique_ptr<ChildProcess> child;
  llvm::json::Object ready;
};

TEST(Sandbox, HoldsBeforeTheTextIsSeen) {
  FSR_NEED_NVRTC();
  BusyWorker worker;
  ASSERT_TRUE(worker.child);
  EXPECT_EQ(worker.ready.getBoolean("ready"), true);
  const llvm::json::Array *held = worker.ready.getArray("sandbox");
  ASSERT_TRUE(held);
  ASSERT_FALSE(held->empty());
  EXPECT_EQ((*held)[0].getAsString(), StringRef("seccomp"));
  std::string status = worker.proc("status");
  EXPECT_TRUE(StringRef(status).contains("Seccomp:\t2\n")) << status;
  EXPECT_TRUE(StringRef(status).contains("NoNewPrivs:\t1\n"));
  EXPECT_TRUE(StringRef(status).contains("Threads:\t1\n"));
  std::string limits = worker.proc("limits");
  EXPECT_TRUE(StringRef(limits).contains("Max file size             0"));
  EXPECT_TRUE(StringRef(limits).contains("Max core file size        0"));
  EXPECT_TRUE(StringRef(limits).contains("Max processes             0"));
#ifndef FSR_TEST_ADDRESS_SANITIZER
  EXPECT_TRUE(
      StringRef(limits).contains("Max address space         4294967296"));
#endif
}

TEST(Sandbox, SeesNoEnvironment) {
  FSR_NEED_NVRTC();
  ScopedVariable key("FSR_TEST_API_KEY", "sk-very-secret");
  BusyWorker worker;
  ASSERT_TRUE(worker.child);
  std::string environment = worker.proc("environ");
  ASSERT_FALSE(environment.empty());
  EXPECT_TRUE(std::all_of(environment.begin(), environment.end(), [](char c) {
    return c == '\0';
  })) << environment;
}

/// The child of this process that has given up system calls, or 0.
int sandboxedChild() {
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it("/proc/self/task", error), end;
       it != end && !error; it.increment(error)) {
    std::ifstream children(it->path() + "/children");
    for (int pid; children >> pid;) {
      std::ifstream status("/proc/" + std::to_string(pid) + "/status");
      std::string text(std::istreambuf_iterator<char>(status), {});
      if (StringRef(text).contains("Seccomp:\t2"))
        return pid;
    }
  }
  return 0;
}

TEST(Sandbox, KilledCompilerIsTheTextsFault) {
  FSR_NEED_NVRTC();
  std::atomic<bool> killed{false};
  std::thread killer([&] {
    for (int i = 0; i < 2000 && !killed; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (int pid = sandboxedChild()) {
        // The "ready" that comes after the sandbox must get out.
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        killed = kill(pid, SIGKILL) == 0;
      }
    }
  });
  CompileOutcome outcome = compile(templateBomb);
  killer.join();
  EXPECT_TRUE(killed);
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_EQ(outcome.message,
            "the compiler died on this source (killed by SIGKILL)");
}

TEST(Sandbox, CorruptRequestsGetAnAnswer) {
  for (const char *json :
       {"{}", R"({"op":"compile"})",
        R"({"op":"compile","nvrtc":"/nowhere","chip":"sm_90","params":{},)"
        R"("headers":[],"sourceBytes":99})",
        R"({"op":"compile","nvrtc":"/nowhere","chip":"sm_90","params":{},)"
        R"("headers":[{"name":"a","bytes":-1}],"sourceBytes":0})",
        R"({"op":"compile","nvrtc":"/nowhere","chip":"sm_90","params":{},)"
        R"("headers":[],"sourceBytes":0})"}) {
    auto child = ChildProcess::start({FSR_TEST_WORKER, "compile"});
    ASSERT_TRUE(bool(child));
    auto value = llvm::json::parse(json);
    ASSERT_TRUE(bool(value));
    Frame frame{std::move(*value->getAsObject()), ""};
    llvm::Error error = writeFrame((*child)->socket(), frame);
    ASSERT_FALSE(bool(error));
    auto answer =
        readFrame((*child)->socket(), Deadline::in(std::chrono::seconds(20)));
    ASSERT_TRUE(answer && *answer) << json;
    EXPECT_TRUE((*answer)->header.getString("error")) << json;
  }
}

/// Makes this thread, and what it starts, like a kernel with no sandbox.
void forbidSandboxes() {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (int call : {SYS_seccomp, SYS_landlock_create_ruleset}) {
    program.push_back(
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, unsigned(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS));
  }
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  sock_fprog filter{static_cast<unsigned short>(program.size()),
                    program.data()};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter), 0);
}

TEST(Sandbox, WithoutOneItIsRefusedUnlessAllowed) {
  FSR_NEED_NVRTC();
  std::thread([] {
    forbidSandboxes();
    for (bool allow : {false, true}) {
      CompilerOptions options;
      options.allowUnsandboxed = allow;
      std::unique_ptr<Compiler> compiler = newCompiler(options);
      ASSERT_TRUE(compiler);
      CompileRequest request;
      request.source = kernel;
      request.chip = "sm_90";
      request.entries = {"k"};
      auto outcome = compiler->compile(request);
      if (allow) {
        ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
        EXPECT_TRUE(outcome->build);
        continue;
      }
      ASSERT_FALSE(outcome);
      EXPECT_TRUE(StringRef(llvm::toString(outcome.takeError()))
                      .contains("not compiled without a sandbox"));
    }
  }).join();
}

} // namespace
