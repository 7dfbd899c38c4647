#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times PyTorch on the kernels of benchmarks/kernels, for comparison.

  peers.py [--out FILE]

Eager and torch.compile, f32 with TF32 off, cold L2, by triton.testing.do_bench: another
harness than FSR's own, so a difference of a few per cent between its times and a
record's says nothing. Prints medians with the 20th and 80th percentile, and the
device-to-device copy rate. Needs a GPU with PyTorch and Triton.
"""

import argparse
import json
import sys


def find_harness():
    """Sets what comes with PyTorch and Triton, which --help does without."""
    global torch, F, triton
    try:
        import torch
        import torch.nn.functional as F
        import triton.testing
    except ImportError as error:
        sys.exit(f"peers.py: needs PyTorch and Triton: {error}")


def cases(generator):
    def normal(*shape):
        return torch.randn(*shape, device="cuda", generator=generator)

    for size, (m, k, n) in {"p": (16384, 4096, 2048), "h": (8192, 4096, 6144)}.items():
        a, b = normal(m, k), normal(k, n)
        yield f"matmul.{size}", torch.matmul, (a, b)
    for size, columns in {"p": 512, "h": 4096}.items():
        x = normal(65536, columns) * 5 + 3
        gamma, beta = normal(columns) * 0.5 + 1, normal(columns)
        yield (
            f"layer_norm.{size}",
            lambda x, g, b: F.layer_norm(x, (x.shape[-1],), g, b, 1e-5),
            (x, gamma, beta),
        )
    for size, columns in {"p": 512, "h": 4096}.items():
        yield (
            f"softmax.{size}",
            lambda x: torch.softmax(x, dim=-1),
            (normal(65536, columns) * 5,),
        )


def timed(function, arguments):
    """Microseconds: median, 20th and 80th percentile."""
    low, middle, high = triton.testing.do_bench(
        lambda: function(*arguments), quantiles=[0.2, 0.5, 0.8]
    )
    return [1000 * value for value in (middle, low, high)]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out")
    args = parser.parse_args()
    find_harness()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    generator = torch.Generator(device="cuda").manual_seed(1)
    source = torch.empty(1 << 28, dtype=torch.float32, device="cuda")
    copy = timed(lambda x: x.clone(), (source,))
    result = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "copy_gb_per_s": 2 * source.numel() * 4 / copy[0] / 1000,
        "kernels": {},
    }
    del source
    print(f"{result['device']}, PyTorch {torch.__version__}, "
          f"copy {result['copy_gb_per_s']:.0f} GB/s")
    print(f"{'kernel':14} {'eager us':>26} {'torch.compile us':>26}")
    for name, function, arguments in cases(generator):
        row = {"eager_us": timed(function, arguments)}
        torch._dynamo.reset()
        row["compiled_us"] = timed(torch.compile(function), arguments)
        result["kernels"][name] = row
        text = [
            f"{m:9.1f} [{low:.1f}, {high:.1f}]" for m, low, high in row.values()
        ]
        print(f"{name:14} {text[0]:>26} {text[1]:>26}", flush=True)
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
