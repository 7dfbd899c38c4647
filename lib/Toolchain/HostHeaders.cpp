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

const StringRef algorithmText = R"(#pragma once
#include <cuda/std/algorithm>
namespace std {
using ::cuda::std::clamp;
using ::cuda::std::max;
using ::cuda::std::min;
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
