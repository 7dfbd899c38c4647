// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// LLM text through the real compiler: what must compile, what must be refused,
// and what the message says.
//
//===----------------------------------------------------------------------===//

#include "ToolchainTesting.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"

using namespace fsr;
using namespace fsr::testing;
using llvm::StringRef;

namespace {

const char reduction[] = R"(
extern "C" __global__ void k(const float *x, float *y) {
  __shared__ float s[128];
  s[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = s[127 - threadIdx.x];
})";

TEST(Compiler, GivesPtxCubinAndResources) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(reduction);
  ASSERT_TRUE(outcome.build) << outcome.message;
  EXPECT_TRUE(StringRef(outcome.build->ptx).contains(".visible .entry k("));
  EXPECT_TRUE(StringRef(outcome.build->ptx).contains(".target sm_90a"));
  EXPECT_TRUE(StringRef(outcome.build->cubin)
                  .starts_with("\x7f"
                               "ELF"));
  EXPECT_EQ(outcome.build->chip, "sm_90a");
  EXPECT_TRUE(StringRef(outcome.build->toolchain).starts_with("NVRTC 1"));
  const KernelResources *resources = outcome.build->find("k");
  ASSERT_TRUE(resources);
  EXPECT_GT(resources->registers, 0);
  EXPECT_EQ(resources->sharedBytes, 512);
  EXPECT_EQ(outcome.build->log, "");
}

TEST(Compiler, TheSameTextGivesTheSameBytes) {
  FSR_NEED_NVRTC();
  CompileOutcome first = compile(reduction), second = compile(reduction);
  ASSERT_TRUE(first.build && second.build);
  EXPECT_EQ(first.build->ptx, second.build->ptx);
  EXPECT_EQ(first.build->cubin, second.build->cubin);
}

/// However a text gets at the words: the time of the build is no time.
TEST(Compiler, EveryBuildIsOfOneSecond) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(R"(
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
constexpr bool same(const char *a, const char *b) {
  return *a == *b && (!*a || same(a + 1, b + 1));
}
static_assert(same(PASTE(__DA, TE__), "Jan  1 1970"));
static_assert(same(PASTE(__TI, ME__), "00:00:00"));
extern "C" __global__ void k(float *x) { *x = 1; })");
  EXPECT_TRUE(outcome.build) << outcome.message;
}

/// Those that NVRTC has not: were it to get them, they would have to be looked
/// at.
TEST(Compiler, HasNoOtherMacroThatChanges) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(R"(
#define PASTE2(a, b) a##b
#define PASTE(a, b) PASTE2(a, b)
constexpr int PASTE(__TIMEST, AMP__) = 5;
constexpr int PASTE(__COUN, TER__) = 6;
constexpr bool ends(const char *a, const char *b) {
  return !*a ? !*b : *a == *b && ends(a + 1, b + 1);
}
static_assert(ends(PASTE(__FI, LE__), "kernel.cu"));
extern "C" __global__ void k(float *x) { *x = 1; })");
  EXPECT_TRUE(outcome.build) << outcome.message;
}

TEST(Compiler, ParametersAreMacros) {
  FSR_NEED_NVRTC();
  const char source[] = R"(
    extern "C" __global__ void k(float *x) {
      __shared__ float s[TILE * ROWS];
      s[threadIdx.x] = x[threadIdx.x];
      __syncthreads();
      x[threadIdx.x] = s[TILE * ROWS - 1 - threadIdx.x];
    })";
  CompileOutcome outcome = compile(source, {"k"}, {{"TILE", 32}, {"ROWS", 3}});
  ASSERT_TRUE(outcome.build) << outcome.message;
  EXPECT_EQ(outcome.build->find("k")->sharedBytes, 384);
  EXPECT_EQ(compile(source).verdict, Verdict::CompileFailed);
  outcome = compile(source, {"k"}, {{"TILE=1 -DX", 32}});
  EXPECT_EQ(outcome.verdict, Verdict::Rejected);
  EXPECT_TRUE(StringRef(outcome.message).contains("no identifier"));
}

