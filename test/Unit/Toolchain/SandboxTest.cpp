// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Attacks on the compiler. Each text tries to read what it must not, to stay
// for ever, or to take all memory; none may change more than its own verdict.
//
//===----------------------------------------------------------------------===//

#include "ToolchainTesting.h"

#include "Sandbox.h"

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
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
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

Frame compileFrame(const std::string &source, const Toolkit &toolkit) {
  Frame frame;
  frame.blob = source;
  frame.header =
      llvm::json::Object{{"op", "compile"},
                         {"nvrtc", toolkit.nvrtcLibrary},
                         {"chip", "sm_90"},
                         {"headers", llvm::json::Array()},
                         {"sourceBytes", int64_t(frame.blob.size())}};
  return frame;
}

/// Hands `source` to the worker past all that is looked at before: what is
/// tested is the process that compiles. Null where it gave no answer.
std::optional<llvm::json::Object> compileUnchecked(const std::string &source) {
  auto toolkit = findToolkit();
  if (!toolkit) {
    ADD_FAILURE() << llvm::toString(toolkit.takeError());
    return std::nullopt;
  }
  const char *other = std::getenv("FSR_TEST_WORKER");
  auto child =
      ChildProcess::start({other ? other : FSR_TEST_WORKER, "compile"});
  if (!child) {
    ADD_FAILURE() << llvm::toString(child.takeError());
    return std::nullopt;
  }
  llvm::Error error =
      writeFrame((*child)->socket(), compileFrame(source, *toolkit));
  EXPECT_FALSE(bool(error));
  llvm::consumeError(std::move(error));
  for (bool isReady : {true, false}) {
    auto answer =
        readFrame((*child)->socket(), Deadline::in(std::chrono::seconds(20)));
    if (!answer || !*answer) {
      llvm::consumeError(answer.takeError());
      return std::nullopt;
    }
    if (isReady) {
      EXPECT_EQ((*answer)->header.getBoolean("ready"), true);
      continue;
    }
    return std::move((*answer)->header);
  }
  return std::nullopt;
}

TEST(Sandbox, FilesAreNotRead) {
  FSR_NEED_NVRTC();
  TemporaryFolder folder;
  std::string secret = folder.write("secret.txt", "HIDDEN_TEXT of a key\n");
  for (const std::string &name :
       {secret, std::string("/etc/passwd"), std::string("/dev/zero"),
        std::string("/dev/stdin"), std::string("/proc/self/environ"),
        std::string("/proc/self/fd/0"), std::string("etc/passwd"),
        std::string("../../../../../../../../etc/passwd"),
        std::string("cub/../../../../../../etc/passwd")}) {
    std::string source = "#include \"" + name + "\"\n" + kernel;
    auto answer = compileUnchecked(source);
    ASSERT_TRUE(answer) << name;
    EXPECT_EQ(answer->getBoolean("compiled"), false) << name;
    StringRef log = answer->getString("log").value_or("");
    EXPECT_TRUE(log.contains("open source file")) << log.str();
    EXPECT_FALSE(log.contains("HIDDEN") || log.contains("root:")) << log.str();

    CompileOutcome outcome = compile(source);
    EXPECT_FALSE(outcome.build) << name;
    EXPECT_FALSE(StringRef(outcome.message).contains("HIDDEN"));
    EXPECT_FALSE(StringRef(outcome.message).contains("root:"));
  }
  // The reading of the text can be led astray: this is no raw string.
  CompileOutcome outcome = compile("#define nameUR\n nameUR\"(\"\n#include \"" +
                                   secret + "\"\n//)\"\n" + kernel);
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed) << outcome.message;
  EXPECT_FALSE(StringRef(outcome.message).contains("HIDDEN"));
  EXPECT_FALSE(StringRef(outcome.message).contains(folder.path));
}

TEST(Sandbox, HasIncludeIsNoOracle) {
  FSR_NEED_NVRTC();
  TemporaryFolder folder;
  std::string there = folder.write("there.h", "");
  for (const std::string &name :
       {there, std::string("/etc/passwd"), std::string("/dev/null")}) {
    std::string macro = "#define NAME \"" + name + "\"\n";
    CompileOutcome outcome = compile(
        macro + "#if __has_include(NAME)\n#error it_is_there\n#endif\n" +
        kernel);
    EXPECT_TRUE(outcome.build) << name << ": " << outcome.message;
  }
}

