// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Control flow: recursion, function pointers, printf, assert, switches.

#ifndef __CUDACC_RTC__
#include <assert.h>
#include <stdio.h>
#endif

__device__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void recursion(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = fibonacci(in[i]);
}

__device__ float twice(float x) { return 2 * x; }
__device__ float square(float x) { return x * x; }
__device__ float negative(float x) { return -x; }
using Function = float (*)(float);
__device__ Function table[3] = {twice, square, negative};

extern "C" __global__ void function_pointers(const float *in, float *out,
                                             int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = table[i % 3](in[i]);
}

struct Shape {
  __device__ virtual float area() const = 0;
};
struct Disc : Shape {
  float r;
  __device__ Disc(float r) : r(r) {}
  __device__ float area() const override { return 3.f * r * r; }
};
struct Box : Shape {
  float a, b;
  __device__ Box(float a, float b) : a(a), b(b) {}
  __device__ float area() const override { return a * b; }
};

extern "C" __global__ void virtual_calls(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Disc disc(in[i]);
  Box box(in[i], 2.f);
  const Shape *shape = i % 2 ? (const Shape *)&disc : &box;
  out[i] = shape->area();
}

extern "C" __global__ void print_and_assert(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(n > 0);
  if (i < n) {
    assert(in[i] >= 0 && "never below zero");
    if (i < 3)
      printf("thread %d of block %d has %d (%.2f) %s\n", threadIdx.x,
             blockIdx.x, in[i], in[i] * 0.5, "as text");
    out[i] = in[i];
  }
}

extern "C" __global__ void switch_interpreter(const unsigned char *code,
                                              const int *in, int *out,
                                              int length, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned stack[8];
  int top = 0;
  stack[top] = in[i];
  for (int pc = 0; pc < length; ++pc)
    switch (code[pc] % 8) {
    case 0:
      stack[top] += 3;
      break;
    case 1:
      stack[top] *= 5;
      break;
    case 2:
      stack[top] ^= 0x55;
      break;
    case 3:
      if (top < 7) {
        stack[top + 1] = stack[top] + 1;
        ++top;
      }
      break;
    case 4:
      if (top > 0) {
        stack[top - 1] += stack[top];
        --top;
      }
      break;
    case 5:
      stack[top] = 0 - stack[top];
      break;
    case 6:
      stack[top] = (unsigned)((int)stack[top] >> 1);
      break;
    default:
      stack[top] = ~stack[top];
    }
  unsigned sum = 0;
  while (top >= 0)
    sum += stack[top--];
  out[i] = (int)sum;
}

// Nested loops with breaks, continues and a return from the middle.
__device__ int search(const int *in, int n, int from) {
  for (int i = from; i < n; ++i) {
    if (in[i] % 2)
      continue;
    for (int k = 2; k < 6; ++k) {
      if (in[i] % k == 1)
        break;
      if (in[i] % 7 == k)
        return i;
    }
  }
  return -1;
}

extern "C" __global__ void nested_breaks(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = search(in, n, i);
}

extern "C" __global__ void goto_state_machine(const char *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const char *p = in + i * n;
  int k = 0, words = 0;
space:
  if (k == n)
    goto end;
  if (p[k++] == 0)
    goto space;
  ++words;
word:
  if (k == n)
    goto end;
  if (p[k++] == 0)
    goto space;
  goto word;
end:
  out[i] = words;
}

template <int N>
struct Factorial {
  static constexpr long long value = N * Factorial<N - 1>::value;
};
template <>
struct Factorial<0> {
  static constexpr long long value = 1;
};

template <typename F>
__device__ void forEach(int n, F f) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    f(i);
}

extern "C" __global__ void lambdas_templates(const int *in, int *out, int n) {
  forEach(n, [=](int i) {
    if constexpr (sizeof(long) >= 4)
      out[i] = in[i] + (int)Factorial<5>::value;
  });
}
