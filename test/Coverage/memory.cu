// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Memory of all kinds: local arrays, constants, the heap, volatile, fences.

__constant__ float coefficients[8] = {1, 2, 4, 8, 16, 32, 64, 128};
__device__ int scratch[64];
__device__ const int powers[5] = {1, 10, 100, 1000, 10000};

extern "C" __global__ void constant_table(const int *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = coefficients[in[i]];
}

extern "C" __global__ void local_array_dynamic(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int counts[16];
  for (int k = 0; k < 16; ++k)
    counts[k] = 0;
  for (int k = 0; k < 32; ++k)
    ++counts[in[(i + k) % n] & 15];
  int most = 0;
  for (int k = 1; k < 16; ++k)
    if (counts[k] > counts[most])
      most = k;
  out[i] = counts[most];
}

extern "C" __global__ void insertion_sort_local(const int *in, int *out) {
  int keys[32];
  int base = (blockIdx.x * blockDim.x + threadIdx.x) * 32;
  for (int k = 0; k < 32; ++k)
    keys[k] = in[base + k];
  for (int k = 1; k < 32; ++k) {
    int key = keys[k], at = k - 1;
    while (at >= 0 && keys[at] > key) {
      keys[at + 1] = keys[at];
      --at;
    }
    keys[at + 1] = key;
  }
  for (int k = 0; k < 32; ++k)
    out[base + k] = keys[k];
}

extern "C" __global__ void device_globals(const int *in, int *out) {
  int t = threadIdx.x; // 64
  scratch[t] = in[t];
  __syncthreads();
  out[t] = scratch[63 - t] * powers[0];
}

extern "C" __global__ void heap_lists(const int *in, int *out, int n) {
  struct Node {
    int value;
    Node *next;
  };
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Node *head = nullptr;
  for (int k = 0; k < 4; ++k) {
    Node *node = (Node *)malloc(sizeof(Node));
    node->value = in[i] + k;
    node->next = head;
    head = node;
  }
  int sum = 0;
  while (head) {
    sum += head->value;
    Node *next = head->next;
    free(head);
    head = next;
  }
  out[i] = sum;
}

// One warp gives to the other through shared memory and a flag.
extern "C" __global__ void volatile_flag(const int *in, int *out) {
  __shared__ volatile int value[32];
  __shared__ volatile int ready;
  if (threadIdx.x == 0)
    ready = 0;
  __syncthreads();
  int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    value[lane] = in[lane];
    __threadfence_block();
    __syncwarp();
    if (lane == 0)
      ready = 1;
  } else {
    while (!ready)
      ;
    __threadfence_block();
    out[lane] = value[lane];
  }
}

extern "C" __global__ void spin_lock(int *lock, int *counter, int rounds) {
  if (threadIdx.x % 32 == 0)
    for (int r = 0; r < rounds; ++r) {
      while (atomicCAS(lock, 0, 1) != 0)
        ;
      __threadfence();
      *(volatile int *)counter = *(volatile int *)counter + 1;
      __threadfence();
      atomicExch(lock, 0);
    }
}

extern "C" __global__ void atomics_of_all_kinds(const int *in, int *out,
                                                int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int v = in[i];
  atomicAdd(&out[0], v);
  atomicSub(&out[1], v);
  atomicMin(&out[2], v);
  atomicMax(&out[3], v);
  atomicAnd(&out[4], v | 0xff00);
  atomicOr(&out[5], v);
  atomicXor(&out[6], v);
  atomicInc((unsigned *)&out[7], 1000000u);
  atomicDec((unsigned *)&out[8], 1000000u);
  atomicMax((unsigned long long *)&out[10], (unsigned long long)v << 32);
  if (blockIdx.x == 0)
    atomicAdd_block(&out[12], 1);
  atomicAdd_system(&out[13], 1);
}

union Pun {
  float f;
  unsigned u;
  unsigned char b[4];
};

extern "C" __global__ void type_punning(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  Pun p;
  p.f = in[i];
  p.b[3] ^= 0x80; // The sign.
  p.u ^= 0x80000000u;
  out[i] =
      p.f + __int_as_float(__float_as_int(in[i]) & 0x7fffffff) - fabsf(in[i]);
}

struct __align__(16) Particle {
  float3 position;
  float mass;
  double charge;
  short kind;
  char name[6];
};

extern "C" __global__ void structs_by_value(const float *in, float *out,
                                            int n) {
  extern __shared__ Particle particles[];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  Particle p = {make_float3(0, 0, 0), 0, 0, 0, "abc"};
  if (i < n) {
    p.position.y = in[i];
    p.charge = 2.0 * in[i];
    p.kind = (short)i;
  }
  particles[threadIdx.x] = p;
  __syncthreads();
  Particle q = particles[threadIdx.x ^ 1];
  if (i < n)
    out[i ^ 1] = q.position.y + (float)q.charge - 3 * q.position.y + q.mass +
                 in[i ^ 1] * (q.name[1] == 'b');
}

// Several arrays in one piece of dynamic shared memory.
extern "C" __global__ void shared_carved(const float *in, float *out, int n) {
  extern __shared__ char raw[];
  float *values = reinterpret_cast<float *>(raw);
  int *order = reinterpret_cast<int *>(values + blockDim.x);
  double *wide = reinterpret_cast<double *>(order + blockDim.x);
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  values[t] = i < n ? in[i] : 0.f;
  order[t] = (t + 5) % blockDim.x;
  __syncthreads();
  wide[order[t]] = values[t];
  __syncthreads();
  if (i < n)
    out[i] = (float)wide[order[t]];
}

extern "C" __global__ void pointer_chase(const int *next, int *out, int steps) {
  int at = threadIdx.x;
  for (int s = 0; s < steps; ++s)
    at = next[at];
  out[threadIdx.x] = at;
}

extern "C" __global__ void wide_indices(const float *in, float *out,
                                        size_t rows, size_t columns) {
  size_t total = rows * columns;
  for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < total;
       i += (size_t)gridDim.x * blockDim.x) {
    size_t r = i / columns, c = i % columns;
    out[c * rows + r] = in[i];
  }
}