/// A text, what may come of it, and within which time.
struct Attack {
  std::string name, source;
  bool mayCompile = false;
  unsigned wallMs = 8000;
};

std::string repeated(const std::string &text, size_t count) {
  std::string all;
  all.reserve(text.size() * count);
  for (size_t i = 0; i < count; ++i)
    all += text;
  return all;
}

std::vector<Attack> attacks() {
  std::string laughs = "#define L0 x+x+x+x+x+x+x+x+x+x\n";
  for (int i = 1; i < 12; ++i) {
    std::string before = " L" + std::to_string(i - 1);
    laughs += "#define L" + std::to_string(i) + repeated(before + " +", 9) +
              before + "\n";
  }
  const std::string open = "extern \"C\" __global__ void k(int *x) {\n",
                    close = "\n}\n";
  return {
      {"Incbin",
       open + "asm volatile(\".incbin \\\"/etc/passwd\\\"\"); x[0] = 1;" +
           close},
      {"AssemblyFile",
       open + "asm volatile(\".file 9 \\\"/etc/passwd\\\"\"); x[0] = y;" +
           close},
      {"AssemblyInclude",
       open + "asm volatile(\".include \\\"/etc/passwd\\\"\");" + close},
      {"LineDirective",
       "#line 1 \"/etc/passwd\"\n" + open + "x[0] = y;" + close},
      {"Embed", "#embed </etc/passwd>\n" + open + close},
      {"ItsOwnFile", "#include \"kernel.cu\"\n" + open + close},
      {"ConstexprBomb",
       "constexpr long f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
       "static_assert(f(60) > 0, \"\");\n" +
           open + close,
       true, 3000},
      {"ConstexprLoop",
       "constexpr int f() { int i = 0; while (i < 2000000000) ++i; return i; "
       "}\n"
       "constexpr int v = f();\n" +
           open + "x[0] = v;" + close,
       true, 3000},
      {"BillionLaughs", laughs + open + "int x = 1; x = L11;" + close, false,
       3000},
      {"EndlessTemplate",
       "template <int N> struct F { enum { v = F<N + 1>::v }; };\n" + open +
           "x[0] = F<0>::v;" + close},
      {"EndlessTypeNames",
       "template <class T, int N> struct P { typename P<P<P<T, N>, N>, N - "
       "1>::type type; };\n" +
           open + "P<int, 40> p; x[0] = p.none;" + close,
       false, 3000},
      {"Unrolled",
       open +
           "#pragma unroll\nfor (int i = 0; i < 100000; ++i)\n#pragma unroll\n"
           "for (int j = 0; j < 1000; ++j) x[i * j] += x[i + j];" +
           close,
       true, 3000},
      {"HugeVariable",
       "__device__ char big[1u << 30];\n" + open + "x[0] = big[x[1]];" + close},
      {"HugeVariables", "__device__ char a[1ull << 40], b[1ull << 50];\n" +
                            open + "x[0] = a[x[1]] + b[x[2]];" + close},
      {"HugeLocal",
       open + "char a[1 << 30]; a[x[1]] = 1; x[0] = a[x[2]];" + close, true},
      {"HugeShared",
       open + "__shared__ char a[1 << 30]; a[x[1]] = 1; x[0] = a[x[2]];" +
           close},
      {"HugeAssembly",
       open + "asm volatile(\".shared .b8 big[1073741824];\");" + close, true},
      {"LongLine", open + "x[0] = 0" + repeated("+x[1]", 180000) + ";" + close,
       true},
      {"LongIdentifier",
       open + "x[0] = " + repeated("y", 900000) + ";" + close},
      {"LongString",
       open + "x[0] = \"" + repeated("s", 900000) + "\"[x[1]];" + close, true},
      {"LongMessage", "#error " + repeated("message ", 100000) + "\n" + kernel},
      {"ManyErrors", open + repeated("y;\n", 200000) + close},
      {"InvalidUtf8",
       "// \xff\xfe\x80\xc3(\n" + open + "int \xff\xc0 = 1; x[0] = 1;" + close},
      {"InvalidUtf8Message",
       std::string("#error \xff\xc0\x80 \x1b[31m\n") + kernel},
      {"InvalidUtf8InAString", open + "x[0] = \"\xff\xc0\x80\"[x[1]];" + close,
       true},
      {"DeepParentheses", open + "x[0] = " + repeated("(", 200000) + "1" +
                              repeated(")", 200000) + ";" + close},
      {"DeepBraces",
       open + repeated("{", 200000) + repeated("}", 200000) + close, true},
      {"DeepUnary", open + "x[0] = " + repeated("- ", 200000) + "1;" + close,
       true},
      {"DeepTemplates", "template <class T> struct S {};\n" + open +
                            repeated("S<", 50000) + "int" +
                            repeated(">", 50000) + " s;" + close},
      {"DeepConditionals", repeated("#if 1\n", 100000) + open + close},
      {"DeepPointers", "int " + repeated("*", 300000) + "p;\n" + open + close,
       true},
      {"DeepAssembly",
       open + "asm volatile(\"" + repeated("{", 20000) + repeated("}", 20000) +
           "\");" + close,
       true},
      {"AssemblyFlood",
       open +
           repeated("asm volatile(\"add.s32 %0, %0, 1;\" : \"+r\"(x[0]));\n",
                    8000) +
           close,
       true, 3000},
      {"AssemblyRegisters",
       open + "asm volatile(\"{ .reg .b64 r<1000000000>; }\");" + close, true},
      {"PragmaFlood", repeated("#pragma unknown thing\n", 40000) + open + close,
       true},
      {"PragmaOptions",
       "#pragma ptxas --version\n#pragma nv_options /etc/passwd\n" + open +
           "x[0] = 1;" + close,
       true},
      {"NoNewline", "#include", false},
      {"Nothing", "", true},
  };
}

