# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what a benchmark module of the size `odd` has to print, computed in double
precision and independently of the templates."""

import math
import struct
import sys


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def fill(count, number, mean, deviation):
    """The input `number` of a module: uniform by a hash of the place."""
    half, values = f32(round(deviation * math.sqrt(3), 6)), []
    for i in range(count):
        h = (i + 0x9E3779B9 * (number + 1)) & 0xFFFFFFFF
        h = ((h ^ h >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
        h = ((h ^ h >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
        h ^= h >> 16
        values.append(f32(f32(((h >> 8) - 2**23) * 2**-23 * half) + mean))
    return values


def matmul(m=97, k=113, n=83):
    a, b = fill(m * k, 0, 0, 1), fill(k * n, 1, 0, 1)
    return [math.fsum(a[i * k + p] * b[p * n + j] for p in range(k))
            for i in range(m) for j in range(n)]


def rows(x, width):
    return [x[i:i + width] for i in range(0, len(x), width)]


def softmax(r=251, c=509):
    result = []
    for row in rows(fill(r * c, 0, 0, 5), c):
        largest = max(row)
        powers = [math.exp(v - largest) for v in row]
        total = math.fsum(powers)
        result += [p / total for p in powers]
    return result


def layer_norm(r=251, c=509):
    gamma, beta, result = fill(c, 1, 1, 0.5), fill(c, 2, 0, 1), []
    for row in rows(fill(r * c, 0, 3, 5), c):
        mean = math.fsum(row) / c
        variance = math.fsum((v - mean) ** 2 for v in row) / c
        result += [(v - mean) / math.sqrt(variance + 1e-5) * g + b
                   for v, g, b in zip(row, gamma, beta)]
    return result


values = {"matmul": matmul, "softmax": softmax, "layer_norm": layer_norm}[sys.argv[1]]()
stride = (len(values) - 1) // 15
print(len(values))
for value in [math.fsum(values), math.fsum(map(abs, values)), *values[:15 * stride + 1:stride]]:
    print(f"{struct.unpack('<q', struct.pack('<d', value))[0]}, {value:g}")
