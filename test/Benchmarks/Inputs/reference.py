# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints what a benchmark module has to print, computed in double precision and
independently of the templates: reference.py KERNEL.SIZE"""

import math
import struct
import sys

SIGMA = math.sqrt(3)


def f32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def hashes(count, number):
    for i in range(count):
        h = (i + 0x9E3779B9 * (number + 1)) & 0xFFFFFFFF
        h = ((h ^ h >> 16) * 0x85EBCA6B) & 0xFFFFFFFF
        h = ((h ^ h >> 13) * 0xC2B2AE35) & 0xFFFFFFFF
        yield h ^ h >> 16


def uniform(count, number, mean, half):
    """The input `number` of a module: uniform by a hash of the place."""
    half = f32(round(half, 6))
    return [f32(f32(((h >> 8) - 2**23) * 2**-23 * half) + mean)
            for h in hashes(count, number)]


def fill(count, number, mean, deviation):
    return uniform(count, number, mean, deviation * SIGMA)


def rows(x, width):
    return [x[i:i + width] for i in range(0, len(x), width)]


def columns(x, width):
    return [x[i::width] for i in range(width)]


def matmul(m, k, n):
    a, b = rows(fill(m * k, 0, 0, 1), k), columns(fill(k * n, 1, 0, 1), n)
    return [math.fsum(map(float.__mul__, row, column)) for row in a for column in b]


def softmax(r, c):
    result = []
    for row in rows(fill(r * c, 0, 0, 5), c):
        largest = max(row)
        powers = [math.exp(v - largest) for v in row]
        total = math.fsum(powers)
        result += [p / total for p in powers]
    return result


def layer_norm(r, c):
    gamma, beta, result = fill(c, 1, 1, 0.5), fill(c, 2, 0, 1), []
    for row in rows(fill(r * c, 0, 3, 5), c):
        mean = math.fsum(row) / c
        variance = math.fsum((v - mean) ** 2 for v in row) / c
        result += [(v - mean) / math.sqrt(variance + 1e-5) * g + b
                   for v, g, b in zip(row, gamma, beta)]
    return result


def sigmoid(n):
    return [1 / (1 + math.exp(-v)) for v in fill(n, 0, 0, 3)]


def relu(n):
    return [max(v, 0.0) for v in fill(n, 0, 0, 1)]


def max_pool3d(n, c, d, h, w):
    x, result = fill(n * c * d * h * w, 0, 0, 1), []

    def window(o, size):
        return [i for i in (2 * o - 1 + 3 * k for k in range(3)) if 0 <= i < size]

    od, oh, ow = ((size - 5) // 2 + 1 for size in (d, h, w))
    for plane in range(n * c):
        for a in range(od):
            for b in range(oh):
                for e in range(ow):
                    result.append(max(x[((plane * d + i) * h + j) * w + k]
                                      for i in window(a, d) for j in window(b, h)
                                      for k in window(e, w)))
    return result


def conv2d(h, w, k):
    image, weights = rows(fill(h * w, 0, 0, 1), w), rows(fill(k * k, 1, 0, 1), k)
    return [math.fsum(image[y + u][x + v] * weights[u][v]
                      for u in range(k) for v in range(k))
            for y in range(h - k + 1) for x in range(w - k + 1)]


def attention(s, d, heads):
    q, k, v = (rows(fill(s * d, number, 0, 1), d) for number in range(3))
    depth = d // heads
    result = [[0.0] * d for _ in range(s)]
    for head in range(heads):
        part = slice(head * depth, (head + 1) * depth)
        for i in range(s):
            scores = [math.fsum(map(float.__mul__, q[i][part], k[j][part])) /
                      math.sqrt(depth) for j in range(s)]
            powers = [math.exp(score - max(scores)) for score in scores]
            total = math.fsum(powers)
            result[i][part] = [math.fsum(map(float.__mul__, powers, column)) / total
                               for column in zip(*(row[part] for row in v))]
    return sum(result, [])


def mse(n):
    p, t = fill(n, 0, 2, 10), fill(n, 1, 0, 10)
    return [math.fsum((a - b) ** 2 for a, b in zip(p, t)) / n]


def transpose(r, c):
    return sum(columns(uniform(r * c, 0, 0, 1), c), [])


def matrix_copy(r, c):
    return uniform(r * c, 0, 0, 1)


def reverse(n):
    return uniform(n, 0, 0, 1)[::-1]


def top_k(n, k):
    return sorted(uniform(n, 0, 0, 1), reverse=True)[:k]


def sort(n):
    return sorted(uniform(n, 0, 0, 1))


def reduction(n):
    return [math.fsum(uniform(n, 0, 0.5, 5))]


def dot(n):
    return [math.fsum(map(float.__mul__, fill(n, 0, 0, 1), fill(n, 1, 0, 1)))]


def prefix_sum(n):
    result, total = [], 0.0
    for v in uniform(n, 0, 0.5, 0.5):
        total += v
        result.append(total)
    return result


def cross_entropy(r, c):
    labels, losses = [h % c for h in hashes(r, 1)], []
    for row, label in zip(rows(fill(r * c, 0, 0, 3), c), labels):
        losses.append(math.log(math.fsum(map(math.exp, row))) - row[label])
    return [math.fsum(losses) / r]


def monte_carlo(n):
    return [3 * math.fsum(uniform(n, 0, 0.25, 1)) / n]


def histogram(n):
    bins = [0.0] * 256
    for h in hashes(n, 0):
        bins[h % 256] += 1
    return bins


def ols(n, f=10):
    x = rows(fill(n * f, 0, 0, 1), f)
    y = uniform(n, 1, 0, 0.173205)
    for i, row in enumerate(x):
        for j, v in enumerate(row):
            y[i] = f32(y[i] + f32(v * (1 + j / 8)))
    by_feature = list(zip(*x))
    m = [[math.fsum(map(float.__mul__, a, b)) for b in by_feature + [tuple(y)]]
         for a in by_feature]
    for p in range(f):  # Gauss and Jordan: what is left is the solution.
        m[p] = [v / m[p][p] for v in m[p]]
        for i in range(f):
            if i != p:
                m[i] = [v - m[i][p] * w for v, w in zip(m[i], m[p])]
    return [row[f] for row in m]


SIZES = {
    "matmul": {"t": (96, 112, 80), "odd": (97, 113, 83)},
    "softmax": {"t": (256, 512), "odd": (251, 509)},
    "layer_norm": {"t": (256, 512), "odd": (251, 509)},
    "sigmoid": {"t": (16384,), "odd": (16381,)},
    "relu": {"t": (32768,), "odd": (32749,)},
    "max_pool3d": {"t": (2, 4, 20, 18, 16), "odd": (3, 5, 13, 11, 17)},
    "conv2d": {"t": (70, 86, 7), "odd": (71, 83, 5)},
    "attention": {"t": (64, 64, 4), "odd": (61, 51, 3)},
    "mse": {"t": (8192,), "odd": (8191,)},
    "transpose": {"t": (192, 160), "odd": (191, 157)},
    "reverse": {"t": (32768,), "odd": (32749,)},
    "top_k": {"t": (2048, 16), "odd": (2039, 13)},
    "sort": {"t": (1024,), "odd": (1021,)},
    "matrix_copy": {"t": (192, 160), "odd": (191, 157)},
    "reduction": {"t": (8192,), "odd": (8191,)},
    "dot": {"t": (8192,), "odd": (8191,)},
    "prefix_sum": {"t": (4096,), "odd": (4093,)},
    "cross_entropy": {"t": (512, 10), "odd": (509, 7)},
    "monte_carlo": {"t": (8192,), "odd": (8191,)},
    "histogram": {"t": (16384,), "odd": (16381,)},
    "ols": {"t": (2048,), "odd": (2039,)},
}

kernel, size = sys.argv[1].split(".")
values = globals()[kernel](*SIZES[kernel][size])
if len(values) < 16:
    shown = [values[i % len(values)] for i in range(16)]
else:
    shown = values[::(len(values) - 1) // 15][:16]
print(len(values))
for value in [math.fsum(values), math.fsum(map(abs, values)), *shown]:
    print(f"{struct.unpack('<q', struct.pack('<d', value))[0]}, {value:g}")