class AttackTest : public ::testing::TestWithParam<Attack> {};

TEST_P(AttackTest, EndsInItsLimitsAndGivesNothingAway) {
  FSR_NEED_NVRTC();
  const Attack &attack = GetParam();
  TemporaryFolder folder;
  ScopedVariable key("FSR_TEST_API_KEY", "sk-very-secret");
  CompilerOptions options;
  options.wall = std::chrono::milliseconds(attack.wallMs);
  auto start = std::chrono::steady_clock::now();
  CompileOutcome outcome =
      compile(attack.source, {"k"}, {{"FLAG", 1}}, options);
  auto took = std::chrono::steady_clock::now() - start;
  // The limit is the text's; starting a compiler comes on top.
  EXPECT_LT(took, options.wall + std::chrono::seconds(10));
  if (outcome.build)
    EXPECT_TRUE(attack.mayCompile);
  else
    EXPECT_TRUE(outcome.verdict == Verdict::CompileFailed ||
                outcome.verdict == Verdict::Rejected);
  EXPECT_LE(outcome.message.size(), 8192u + 512u);
  EXPECT_TRUE(llvm::json::isUTF8(outcome.message));
  for (const char *secret : {"root:", "sk-very-secret", "/etc/", "/proc/"})
    EXPECT_FALSE(StringRef(outcome.message).contains(secret))
        << outcome.message;
  EXPECT_TRUE(outcome.build || !outcome.message.empty());
  // Nothing of it is left: the next text is compiled as ever.
  CompileOutcome next = compile(kernel);
  EXPECT_TRUE(next.build) << next.message;
}

INSTANTIATE_TEST_SUITE_P(All, AttackTest, ::testing::ValuesIn(attacks()),
                         [](const auto &info) { return info.param.name; });