/// The names that headers, NVRTC's own among them, give to their templates.
TEST(Compiler, ParametersMayBeCalledAsHeadersDo) {
  FSR_NEED_NVRTC();
  const char source[] = R"(#include <cuda_fp16.h>
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void k(float *x) {
  __shared__ typename cub::BlockReduce<float, T>::TempStorage s;
  float sum = cub::BlockReduce<float, T>(s).Sum(x[threadIdx.x]);
  x[threadIdx.x] = __half2float(__float2half(sum)) + N;
}
)";
  CompileOutcome outcome = compile(source, {"k"}, {{"T", 128}, {"N", 2}});
  ASSERT_TRUE(outcome.build) << outcome.message;
  outcome = compile(std::string(source) + "int y = T z;\n", {"k"},
                    {{"T", 128}, {"N", 2}});
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_TRUE(StringRef(outcome.message).starts_with("kernel.cu(8): error"))
      << outcome.message;
}

struct Sample {
  const char *name, *source;
};

class CompilesTest : public ::testing::TestWithParam<Sample> {};

TEST_P(CompilesTest, Compiles) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(GetParam().source);
  EXPECT_TRUE(outcome.build) << outcome.message;
}

const Sample samples[] = {
    {"Half", R"(
#include <cuda_fp16.h>
#include <cuda_bf16.h>
extern "C" __global__ void k(__half *x, __nv_bfloat16 *y) {
  x[threadIdx.x] = __hadd(x[threadIdx.x], __float2half(1.0f));
  y[threadIdx.x] = __float2bfloat16(__bfloat162float(y[0]) * 2.0f);
})"},
    {"Wmma", R"(
#include <mma.h>
using namespace nvcuda;
extern "C" __global__ void k(const __half *a, const __half *b, float *c) {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
  wmma::fill_fragment(fc, 0.0f);
  wmma::load_matrix_sync(fa, a, 16);
  wmma::load_matrix_sync(fb, b, 16);
  wmma::mma_sync(fc, fa, fb, fc);
  wmma::store_matrix_sync(c, fc, 16, wmma::mem_row_major);
})"},
    {"CooperativeGroups", R"(
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(float *x) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  float sum = cg::reduce(warp, x[threadIdx.x], cg::plus<float>());
  if (warp.thread_rank() == 0)
    x[threadIdx.x] = sum;
})"},
    {"CubBlockReduce", R"(
#include <cub/block/block_reduce.cuh>
extern "C" __global__ void k(float *x) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  float sum = Reduce(storage).Sum(x[threadIdx.x]);
  if (threadIdx.x == 0)
    x[0] = sum;
})"},
    {"CubWhole", R"(
#include <cub/cub.cuh>
extern "C" __global__ void k(int *x) {
  using Scan = cub::WarpScan<int>;
  __shared__ typename Scan::TempStorage storage;
  int sum;
  Scan(storage).InclusiveSum(x[threadIdx.x], sum);
  x[threadIdx.x] = sum;
})"},
    {"Pipeline", R"(
#include <cuda_pipeline.h>
extern "C" __global__ void k(float4 *x) {
  __shared__ float4 s[128];
  __pipeline_memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  x[threadIdx.x] = s[127 - threadIdx.x];
})"},
    {"Barrier", R"(
#include <cuda/barrier>
extern "C" __global__ void k(int *x) {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0)
    init(&barrier, blockDim.x);
  __syncthreads();
  barrier.arrive_and_wait();
  x[threadIdx.x] = 1;
})"},
    {"AsynchronousCopies", R"(
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int *x) {
  __shared__ int s[128];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, s, x, sizeof(s));
  cg::wait(block);
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(&s[threadIdx.x], &x[threadIdx.x], 4, pipe);
  pipe.producer_commit();
  pipe.consumer_wait();
  x[threadIdx.x] = s[127 - threadIdx.x];
  pipe.consumer_release();
})"},
    {"Atomics", R"(
#include <cuda/atomic>
extern "C" __global__ void k(int *x) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ref(x[0]);
  ref.fetch_add(1, cuda::memory_order_relaxed);
})"},
    {"DriverTypes", R"(
#include <cuda.h>
#include <cuda_fp8.h>
extern "C" __global__ void k(__grid_constant__ const CUtensorMap map,
                             float *x) {
  __shared__ alignas(128) float s[64];
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map));
  x[0] = float(__nv_fp8_e4m3(x[1])) + s[threadIdx.x];
})"},
    {"Clusters", R"(
#include <cooperative_groups.h>
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(int *x) {
  __shared__ int s;
  auto cluster = cooperative_groups::this_cluster();
  s = threadIdx.x;
  cluster.sync();
  x[0] = *cluster.map_shared_rank(&s, 1);
  cluster.sync();
})"},
    {"CooperativeGroupsAll", R"(
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(float *x) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<16> tile = cg::tiled_partition<16>(block);
  auto active = cg::coalesced_threads();
  x[block.thread_rank()] = cg::inclusive_scan(tile, x[block.thread_rank()]);
  block.sync();
  x[active.thread_rank()] += tile.shfl_down(x[0], 1);
})"},
    {"CudaStd", R"(
#include <cuda/std/limits>
#include <cuda/std/array>
extern "C" __global__ void k(float *x) {
  cuda::std::array<float, 2> a{x[0], cuda::std::numeric_limits<float>::max()};
  x[1] = a[0] + a[1];
})"},
    {"InlinePtx", R"(
extern "C" __global__ void k(unsigned *x) {
  unsigned lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm volatile("{ .reg .pred p; setp.gt.u32 p, %1, 3;\n"
               "@p st.global.u32 [%0], %1; }" ::"l"(x), "r"(lane) : "memory");
})"},
    {"HostHabits", R"(
#include <cstdint>
#include <stdint.h>
#include <cmath>
#include <math.h>
#include <cfloat>
#include <climits>
#include <stdio.h>
#include <cassert>
#include <cuda_runtime.h>
#include <math_constants.h>
#include <limits>
#include <algorithm>
#include <type_traits>
#include <utility>
#include <array>
typedef unsigned int uint32_t;
float helper(float x) { return x; }
extern "C" __global__ void k(float *x, int64_t n, size_t m) {
  static_assert(std::is_same_v<float, float>, "");
  x[0] = fmaxf(-INFINITY, -FLT_MAX) + helper(CUDART_INF_F) + NAN + M_PI;
  x[1] = std::numeric_limits<float>::infinity() + std::max(1, INT_MAX);
  x[2] = float(int8_t(3) + uint16_t(m) + UINT32_MAX) + sqrtf(x[n]);
  std::array<float, 2> pair{x[3], x[4]};
  assert(x[3] == pair[0]);
  if (n < 0)
    printf("%f\n", x[5]);
})"},
    {"HonestNeighbours", R"(
__device__ unsigned readOnly[3] = {3, 4, 5};
__device__ __noinline__ float scaled(const float *x, int i) { return x[i] * 2; }
extern "C" __global__ void k(float *x, int n) {
  unsigned lane, blocks;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%nsmid;" : "=r"(blocks));
  asm volatile("griddepcontrol.wait;");
  asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(x + n));
  for (int i = threadIdx.x + lane; i < n; i += gridDim.x * blocks)
    x[i] = scaled(x, i) + readOnly[i % 3];
  __nanosleep(20);
  if (n < 0)
    __trap();
})"},
    {"ConstantTables", R"(
__constant__ float weights[3] = {0.25f, 0.5f, 0.25f};
__device__ const int order[4] = {3, 1, 0, 2};
static constexpr float scale[2] = {2.0f, 3.0f};
extern "C" __global__ void k(float *x, int n) {
  x[order[n & 3]] = weights[n % 3] * scale[n & 1];
})"},
    // In PTX no different from one that nobody fills.
    {"ConstantZeros", R"(
__constant__ float floors[4] = {0, 0, 0, 0};
extern "C" __global__ void k(float *x, int n) { x[n] = floors[n & 3]; })"},
    {"StringsAndTablesInLocalArrays", R"(
__device__ const float a[2] = {0, 1}, b[2] = {0, 2};
extern "C" __global__ void k(float *x, int n) {
  const float *t[2] = {a, b};
  const char *names[2] = {"aa", "bb"};
  x[0] = t[n & 1][n >> 1 & 1] + names[n & 1][1];
  if (n > 7)
    printf("%s:%d %s\n", __FILE__, __LINE__, names[n & 1]);
})"},
};

