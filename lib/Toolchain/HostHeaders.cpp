// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Headers of a host's library, as far as device code can mean them. Most are
// empty, since NVRTC or the prelude has their names; a few bring what libcu++
// has into `std`, by name, so that nothing becomes ambiguous.
//
//===----------------------------------------------------------------------===//

#include "Headers.h"

#include <iterator>

using llvm::StringRef;

namespace fsr {
namespace {

struct HostHeader {
  StringRef name, text;
};

const StringRef limitsText = R"(#pragma once
#include <cuda/std/limits>
namespace std { using ::cuda::std::numeric_limits; }
)";

const StringRef typeTraitsText = R"(#pragma once
#include <cuda/std/type_traits>
namespace std {
using ::cuda::std::conditional_t;
using ::cuda::std::decay_t;
using ::cuda::std::enable_if_t;
using ::cuda::std::is_floating_point_v;
using ::cuda::std::is_integral_v;
using ::cuda::std::is_same_v;
using ::cuda::std::is_signed_v;
using ::cuda::std::remove_cv_t;
using ::cuda::std::remove_reference_t;
} // namespace std
)";

// libcu++ has these in different headers from version to version.
const StringRef algorithmText = R"(#pragma once
namespace std {
template <class T> __device__ constexpr const T &min(const T &a, const T &b) {
  return b < a ? b : a;
}
template <class T> __device__ constexpr const T &max(const T &a, const T &b) {
  return a < b ? b : a;
}
template <class T>
__device__ constexpr const T &clamp(const T &v, const T &low, const T &high) {
  return v < low ? low : high < v ? high : v;
}
} // namespace std
)";

const StringRef utilityText = R"(#pragma once
#include <cuda/std/utility>
namespace std {
using ::cuda::std::index_sequence;
using ::cuda::std::integer_sequence;
using ::cuda::std::make_index_sequence;
using ::cuda::std::make_pair;
using ::cuda::std::pair;
using ::cuda::std::swap;
} // namespace std
)";

const StringRef arrayText = R"(#pragma once
#include <cuda/std/array>
namespace std { using ::cuda::std::array; }
)";

// The real one brings algorithms that a host starts, which NVRTC refuses.
const StringRef cubText = R"(#pragma once
#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_histogram.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_rank.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_shuffle.cuh>
#include <cub/block/block_store.cuh>
#include <cub/thread/thread_load.cuh>
#include <cub/thread/thread_operators.cuh>
#include <cub/thread/thread_reduce.cuh>
#include <cub/thread/thread_scan.cuh>
#include <cub/thread/thread_store.cuh>
#include <cub/warp/warp_exchange.cuh>
#include <cub/warp/warp_load.cuh>
#include <cub/warp/warp_merge_sort.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cub/warp/warp_store.cuh>
)";

const HostHeader hostHeaders[] = {
    {"algorithm", algorithmText},
    {"array", arrayText},
    {"assert.h", ""},
    {"builtin_types.h", ""},
    {"cassert", ""},
    {"cfloat", ""},
    {"climits", ""},
    {"cmath", ""},
    {"cstddef", ""},
    {"cstdint", ""},
    {"cstdio", ""},
    {"cstdlib", ""},
    {"cstring", ""},
    {"cub/cub.cuh", cubText},
    {"cuda_runtime.h", ""},
    {"cuda_runtime_api.h", ""},
    {"device_launch_parameters.h", ""},
    {"float.h", ""},
    {"inttypes.h", ""},
    {"iostream", ""},
    {"limits", limitsText},
    {"limits.h", ""},
    {"math.h", ""},
    {"stddef.h", ""},
    {"stdint.h", ""},
    {"stdio.h", ""},
    {"stdlib.h", ""},
    {"string.h", ""},
    {"type_traits", typeTraitsText},
    {"utility", utilityText},
};

} // namespace

const StringRef *hostHeader(StringRef name) {
  for (const HostHeader &header : hostHeaders)
    if (header.name == name)
      return &header.text;
  return nullptr;
}

StringRef preludeText() {
  static const char text[] =
#include "Prelude.inc"
      ;
  return StringRef(text, std::size(text) - 1);
}

} // namespace fsr