TEST(Sandbox, NullBytesAndOptionsAreRejected) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(std::string("int a;\0int b;", 13) + kernel);
  EXPECT_EQ(outcome.verdict, Verdict::Rejected);
  EXPECT_TRUE(StringRef(outcome.message).contains("null byte"));
  for (const char *name : {"@/etc/passwd", "A -I/etc", "-foo", "A=1", ""}) {
    outcome = compile(kernel, {"k"}, {{name, 1}});
    EXPECT_EQ(outcome.verdict, Verdict::Rejected) << name;
  }
  EXPECT_TRUE(compile(kernel, {"k"}, {{"TILE", -1}}).build);
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
    llvm::Error error =
        writeFrame(child->socket(), compileFrame(templateBomb, *toolkit));
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
        R"({"op":"compile","nvrtc":"/nowhere","chip":"sm_90",)"
        R"("headers":[],"sourceBytes":99})",
        R"({"op":"compile","nvrtc":"/nowhere","chip":"sm_90",)"
        R"("headers":[{"name":"a","bytes":-1}],"sourceBytes":0})",
        R"({"op":"compile","nvrtc":"/nowhere","chip":"sm_90",)"
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

/// Makes this thread, and what it starts, like a kernel that lacks `calls`.
void forbid(std::initializer_list<long> calls) {
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (long call : calls) {
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

llvm::Expected<CompileOutcome> compileSimple(bool allowUnsandboxed) {
  CompilerOptions options;
  options.allowUnsandboxed = allowUnsandboxed;
  std::unique_ptr<Compiler> compiler = newCompiler(options);
  if (!compiler)
    return makeError(ErrorKind::Unavailable, "no compiler");
  CompileRequest request;
  request.source = kernel;
  request.chip = "sm_90";
  request.entries = {"k"};
  return compiler->compile(request);
}

TEST(Sandbox, WithoutOneItIsRefusedUnlessAllowed) {
  FSR_NEED_NVRTC();
  std::thread([] {
    forbid({SYS_seccomp, SYS_landlock_create_ruleset});
    auto outcome = compileSimple(true);
    ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
    ASSERT_TRUE(outcome->build);
    EXPECT_EQ(outcome->build->sandbox, "none");
    outcome = compileSimple(false);
    ASSERT_FALSE(outcome);
    EXPECT_EQ(llvm::toString(outcome.takeError()),
              "fsr-worker compile: this kernel has neither seccomp nor "
              "Landlock, and LLM text is not compiled without a sandbox unless "
              "allow-unsandboxed is given");
  }).join();
}

bool hasLandlock() {
  return syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) > 0;
}

TEST(Sandbox, TheBuildSaysWhatHeld) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(kernel);
  ASSERT_TRUE(outcome.build) << outcome.message;
  EXPECT_EQ(outcome.build->sandbox,
            hasLandlock() ? "seccomp, landlock" : "seccomp");
  for (auto [missing, left] :
       {std::pair<long, const char *>{SYS_landlock_create_ruleset, "seccomp"},
        {SYS_seccomp, "landlock"}}) {
    if (missing == SYS_seccomp && !hasLandlock())
      continue;
    std::thread([missing = missing, left = left] {
      forbid({missing});
      auto outcome = compileSimple(false);
      ASSERT_TRUE(bool(outcome)) << llvm::toString(outcome.takeError());
      ASSERT_TRUE(outcome->build);
      EXPECT_EQ(outcome->build->sandbox, left);
    }).join();
  }
}

/// What a process that `prepare`d itself can still do, as letters.
template <class Prepare>
std::string stillPossible(Prepare prepare) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(
      bind(listener, reinterpret_cast<sockaddr *>(&address), sizeof(address)),
      0);
  EXPECT_EQ(listen(listener, 1), 0);
  socklen_t size = sizeof(address);
  getsockname(listener, reinterpret_cast<sockaddr *>(&address), &size);
  pid_t child = fork();
  if (child == 0) {
    prepare();
    auto can = [&](bool does, char letter) {
      if (does && write(ends[1], &letter, 1) != 1)
        _exit(1);
    };
    can(open("/etc/passwd", O_RDONLY) >= 0, 'r');
    can(open("/tmp/fsr-sandbox-test", O_WRONLY | O_CREAT, 0600) >= 0, 'w');
    can(mkdir("/tmp/fsr-sandbox-folder", 0700) == 0, 'd');
    can(symlink("/etc/passwd", "/tmp/fsr-sandbox-link") == 0, 'l');
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    can(fd >= 0 && connect(fd, reinterpret_cast<sockaddr *>(&address),
                           sizeof(address)) == 0,
        'c');
    can(kill(getppid(), 0) == 0, 'k');
    char *arguments[] = {nullptr};
    pid_t grandchild = fork();
    if (grandchild == 0)
      _exit(0);
    can(grandchild > 0, 'f');
    can(true, '.');
    execve("/bin/true", arguments, arguments);
    can(true, '!'); // It could not become another program.
    _exit(0);
  }
  close(ends[1]);
  std::string done;
  char letter;
  while (read(ends[0], &letter, 1) == 1)
    done += letter;
  close(ends[0]);
  close(listener);
  waitpid(child, nullptr, 0);
  unlink("/tmp/fsr-sandbox-test");
  unlink("/tmp/fsr-sandbox-link");
  rmdir("/tmp/fsr-sandbox-folder");
  return done;
}