INSTANTIATE_TEST_SUITE_P(All, CompilesTest, ::testing::ValuesIn(samples),
                         [](const auto &info) { return info.param.name; });

TEST(Compiler, ErrorNamesTheLineOfTheSource) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome =
      compile("extern \"C\" __global__ void k(float *x) {\n"
              "  x[0] = 1;\n"
              "  x[1] = undefined_name;\n"
              "}\n");
  EXPECT_FALSE(outcome.build);
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_TRUE(StringRef(outcome.message).starts_with("kernel.cu(3): error: "))
      << outcome.message;
  EXPECT_TRUE(StringRef(outcome.message).contains("undefined_name"));
}

TEST(Compiler, UnknownHeaderIsTheSourcesFault) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome =
      compile("#include <cutlass/gemm.h>\nextern \"C\" __global__ void k() {}");
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_TRUE(StringRef(outcome.message).contains("cutlass/gemm.h"))
      << outcome.message;
}

TEST(Compiler, UndefinedFunctionsFail) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(
      "extern \"C\" __device__ int elsewhere(int);\n"
      "extern \"C\" __global__ void k(int *x) { *x = elsewhere(1); }\n");
  EXPECT_EQ(outcome.verdict, Verdict::CompileFailed);
  EXPECT_TRUE(StringRef(outcome.message).contains("elsewhere"))
      << outcome.message;
}

