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


def matmul(m, k, n):
    return {
        "what": f"matmul: C = A B, f32, M {m}, K {k}, N {n}; one thread an output.",
        "sizes": {"M": m, "K": k, "N": n},
        "buffers": [("a", (m, k), (0.0, SIGMA)), ("b", (k, n), (0.0, SIGMA)),
                    ("c", (m, n), None)],
        "threads": (n, m),
        "block": (16, 16),
    }


def rows(what, inputs):
    def make(r, c):
        shapes = {"x": (r, c), "y": (r, c)}
        buffers = [(n, shapes.get(n, (c,)), f) for n, f in inputs] + [("y", (r, c), None)]
        return {
            "what": f"{what}, f32, {r} rows of {c}; one thread a row.",
            "sizes": {"R": r, "C": c},
            "buffers": buffers,
            "threads": (r, 1),
            "block": (256, 1),
        }
    return make


softmax = rows("softmax: over the last axis", [("x", (0.0, 5 * SIGMA))])
layer_norm = rows("layer_norm: over the last axis, affine, eps 1e-5",
                  [("x", (3.0, 5 * SIGMA)), ("gamma", (1.0, 0.5 * SIGMA)),
                   ("beta", (0.0, SIGMA))])

# t: seconds on the virtual device. p: the published set's largest. h: a
# data-centre GPU's. odd: near t, divisible by nothing.
MODULES = {
    "matmul": (matmul, {"t": (96, 112, 80), "p": (16384, 4096, 2048),
                        "h": (8192, 4096, 6144), "odd": (97, 113, 83)}),
    "layer_norm": (layer_norm, {"t": (256, 512), "p": (65536, 512),
                                "h": (65536, 4096), "odd": (251, 509)}),
    "softmax": (softmax, {"t": (256, 512), "p": (65536, 512),
                          "h": (65536, 4096), "odd": (251, 509)}),
}


def template(name, values, conditions=()):
    """The template `name` with `values`; lines between `//@if X` and `//@end`
    stay only where X is in `conditions`."""
    lines, keep = [], True
    for line in (HERE / "templates" / f"{name}.mlir").read_text().splitlines():
        text = line.strip()
        if text.startswith("//@if "):
            keep = text[len("//@if "):] in conditions
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


def memref(shape):
    return f"memref<{'x'.join(map(str, shape))}xf32>"


def place(shape):
    """Code that turns %i into indices of `shape`, and the indices."""
    if len(shape) == 1:
        return "", "%i"
    return (f"%width = arith.constant {shape[1]} : index\n"
            "%r = arith.divui %i, %width : index\n"
            "%c = arith.remui %i, %width : index"), "%r, %c"


def harness(buffers):
    """The kernels that fill the inputs, and the one that checks the result."""
    fills, check = [], ""
    for number, (name, shape, law) in enumerate(buffers):
        code, indices = place(shape)
        values = {"name": name, "type": memref(shape), "count": math.prod(shape),
                  "place": code, "indices": indices}
        if law:
            values.update(seed=0x9E3779B9 * (number + 1) % 2**32, mean=float(law[0]),
                          half=round(law[1], 6))
            fills.append(template("fill", values))
        else:
            values.update(stride=(math.prod(shape) - 1) // (SAMPLES - 1), LANES=LANES,
                          SAMPLES=SAMPLES, PARTIALS=PARTIALS)
            check = template("check", values)
    return "\n".join(fills), check


def module(kernel, make, size):
    spec = make(*size)
    block, threads, buffers = spec["block"], spec["threads"], spec["buffers"]
    conditions = ["GUARD"] if any(t % b for t, b in zip(threads, block)) else []
    fills, check = harness(buffers)
    constants, allocs, launches, deallocs = [], [], [], []
    token = "%start"
    for name, shape, law in buffers:
        allocs.append(f"%{name}, %token_{name} = gpu.alloc async [{token}] () : {memref(shape)}")
        token = f"%token_{name}"
        if law:
            constants.append(f"%blocks_{name} = arith.constant "
                             f"{-(-math.prod(shape) // 256)} : index")
            launches.append(f"gpu.launch_func @harness::@fill_{name} blocks in "
                            f"(%blocks_{name}, %c1, %c1) threads in (%c256, %c1, %c1)\n"
                            f"args(%{name} : {memref(shape)})")
    freed = "%copied"
    for name, kind in ([(n, memref(s)) for n, s, _ in buffers] +
                       [("partial", f"memref<{PARTIALS}xf64>")]):
        deallocs.append(f"%freed_{name} = gpu.dealloc async [{freed}] %{name} : {kind}")
        freed = f"%freed_{name}"
    for axis, b, t in zip("xy", block, threads):
        constants.append(f"%block_{axis} = arith.constant {b} : index")
        constants.append(f"%grid_{axis} = arith.constant {-(-t // b)} : index")
    output = buffers[-1]
    return indent(template("main", {
        "what": spec["what"], "kernel": kernel,
        "kernels": template(kernel, spec["sizes"], conditions),
        "fills": fills, "check": check,
        "LANES": LANES, "PARTIALS": PARTIALS, "SAMPLES": SAMPLES,
        "LANE_BLOCKS": LANES // 256,
        "constants": "\n".join(constants), "allocs": "\n".join(allocs), "last": token,
        "launch_fills": "\n".join(launches),
        "args": ", ".join(f"%{n} : {memref(s)}" for n, s, _ in buffers),
        "output": output[0], "output_type": memref(output[1]),
        "deallocs": "\n".join(deallocs), "freed": freed,
        "count": math.prod(output[1]),
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
