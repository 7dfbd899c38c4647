#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times the kernels of `measure-study --peers=FILE` with three harnesses.

Usage: peers.py [--processes=N] MEASURE-STUDY FILE

  fsr        MEASURE-STUDY --time=FILE
  do_bench   triton.testing.do_bench, median of about 100 ms
  nvbench    as NVBench does it: the stream is held while the host queues, L2 is
             overwritten, an event on either side, 200 samples; the median

Each harness runs in N (7) fresh processes, which take turns, since from one process
to the next a kernel's time moves by more than its median is known within one. What
is stated of fsr is its median over the processes, and the interval in which a
further process is expected (95 %, by Student's t). Another harness agrees where its
own median over its processes lies in that, or no further off than events resolve
(0.5 us).

What a harness adds to every time is told by an empty kernel, which each of them
launches singly; the second table has the times less that. Kernels below 20 us are
timed in batches by fsr and singly by the others: shown, without a verdict.

Wants torch and triton on the host of the GPU. The PTX is loaded through the CUDA
driver by ctypes, in torch's context, so that all time the same code.
"""

import ctypes
import json
import math
import statistics
import subprocess
import sys

RESOLUTION_US = 0.5  # Of events, by NVIDIA's documentation of cudaEventElapsedTime.
SHORTEST_US = 20
# Two-sided 95 % quantiles of Student's t by degrees of freedom.
STUDENT = {
    2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306,
    9: 2.262, 10: 2.228, 11: 2.201, 14: 2.145, 19: 2.093,
}  # fmt: skip


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


def time_others(path):
    """Prints what one process of the other two harnesses finds, in us by name."""
    import torch
    from triton.testing import do_bench

    with open(path) as file:
        study = json.load(file)
    torch.zeros(1, device="cuda")  # Makes the context.
    torch.cuda.synchronize()
    call = driver()
    call("cuInit", 0)
    found = {"do_bench": {}, "nvbench": {}}
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
        name = kernel["name"]
        found["do_bench"][name] = 1000 * do_bench(
            launch, warmup=50, rep=100, return_mode="median"
        )
        found["nvbench"][name] = held(torch, launch, study["l2_bytes"])
        torch.cuda.synchronize()
        call("cuModuleUnload", module)
        del buffers, launch
        torch.cuda.empty_cache()
    print(json.dumps(found))


def interval(values):
    """Median, and half the width of the interval for a further value."""
    n = len(values)
    quantile = STUDENT[max(d for d in STUDENT if d <= n - 1)]
    return (
        statistics.median(values),
        quantile * statistics.stdev(values) * math.sqrt(1 + 1 / n),
    )


def table(title, names, times, batch, less):
    print(f"\n{title}")
    print(
        f"{'kernel':<16} {'fsr us':>9} {'interval':>21} {'do_bench':>18}"
        f" {'nvbench':>18}"
    )
    agree = compared = 0
    for name in names:
        centre, half = interval(times["fsr"][name])
        # Kernels are fitted to within a twentieth.
        judged = batch[name] == 1 and centre >= 0.9 * SHORTEST_US
        centre -= less["fsr"]
        cells = []
        for harness in ("do_bench", "nvbench"):
            other = statistics.median(times[harness][name]) - less[harness]
            mark = " "
            if judged:
                compared += 1
                good = abs(other - centre) <= half + RESOLUTION_US
                agree += good
                mark = " " if good else "!"
            share = 100 * (other / centre - 1) if centre > 0 else math.inf
            cells.append(f"{other:9.2f} {share:+6.2f}%{mark}")
        print(
            f"{name:<16} {centre:9.2f} [{centre - half:9.2f},{centre + half:9.2f}]"
            f" {cells[0]} {cells[1]}"
        )
    print(f"{agree} of {compared} times agree; ! stands by those that do not")


def run(command):
    """What a program prints on its last line, as JSON."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    except OSError as error:
        sys.exit(f"peers.py: cannot start {command[0]}: {error.strerror}")
    if done.returncode:
        sys.exit(f"peers.py: {' '.join(command)} ended with {done.returncode}")
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        sys.exit(f"peers.py: {' '.join(command)} printed no JSON")


def main():
    words = sys.argv[1:]
    if {"-h", "--help"} & set(words):
        print(__doc__.strip())
        return 0
    if words[:1] == ["--others"] and len(words) == 2:  # What it starts itself.
        return time_others(words[1])
    processes = 7
    if words and words[0].startswith("--processes="):
        text = words.pop(0).split("=", 1)[1]
        if not text.isdigit() or int(text) < 3:
            sys.exit(f"peers.py: --processes wants a number from 3 on, not {text}")
        processes = int(text)
    if len(words) != 2:
        sys.exit(__doc__)
    program, path = words
    try:
        import torch  # noqa: F401
        import triton  # noqa: F401
    except ImportError as missing:
        sys.exit(f"peers.py: {missing}; torch and triton are wanted")
    try:
        with open(path) as file:
            study = json.load(file)
        names = [kernel["name"] for kernel in study["kernels"]]
    except OSError as error:
        sys.exit(f"peers.py: cannot read {path}: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        names = []
    if "empty" not in names:
        sys.exit(f"peers.py: {path} is not what measure-study --peers writes")
    times = {h: {n: [] for n in names} for h in ("fsr", "do_bench", "nvbench")}
    batch = {}
    for _ in range(processes):
        own = run([program, "--device=cuda", f"--time={path}"])
        found = run([sys.executable, __file__, "--others", path])
        found["fsr"] = own["us"]
        batch = own["batch"]
        for harness, by_name in found.items():
            for name, value in by_name.items():
                times[harness][name].append(value)
    print(f"{study['device']}; {processes} processes of each harness")
    nothing = dict.fromkeys(times, 0.0)
    table("as measured", names, times, batch, nothing)
    empty = {h: statistics.median(times[h]["empty"]) for h in times}
    said = ", ".join(f"{h} {empty[h]:.2f} us" for h in times)
    others = [name for name in names if name != "empty"]
    table(f"less what an empty kernel takes: {said}", others, times, batch, empty)
    print("\nus of each process")
    for name in names:
        for harness in times:
            values = " ".join(f"{value:.2f}" for value in times[harness][name])
            print(f"{name:<16} {harness:<9} {values}")


if __name__ == "__main__":
    main()