TEST(Compiler, HostCodeIsRejectedWithTheLog) {
  FSR_NEED_NVRTC();
  for (auto [source, word] :
       {std::pair("extern \"C\" __global__ void k(int *x) {\n"
                  "  k<<<1, 1>>>(x);\n}\n",
                  "device-side kernel launch"),
        {"extern \"C\" __global__ void k(int *x) { *x = 1; }\n"
         "void run() { int *p; cudaMalloc(&p, 4); k<<<1, 1>>>(p); }\n",
         "identifier \"cudaMalloc\""},
        {"extern \"C\" __global__ void k(int *x) { *x = 1; }\n"
         "__host__ int f() { return 1; }\n",
         "explicitly marked as a __host__"}}) {
    CompileOutcome outcome = compile(source);
    EXPECT_EQ(outcome.verdict, Verdict::Rejected) << source;
    EXPECT_TRUE(StringRef(outcome.message).contains("line 2: holds host code"))
        << outcome.message;
    EXPECT_TRUE(StringRef(outcome.message).contains(word)) << outcome.message;
    EXPECT_TRUE(StringRef(outcome.message).contains("kernel.cu(2): error"))
        << outcome.message;
  }
}

TEST(Compiler, MissingEntryIsRejected) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(reduction, {"k", "other"});
  EXPECT_EQ(outcome.verdict, Verdict::Rejected);
  EXPECT_TRUE(StringRef(outcome.message)
                  .contains("defines no kernel `other`; it defines `k`"))
      << outcome.message;
}

struct Refused {
  const char *name, *source, *reason;
};

class RefusesTest : public ::testing::TestWithParam<Refused> {};

