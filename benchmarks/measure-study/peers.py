#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the kernels of `measure-study --peers=FILE` with other harnesses.

Usage: peers.py FILE. Wants torch and triton on the host of the GPU. The PTX is
loaded through the CUDA driver by ctypes, in torch's context, so that every
harness times the same code on the same kind of input. Three of them:

  do_bench   triton.testing.do_bench, median of about 100 ms
  nvbench    as NVBench does it: the stream is held while the host queues, L2 is
             overwritten, an event on either side, 200 samples; the median
  fsr        what the file says, with its interval

Two times agree where the other one lies in the interval, or no further from it
than events resolve (0.5 us). Kernels below 20 us are timed in batches here and
singly there, and are shown without a verdict.
"""

import ctypes
import json
import statistics
import sys


def driver():
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        status = getattr(cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            cuda.cuGetErrorName(status, ctypes.byref(text))
            sys.exit(f"peers.py: {name}: {(text.value or b'?').decode()}")

    return call


def load(call, kernel):
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    text = ctypes.create_string_buffer(kernel["ptx"].encode())
    call("cuModuleLoadData", ctypes.byref(module), text)
    call(
        "cuModuleGetFunction",
        ctypes.byref(function),
        module,
        kernel["entry"].encode(),
    )
    return module, function


def launcher(torch, call, function, kernel, buffers):
    values = [ctypes.c_uint64(buffer.data_ptr()) for buffer in buffers]
    pointers = (ctypes.c_void_p * len(values))(
        *[ctypes.cast(ctypes.byref(value), ctypes.c_void_p) for value in values]
    )

    def launch():
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        call(
            "cuLaunchKernel",
            function,
            *[ctypes.c_uint(kernel["grid"]), ctypes.c_uint(1), ctypes.c_uint(1)],
            *[ctypes.c_uint(kernel["block"]), ctypes.c_uint(1), ctypes.c_uint(1)],
            ctypes.c_uint(0),
            stream,
            pointers,
            None,
        )

    launch.keep = (values, pointers, buffers)
    return launch


def held(torch, launch, l2_bytes, samples=200):
    flush = torch.empty(max(2 * l2_bytes, 1 << 20), dtype=torch.uint8, device="cuda")
    times = []
    for i in range(samples + 20):
        start = torch.cuda.Event(enable_timing=True)
        stop = torch.cuda.Event(enable_timing=True)
        flush.fill_(i & 127)
        torch.cuda._sleep(200_000)  # About 100 us, in clocks.
        start.record()
        launch()
        stop.record()
        stop.synchronize()
        if i >= 20:
            times.append(1000 * start.elapsed_time(stop))
    return statistics.median(times)


def main():
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__.strip())
        return 0
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        import torch
        from triton.testing import do_bench
    except ImportError as missing:
        sys.exit(f"peers.py: {missing}; torch and triton are wanted")
    with open(sys.argv[1]) as file:
        study = json.load(file)
    torch.zeros(1, device="cuda")  # Makes the context.
    torch.cuda.synchronize()
    call = driver()
    call("cuInit", 0)
    print(f"{study['device']}; torch on {torch.cuda.get_device_name()}")
    print(
        f"{'kernel':<20} {'fsr us':>9} {'interval':>21} {'do_bench':>10}"
        f" {'nvbench':>10}"
    )
    apart = compared = 0
    for kernel in study["kernels"]:
        buffers = [
            torch.randint(
                0, 1000, (kernel["bytes"] // 4,), dtype=torch.int32, device="cuda"
            )
            for _ in range(kernel["buffers"])
        ]
        module, function = load(call, kernel)
        launch = launcher(torch, call, function, kernel, buffers)
        for _ in range(3):
            launch()
        torch.cuda.synchronize()
        others = [
            1000 * do_bench(launch, warmup=50, rep=100, return_mode="median"),
            held(torch, launch, study["l2_bytes"]),
        ]
        cells = []
        for other in others:
            mark = ""
            if kernel["us"] >= 20 and kernel["batch"] == 1:
                compared += 1
                if not kernel["low"] - 0.5 <= other <= kernel["high"] + 0.5:
                    apart += 1
                    mark = "!"
            cells.append(f"{other:9.2f}{mark or ' '}")
        print(
            f"{kernel['name']:<20} {kernel['us']:9.2f}"
            f" [{kernel['low']:9.2f},{kernel['high']:9.2f}]"
            f" {cells[0]} {cells[1]}"
        )
        torch.cuda.synchronize()
        call("cuModuleUnload", module)
        del buffers, launch
    print(f"{compared - apart} of {compared} times agree; ! stands by those that do not")


if __name__ == "__main__":
    main()
