#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the benchmark modules: one static module a kernel and size.

A module holds the kernel as a compiler would emit it (module @kernels), and a
harness (module @harness, kernels with fsr.keep, and @main) that fills the
inputs on the device, launches the kernel once and prints what compare-runs
needs. Nothing on the host grows with the size.

  generate.py [--check] [--out FOLDER]

--check writes nothing and fails where a committed module is not what the
templates give.
"""

import argparse
import collections
import math
import pathlib
import string
import sys

HERE = pathlib.Path(__file__).resolve().parent
LANES = 4096  # Threads, and partial sums, of the check.
SAMPLES = 16
PARTIALS = 2 * LANES + SAMPLES

# Inputs are uniform; this half width has a standard deviation of one.
SIGMA = math.sqrt(3.0)


# Laws of the harness for an input: (mean, half width) of a uniform one, `Whole`
# numbers from 0, `ZERO` by a memset before the kernel, or `Derived`, by a fill
# template of its own that gets other buffers too. None: the kernel's to write.
ZERO = "zero"
Whole = collections.namedtuple("Whole", "span")
Derived = collections.namedtuple("Derived", "template others")
# An element type other than f32 stands behind the law.
Buffer = collections.namedtuple("Buffer", "name shape law element", defaults=("f32",))
NORMAL = (0.0, SIGMA)


def spec(what, buffers, threads, block=(256, 1), sizes=None, **more):
    """`threads`, along x and y; `sizes`, what the template wants to know."""
    sizes = {"THREADS": threads[0], "THREADS_X": threads[0],
             "THREADS_Y": threads[1], **(sizes or {})}
    return {"what": what, "sizes": sizes, "threads": threads, "block": block,
            "buffers": [Buffer(*b) for b in buffers], **more}


def matmul(m, k, n):
    return spec(f"matmul: C = A B, f32, M {m}, K {k}, N {n}; one thread an output.",
                [("a", (m, k), NORMAL), ("b", (k, n), NORMAL), ("c", (m, n), None)],
                (n, m), (16, 16), {"M": m, "K": k, "N": n})


def rows(what, inputs):
    def make(r, c):
        shapes = {"x": (r, c), "y": (r, c)}
        buffers = [(n, shapes.get(n, (c,)), f) for n, f in inputs] + [("y", (r, c), None)]
        return spec(f"{what}, f32, {r} rows of {c}; one thread a row.", buffers, (r, 1),
                    sizes={"R": r, "C": c})
    return make


softmax = rows("softmax: over the last axis", [("x", (0.0, 5 * SIGMA))])
layer_norm = rows("layer_norm: over the last axis, affine, eps 1e-5",
                  [("x", (3.0, 5 * SIGMA)), ("gamma", (1.0, 0.5 * SIGMA)),
                   ("beta", (0.0, SIGMA))])


def elements(what, law):
    return lambda n: spec(f"{what}, f32, {n} elements; one thread an element.",
                          [("x", (n,), law), ("y", (n,), None)], (n, 1), sizes={"N": n})


sigmoid = elements("sigmoid: 1 / (1 + exp(-x))", (0.0, 3 * SIGMA))
relu = elements("relu: max(x, 0)", NORMAL)


def max_pool3d(n, c, d, h, w):
    # Kernel 3 of dilation 3 covers 7; stride 2, and one of padding at each end.
    od, oh, ow = ((size + 2 - 7) // 2 + 1 for size in (d, h, w))
    return spec(f"max_pool3d: kernel 3, stride 2, padding 1, dilation 3, f32, "
                f"{n} times {c} of {d} x {h} x {w}; one thread an output.",
                [("x", (n, c, d, h, w), NORMAL), ("y", (n, c, od, oh, ow), None)],
                (n * c * od * oh * ow, 1),
                sizes={"N": n, "C": c, "D": d, "H": h, "W": w, "OD": od, "OH": oh, "OW": ow})


def conv2d(h, w, k):
    oh, ow = h - k + 1, w - k + 1
    return spec(f"conv2d: one channel, valid, cross-correlation, f32, {h} x {w} by "
                f"{k} x {k}; one thread an output.",
                [("image", (h, w), NORMAL), ("filter", (k, k), NORMAL),
                 ("out", (oh, ow), None)],
                (ow, oh), (16, 16), {"H": h, "W": w, "K": k, "OH": oh, "OW": ow})


def attention(s, d, heads):
    depth = d // heads
    return spec(f"attention: {heads} heads of {depth}, no projections, f32, "
                f"sequence {s}; one thread a head and row.",
                [(n, (s, d), NORMAL) for n in "qkv"] + [("y", (s, d), None)],
                (s, heads), (64, 1),
                {"S": s, "D": d, "DEPTH": depth, "SCALE": repr(depth ** -0.5)})


def mse(n):
    return spec(f"mse: mean of (p - t)^2, f32, {n} elements; an atomic add an element.",
                [("p", (n,), (2.0, 10 * SIGMA)), ("t", (n,), (0.0, 10 * SIGMA)),
                 ("loss", (1,), ZERO)], (n, 1), sizes={"N": n})


def reduction(n, law="shifteduniform(-1, 1, 5)"):
    return spec(f"reduction: sum, f32, {n} elements; an atomic add an element.",
                [("x", (n,), (0.5, 5.0)), ("sum", (1,), ZERO)], (n, 1),
                sizes={"N": n, "LAW": law})


def dot(n):
    return spec(f"dot: sum of products, f32, {n} elements; an atomic add an element.",
                [("a", (n,), NORMAL), ("b", (n,), NORMAL), ("sum", (1,), ZERO)], (n, 1),
                sizes={"N": n})


def monte_carlo(n):
    return spec(f"monte_carlo: (b - a) times the mean of samples, f32, {n} of them; an "
                "atomic add an element.",
                [("samples", (n,), (0.25, 1.0)), ("integral", (1,), ZERO)], (n, 1),
                sizes={"N": n})


def cross_entropy(r, c):
    return spec(f"cross_entropy: mean over rows, integer labels, f32, {r} rows of {c}; "
                "one thread and one atomic add a row.",
                [("logits", (r, c), (0.0, 3 * SIGMA)), ("labels", (r,), Whole(c), "i32"),
                 ("loss", (1,), ZERO)], (r, 1), sizes={"R": r, "C": c, "LAST": c - 1})


def histogram(n):
    return spec(f"histogram: 256 bins, i32, {n} elements; an atomic add an element.",
                [("x", (n,), Whole(256), "i32"), ("bins", (256,), ZERO, "i32")], (n, 1),
                sizes={"N": n})


def transpose(r, c):
    return spec(f"transpose: B = A^T, f32, {r} x {c}; one thread an element.",
                [("a", (r, c), (0.0, 1.0)), ("b", (c, r), None)], (c, r), (16, 16),
                {"R": r, "C": c})


def matrix_copy(r, c):
    return spec(f"matrix_copy: B = A, f32, {r} x {c}; one thread an element.",
                [("a", (r, c), (0.0, 1.0)), ("b", (r, c), None)], (c, r), (16, 16),
                {"R": r, "C": c})


def reverse(n):
    return spec(f"reverse: in place, f32, {n} elements; one thread a pair.",
                [("x", (n,), (0.0, 1.0))], (n // 2, 1), sizes={"N": n, "LAST": n - 1})


def top_k(n, k):
    return spec(f"top_k: the {k} largest of {n} values, descending, f32; one thread.",
                [("x", (n,), (0.0, 1.0)), ("top", (k,), None)], (1, 1), (1, 1),
                {"N": n, "K": k, "LAST": k - 1})


def sort(n):
    return spec(f"sort: ascending, in place, f32, {n} elements; rank sort, one thread an "
                "element,\n// into a second buffer that is copied back.",
                [("x", (n,), (0.0, 1.0)), ("sorted", (n,), None)], (n, 1),
                sizes={"N": n}, copy_back=("x", "sorted"), output="x")


def prefix_sum(n):
    return spec(f"prefix_sum: inclusive, f32, {n} elements; one thread.",
                [("x", (n,), (0.5, 0.5)), ("y", (n,), None)], (1, 1), (1, 1), {"N": n})


def ols(n, f=10):
    buffers = [("x", (n, f), NORMAL), ("y", (n,), Derived("fill_linear", ("x",))),
               ("gram", (f, f), None), ("moments", (f,), None), ("beta", (f,), None)]
    return spec(f"ols: solves X^T X b = X^T y, f32, {n} rows of {f} features; {f} x {f} "
                "threads over\n// all rows, then one thread solves.", buffers, (f, f), (f, f),
                {"N": n, "F": f, "F1": f + 1, "LAST": f - 1},
                launches=[("ols_gram", ("x", "y", "gram", "moments"), (f, f), (f, f)),
                          ("ols_solve", ("gram", "moments", "beta"), (1, 1), (1, 1))])


# t: seconds on the virtual device. p: the published set's largest. h: a
# data-centre GPU's. odd: near t, divisible by nothing. Where there is no h, the
# original cannot do it: top_k would take minutes, and an f32 sum of like terms
# (mse) stands still after 2^24 of them.
MODULES = {
    "matmul": (matmul, {"t": (96, 112, 80), "p": (16384, 4096, 2048),
                        "h": (8192, 4096, 6144), "odd": (97, 113, 83)}),
    "layer_norm": (layer_norm, {"t": (256, 512), "p": (65536, 512),
                                "h": (65536, 4096), "odd": (251, 509)}),
    "softmax": (softmax, {"t": (256, 512), "p": (65536, 512),
                          "h": (65536, 4096), "odd": (251, 509)}),
    "sigmoid": (sigmoid, {"t": (2**14,), "p": (2**22,), "h": (2**26,), "odd": (16381,)}),
    "max_pool3d": (max_pool3d, {"t": (2, 4, 20, 18, 16), "p": (16, 32, 48, 48, 48),
                                "h": (16, 32, 128, 128, 128), "odd": (3, 5, 13, 11, 17)}),
    "conv2d": (conv2d, {"t": (70, 86, 7), "p": (2048, 2048, 24),
                        "h": (3072, 3072, 15), "odd": (71, 83, 5)}),
    "attention": (attention, {"t": (64, 64, 4), "p": (512, 512, 16),
                              "h": (4096, 1024, 16), "odd": (61, 51, 3)}),
    "mse": (mse, {"t": (2**13,), "p": (2**20,), "odd": (8191,)}),
    "transpose": (transpose, {"t": (192, 160), "p": (16384, 16384), "h": (7000, 6000),
                              "odd": (191, 157)}),
    "reverse": (reverse, {"t": (2**15,), "p": (2**28,), "h": (2**28,), "odd": (32749,)}),
    "relu": (relu, {"t": (2**15,), "p": (2**28,), "h": (2**28,), "odd": (32749,)}),
    "top_k": (top_k, {"t": (2048, 16), "p": (2**18, 512), "odd": (2039, 13)}),
    "sort": (sort, {"t": (1024,), "p": (8192,), "h": (2**16,), "odd": (1021,)}),
    "matrix_copy": (matrix_copy, {"t": (192, 160), "p": (16384, 16384),
                                  "h": (16384, 16384), "odd": (191, 157)}),
    # A mean other than 0 stops an f32 sum of 2^26 terms from growing.
    "reduction": (reduction, {"t": (2**13,), "p": (2**20,), "h": (2**26, "uniform(-5, 5)"),
                              "odd": (8191,)}),
    "dot": (dot, {"t": (2**13,), "p": (2**20,), "h": (2**26,), "odd": (8191,)}),
    "prefix_sum": (prefix_sum, {"t": (4096,), "p": (2**18,), "h": (2**20,),
                                "odd": (4093,)}),
    "cross_entropy": (cross_entropy, {"t": (512, 10), "p": (2**20, 10),
                                      "h": (65536, 1000), "odd": (509, 7)}),
    "monte_carlo": (monte_carlo, {"t": (2**13,), "p": (2**22,), "h": (2**26,),
                                  "odd": (8191,)}),
    "histogram": (histogram, {"t": (2**14,), "p": (2**24,), "h": (2**26,),
                              "odd": (16381,)}),
    "ols": (ols, {"t": (2048,), "p": (2**20,), "h": (2**22,), "odd": (2039,)}),
}


def template(name, values, conditions=()):
    """The template `name` with `values`; lines between `//@if X` and `//@else`
    or `//@end` stay only where X is in `conditions`, those behind `//@else` where
    it is not."""
    lines, keep = [], True
    for line in (HERE / "templates" / f"{name}.mlir").read_text().splitlines():
        text = line.strip()
        if text.startswith("//@if "):
            keep = text[len("//@if "):] in conditions
        elif text == "//@else":
            keep = not keep
        elif text == "//@end":
            keep = True
        elif keep:
            lines.append(line)
    return string.Template("\n".join(lines)).substitute(values)


def indent(text):
    """Indents by braces, since what a condition removes changes the depth."""
    lines, depth = [], 0
    for line in text.splitlines():
        line = line.strip()
        shown = depth - (1 if line.startswith("}") else 0)
        if line.startswith(("attributes {", "args(", "fsr.")):
            shown += 2
        lines.append(("  " * shown + line).rstrip())
        if not line.startswith("//"):
            depth += line.count("{") - line.count("}")
    return "\n".join(lines) + "\n"


def memref(buffer):
    return f"memref<{'x'.join(map(str, buffer.shape))}x{buffer.element}>"


def place(shape):
    """Code that turns %i into indices of `shape`, and the indices."""
    if len(shape) == 1:
        return "", "%i"
    if len(shape) == 2:
        return (f"%width = arith.constant {shape[1]} : index\n"
                "%r = arith.divui %i, %width : index\n"
                "%c = arith.remui %i, %width : index"), "%r, %c"
    code, rest = [], "%i"
    for d in reversed(range(1, len(shape))):
        code += [f"%size{d} = arith.constant {shape[d]} : index",
                 f"%at{d} = arith.remui {rest}, %size{d} : index",
                 f"%rest{d} = arith.divui {rest}, %size{d} : index"]
        rest = f"%rest{d}"
    return "\n".join(code), ", ".join([rest] + [f"%at{d}" for d in range(1, len(shape))])


def is_filled(buffer):
    return buffer.law not in (None, ZERO)


def harness(buffers, output, sizes):
    """The kernels that fill the inputs, and the one that checks the result."""
    fills = []
    for number, buffer in enumerate(buffers):
        code, indices = place(buffer.shape)
        values = {**sizes, "name": buffer.name, "type": memref(buffer), "place": code,
                  "indices": indices, "count": math.prod(buffer.shape),
                  "seed": 0x9E3779B9 * (number + 1) % 2**32}
        if buffer == output:
            count = values["count"]
            check = template("check", {
                **values, "LANES": LANES, "SAMPLES": SAMPLES, "PARTIALS": PARTIALS,
                "stride": max(1, (count - 1) // (SAMPLES - 1))},
                [buffer.element.upper()] + (["FEW"] if count < SAMPLES else []))
        if isinstance(buffer.law, Whole):
            fills.append(template("fill_whole", {**values, "span": buffer.law.span}))
        elif isinstance(buffer.law, Derived):
            fills.append(template(buffer.law.template, values))
        elif is_filled(buffer):
            fills.append(template("fill", {**values, "mean": float(buffer.law[0]),
                                           "half": round(buffer.law[1], 6)}))
    return "\n".join(fills), check


def sized_launch(kernel, arguments, blocks, threads):
    return (f"gpu.launch_func @kernels::@{kernel} blocks in ({blocks}, %c1) "
            f"threads in ({threads}, %c1)\nargs({arguments})")


def module(kernel, make, size):
    spec = make(*size)
    block, threads, buffers = spec["block"], spec["threads"], spec["buffers"]
    by_name = {buffer.name: buffer for buffer in buffers}
    output = by_name[spec.get("output", buffers[-1].name)]
    conditions = ["GUARD"] if any(t % b for t, b in zip(threads, block)) else []
    fills, check = harness(buffers, output, spec["sizes"])
    constants, allocs, launches, deallocs = [], [], [], []

    def arguments(names):
        return ", ".join(f"%{n} : {memref(by_name[n])}" for n in names)

    token = "%start"
    for buffer in buffers:
        name, law = buffer.name, buffer.law
        allocs.append(f"%{name}, %token_{name} = gpu.alloc async [{token}] () : {memref(buffer)}")
        token = f"%token_{name}"
        if law == ZERO:
            zero = "0" if buffer.element[0] == "i" else "0.0"
            constants.append(f"%zero_{name} = arith.constant {zero} : {buffer.element}")
            launches.append(f"%before_{name} = gpu.wait async\n"
                            f"%set_{name} = gpu.memset async [%before_{name}] %{name}, "
                            f"%zero_{name} : {memref(buffer)}, {buffer.element}\n"
                            f"gpu.wait [%set_{name}]")
        elif law:
            constants.append(f"%blocks_{name} = arith.constant "
                             f"{-(-math.prod(buffer.shape) // 256)} : index")
            others = law.others if isinstance(law, Derived) else ()
            launches.append(f"gpu.launch_func @harness::@fill_{name} blocks in "
                            f"(%blocks_{name}, %c1, %c1) threads in (%c256, %c1, %c1)\n"
                            f"args({arguments((name, *others))})")
    freed = "%copied"
    for name, kind in ([(b.name, memref(b)) for b in buffers] +
                       [("partial", f"memref<{PARTIALS}xf64>")]):
        deallocs.append(f"%freed_{name} = gpu.dealloc async [{freed}] %{name} : {kind}")
        freed = f"%freed_{name}"
    calls = []
    every = [(kernel, [b.name for b in buffers], threads, block)]
    for number, (name, names, sizes, shape) in enumerate(spec.get("launches", every)):
        tail = f"{number}" if number else ""
        for axis, b, t in zip("xy", shape, sizes):
            constants.append(f"%block_{axis}{tail} = arith.constant {b} : index")
            constants.append(f"%grid_{axis}{tail} = arith.constant {-(-t // b)} : index")
        calls.append(sized_launch(name, arguments(names), f"%grid_x{tail}, %grid_y{tail}",
                                  f"%block_x{tail}, %block_y{tail}"))
    if "copy_back" in spec:
        to, source = (by_name[n] for n in spec["copy_back"])
        calls.append("%sorted_at = gpu.wait async\n"
                     f"%back = gpu.memcpy async [%sorted_at] %{to.name}, %{source.name} : "
                     f"{memref(to)}, {memref(source)}\ngpu.wait [%back]")
    return indent(template("main", {
        "what": spec["what"], "kernel": kernel,
        "kernels": template(kernel, spec["sizes"], conditions),
        "fills": fills, "check": check,
        "LANES": LANES, "PARTIALS": PARTIALS, "SAMPLES": SAMPLES,
        "LANE_BLOCKS": LANES // 256,
        "constants": "\n".join(constants), "allocs": "\n".join(allocs), "last": token,
        "launch_fills": "\n".join(launches), "launches": "\n".join(calls),
        "output": output.name, "output_type": memref(output),
        "deallocs": "\n".join(deallocs), "freed": freed,
        "count": math.prod(output.shape),
    }))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="folder")
    arguments = parser.parse_args()
    stale = 0
    for kernel, (make, sizes) in MODULES.items():
        for size, numbers in sizes.items():
            path = arguments.out / f"{kernel}.{size}.mlir"
            text = module(kernel, make, numbers)
            if not arguments.check:
                path.write_text(text)
            elif not path.is_file() or path.read_text() != text:
                print(f"generate.py: {path.name} is not what the templates give; "
                      "run benchmarks/kernels/generate.py", file=sys.stderr)
                stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