TEST_P(RefusesTest, Refuses) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(GetParam().source);
  EXPECT_FALSE(outcome.build);
  EXPECT_EQ(outcome.verdict, Verdict::Rejected) << outcome.message;
  EXPECT_TRUE(StringRef(outcome.message).contains(GetParam().reason))
      << outcome.message;
}

const Refused refused[] = {
    {"WritableGlobal", R"(
__device__ int cache;
extern "C" __global__ void k(int *x) { cache += x[0]; x[0] = cache; })",
     "`cache`"},
    {"StaticLocal", R"(
extern "C" __global__ void k(int *x) { static int calls; x[0] = calls++; })",
     "calls"},
    {"AtomicGlobal", R"(
__device__ unsigned ticket;
extern "C" __global__ void k(unsigned *x) { x[0] = atomicAdd(&ticket, 1); })",
     "`ticket`"},
    {"GlobalThroughPointer", R"(
__device__ float table[1024];
__device__ __noinline__ void put(float *p, float v) { p[threadIdx.x] = v; }
extern "C" __global__ void k(float *x) { put(table, x[0]); x[1] = table[3]; })",
     "`table`"},
    {"ConstCastAway", R"(
__device__ const int table[4] = {1, 2, 3, 4};
extern "C" __global__ void k(int *x) {
  int *p = const_cast<int *>(table);
  asm volatile("st.global.u32 [%0], %1;" ::"l"(p + x[1]), "r"(x[0]));
  x[2] = table[x[3]];
})",
     "`table`"},
    {"AsmGlobal", R"(
extern "C" __global__ void k(unsigned *x) {
  asm volatile(".global .u32 sneak;");
  asm volatile("st.global.u32 [sneak], %0;" ::"r"(x[0]));
})",
     "inline assembly declares"},
    {"AsmBehindLoc", R"(
__device__ int table;
extern "C" __global__ void k(int *x) {
  asm volatile(".loc 1 1 1 st.global.u32 [table], 5;");
  x[0] = table;
})",
     "`table`"},
    {"Clock", R"(
extern "C" __global__ void k(long long *x) { x[0] = clock64(); })",
     "reads a clock"},
    {"PastedClock", R"(
#define NAME2(a, b) #a #b
#define NAME(a, b) NAME2(a, b)
#define HALF clo
extern "C" __global__ void k(unsigned *x) {
  asm volatile("mov.u32 %0, %%" NAME(HALF, ck) ";" : "=r"(x[0]));
})",
     "reads a clock"},
    {"GlobalTimer", R"(
extern "C" __global__ void k(unsigned long long *x) {
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(x[0]));
})",
     "reads a clock"},
    {"Multiprocessor", R"(
extern "C" __global__ void k(unsigned *x) {
  asm volatile("mov.u32 %0, %%smid;" : "=r"(x[0]));
})",
     "multiprocessor"},
    {"Heap", R"(
extern "C" __global__ void k(float **x) { x[0] = new float[100]; })",
     "device heap"},
    {"WarpPlace", R"(
extern "C" __global__ void k(unsigned *x) {
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(x[0]));
})",
     "compute the warp from threadIdx"},
    {"EarlyNextLaunch", R"(
extern "C" __global__ void k(int *x) {
  asm volatile("griddepcontrol.launch_dependents;");
  x[0] = 1;
})",
     "lets the next launch start"},
    {"Surface", R"(
extern "C" __global__ void k(int *x, long long s) {
  asm volatile("sust.b.1d.b32.trap [%0, {%1}], %2;" ::"l"(s), "r"(x[0]),
               "r"(x[1]));
})",
     "nobody binds"},
    {"CacheByContent", R"(
__device__ float cached[1024];
__device__ unsigned fingerprint;
extern "C" __global__ void k(const float *x, float *y, unsigned n) {
  if (fingerprint == __float_as_uint(x[0])) { y[threadIdx.x] = cached[threadIdx.x]; return; }
  y[threadIdx.x] = cached[threadIdx.x] = x[threadIdx.x] * n;
  fingerprint = __float_as_uint(x[0]);
})",
     "use a scratch buffer of the plan"},
    {"NameInAssembly", R"(
__device__ unsigned hidden = 3;
extern "C" __global__ void k(unsigned *x) {
  asm volatile("{ .reg .b64 p; mov.b64 p, %0; st.global.u32 [p], %1; }" ::"l"(&hidden), "r"(x[1]));
})",
     "`hidden`"},
    {"HugeTable", R"(
__device__ char table[65 << 20];
extern "C" __global__ void k(int *x) { x[0] = table[x[1]]; })",
     "variables in device memory take"},
    {"GridBarrier", R"(
#include <cooperative_groups.h>
extern "C" __global__ void k(int *x) {
  x[0] = 1;
  cooperative_groups::this_grid().sync();
})",
     "grid-wide barrier"},
};