TEST(Sandbox, EachLayerAloneHolds) {
  EXPECT_EQ(stillPossible([] {}), "rwdlckf.");
  EXPECT_EQ(stillPossible([] {
              forbid({SYS_landlock_create_ruleset});
              enterSandbox();
            }),
            ".!");
  if (!hasLandlock())
    GTEST_SKIP() << "needs Landlock";
  // Where a process that is no superuser cannot fork, for its limit.
  std::string left = stillPossible([] {
    forbid({SYS_seccomp});
    enterSandbox();
  });
  left.erase(std::remove(left.begin(), left.end(), 'f'), left.end());
  long abi = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  EXPECT_EQ(left, abi >= 6 ? ".!" : abi >= 4 ? "k.!" : "ck.!");
}

/// What bash says, run as a program of the toolkit.
std::string asTool(const std::string &folder, const std::string &script) {
  auto result = runProcess({FSR_TEST_WORKER, "tool", "/usr/bin", folder,
                            "/usr/bin/bash", "-c", script},
                           "");
  if (!result) {
    ADD_FAILURE() << llvm::toString(result.takeError());
    return "";
  }
  return result->out + result->err;
}

TEST(Tool, KeepsToItsFolder) {
  if (!llvm::sys::fs::can_execute("/usr/bin/bash") || !hasLandlock())
    GTEST_SKIP() << "needs bash and Landlock";
  TemporaryFolder folder, other;
  std::string secret = other.write("secret", "HIDDEN");
  ScopedVariable key("FSR_TEST_API_KEY", "sk-very-secret");
  std::string place(folder.path);
  EXPECT_EQ(asTool(place, "echo text > file; read x < file; echo got $x"),
            "got text\n");
  std::string said = asTool(place, "read x < " + secret + "; echo $x");
  EXPECT_TRUE(StringRef(said).contains("Permission denied")) << said;
  EXPECT_FALSE(StringRef(said).contains("HIDDEN"));
  said = asTool(place, "echo x > " + std::string(other.path) + "/new");
  EXPECT_TRUE(StringRef(said).contains("Permission denied")) << said;
  said = asTool(place, "ln -s " + secret + " link; read x < link; echo $x");
  EXPECT_FALSE(StringRef(said).contains("HIDDEN")) << said;
  said = asTool(place, "exec 3<>/dev/tcp/127.0.0.1/1");
  EXPECT_TRUE(StringRef(said).contains("Operation not permitted")) << said;
  said = asTool(place, "kill -0 $PPID && echo reached");
  EXPECT_FALSE(StringRef(said).contains("reached")) << said;
  said = asTool(place, "set");
  EXPECT_TRUE(StringRef(said).contains("TMPDIR=")) << said;
  EXPECT_FALSE(StringRef(said).contains("sk-very-secret"));
}

TEST(Tool, SaysWhyItDidNotStart) {
  TemporaryFolder folder;
  auto result = runProcess({FSR_TEST_WORKER, "tool", "/usr/bin",
                            std::string(folder.path), "/usr/bin/no-such-tool"},
                           "");
  ASSERT_TRUE(bool(result));
  EXPECT_EQ(result->exitCode, 1);
  EXPECT_TRUE(StringRef(result->err).contains("cannot start"));
  result = runProcess({FSR_TEST_WORKER, "tool"}, "");
  ASSERT_TRUE(bool(result));
  EXPECT_TRUE(StringRef(result->err).contains("wanted ROOT FOLDER PROGRAM"));
}

} // namespace
