// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each source here is compiled twice: with FAULTY, and without for its clean
// twin. Lines where a fault may be told are marked FAULT.
//
//===----------------------------------------------------------------------===//

#ifdef FAULTY
#define PICK(twin, faulty) faulty
#define FIX(...)
#else
#define PICK(twin, faulty) twin
#define FIX(...) __VA_ARGS__
#endif
#define KERNEL extern "C" __global__ void