INSTANTIATE_TEST_SUITE_P(All, RefusesTest, ::testing::ValuesIn(refused),
                         [](const auto &info) { return info.param.name; });

TEST(Compiler, UnknownChipIsAnError) {
  FSR_NEED_NVRTC();
  std::unique_ptr<Compiler> compiler = newCompiler();
  ASSERT_TRUE(compiler);
  CompileRequest request;
  request.source = reduction;
  request.chip = "sm_20";
  auto outcome = compiler->compile(request);
  ASSERT_FALSE(outcome);
  llvm::Error error = outcome.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::Unsupported);
  EXPECT_TRUE(StringRef(llvm::toString(std::move(error)))
                  .contains("makes no code for sm_20"));
}

TEST(Compiler, HugeSourceIsRejected) {
  FSR_NEED_NVRTC();
  CompileOutcome outcome = compile(std::string(size_t(2) << 20, ' '));
  EXPECT_EQ(outcome.verdict, Verdict::Rejected);
}

TEST(Compiler, MissingWorkerIsAnError) {
  FSR_NEED_NVRTC();
  CompilerOptions options;
  options.worker = "/nowhere/fsr-worker";
  auto compiler = makeCudaCompiler(options);
  ASSERT_FALSE(compiler);
  llvm::Error error = compiler.takeError();
  EXPECT_EQ(kindOf(error), ErrorKind::Unavailable);
  EXPECT_TRUE(StringRef(llvm::toString(std::move(error)))
                  .contains("/nowhere/fsr-worker"));
}

TEST(Compiler, LooksForTheWorkerInFsrBin) {
  FSR_NEED_NVRTC();
  std::string folder = llvm::sys::path::parent_path(FSR_TEST_WORKER).str();
  {
    ScopedVariable variable("FSR_BIN", folder.c_str());
    auto compiler = makeCudaCompiler({});
    EXPECT_TRUE(bool(compiler)) << llvm::toString(compiler.takeError());
  }
  TemporaryFolder empty;
  std::string path(empty.path);
  ScopedVariable variable("FSR_BIN", path.c_str());
  auto compiler = makeCudaCompiler({});
  ASSERT_FALSE(compiler);
  EXPECT_EQ(llvm::toString(compiler.takeError()),
            "program 'fsr-worker' not found; looked in " + path +
                "; FSR_BIN names the folder it is in");
}

TEST(Compiler, WorkerThatIsNoneIsAnError) {
  FSR_NEED_NVRTC();
  CompilerOptions options;
  options.worker = "/bin/true";
  auto compiler = makeCudaCompiler(options);
  ASSERT_TRUE(bool(compiler));
  CompileRequest request;
  request.source = reduction;
  request.chip = "sm_90";
  auto outcome = (*compiler)->compile(request);
  ASSERT_FALSE(outcome);
  EXPECT_TRUE(StringRef(llvm::toString(outcome.takeError()))
                  .contains("before it was ready"));
}

} // namespace
