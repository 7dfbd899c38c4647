// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Text: search, counting, hashes, edit distance.

extern "C" __global__ void count_matches(const char *text, const char *pattern,
                                         int *count, int n, int m) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool found = i + m <= n;
  for (int k = 0; found && k < m; ++k)
    found = text[i + k] == pattern[k];
  unsigned votes = __ballot_sync(~0u, found);
  if ((threadIdx.x & 31) == 0 && votes)
    atomicAdd(count, __popc(votes));
}

extern "C" __global__ void to_upper_words(const unsigned *in, unsigned *out,
                                          int words) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= words)
    return;
  unsigned v = in[i];
  // 0x20 in each byte that is from 'a' to 'z'.
  unsigned lower = __vcmpgeu4(v, 0x61616161u) & __vcmpleu4(v, 0x7a7a7a7au);
  out[i] = v ^ (lower & 0x20202020u);
}

extern "C" __global__ void fnv_rows(const unsigned char *in, unsigned *out,
                                    int rows, int width) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows)
    return;
  unsigned h = 2166136261u;
  for (int k = 0; k < width; ++k)
    h = (h ^ in[row * width + k]) * 16777619u;
  out[row] = h;
}

// One diagonal after the other.
extern "C" __global__ void edit_distance(const char *a, const char *b, int *out,
                                         int n) {
  __shared__ int rows[3][65];
  int t = threadIdx.x; // 0 to n
  for (int d = 0; d <= 2 * n; ++d) {
    int i = t, j = d - t;
    int *now = rows[d % 3], *last = rows[(d + 2) % 3],
        *older = rows[(d + 1) % 3];
    if (i <= n && j >= 0 && j <= n) {
      int v;
      if (i == 0 || j == 0)
        v = i + j;
      else
        v = min(older[i - 1] + (a[i - 1] != b[j - 1]),
                min(last[i - 1], last[i]) + 1);
      now[i] = v;
    }
    __syncthreads();
  }
  if (t == n)
    *out = rows[2 * n % 3][n];
}

extern "C" __global__ void hash_insert(const unsigned *keys, unsigned *table,
                                       int n, unsigned capacity) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned key = keys[i] + 1, slot = key * 2654435761u % capacity;
  while (true) {
    unsigned old = atomicCAS(&table[slot], 0u, key);
    if (old == 0u || old == key)
      return;
    slot = (slot + 1) % capacity;
  }
}
