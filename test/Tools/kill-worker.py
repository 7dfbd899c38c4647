#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills the device worker of a search at random moments and checks that nothing is
lost or doubled.

  kill-worker.py --opt FSR_OPT --module M --answers FOLDER --device SPEC
                 [--times 50] [--seed 1] [--pass-options TEXT] [--work FOLDER]
                 [--program fsr-worker] [--signal KILL]

FOLDER holds the exchange folder of M with its answers. One undisturbed search says
which trials there are and how long it takes; then each time a fresh store is
searched while the worker is killed once, at a moment drawn from that time, until
so many workers were killed (a moment may fall where none runs). Every search has to
end by itself with status 0, with the same trials, each once, none of them blamed on
the kill. Prints a summary; exit status 0 where all of that held. Killed are the children
of that program's name, which is another where the worker is behind a command.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []


def is_device_worker(pid, program):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
    except OSError:
        return False
    name = os.path.basename(words[0]) if words else b""
    return name == program.encode() and b"device" in words


def search(args, store, report, kill_after=None):
    """Runs one search; returns (seconds, killed, stderr)."""
    options = (
        f"llm=exchange:{args.answers} store={store} device='{args.device}' "
        f"report={report} {args.pass_options}"
    )
    command = [args.opt, args.module, f"--fsr-optimize-gpu={options}", "-o", os.devnull]
    start = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(command, stderr=errors) as process:
            killed = False
            while process.poll() is None:
                due = kill_after is not None and time.monotonic() - start >= kill_after
                if due and not killed:
                    for child in children(process.pid):
                        if is_device_worker(child, args.program):
                            os.kill(child, signal.Signals[f"SIG{args.signal}"])
                            killed = True
                time.sleep(0.001)
        errors.seek(0)
        said = errors.read().decode(errors="replace")
    if process.returncode != 0:
        raise AssertionError(f"exit status {process.returncode}: {said[-800:]}")
    return time.monotonic() - start, killed, said


def trials_of(store):
    """Every trial file: name → its JSON. A file that is not whole raises."""
    found = {}
    for folder, _, files in os.walk(os.path.join(store, "trials")):
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found[name] = json.load(file)
    return found


def reported(report):
    with open(report, encoding="utf-8") as file:
        kernels = json.load(file)["kernels"]
    return [
        (trial["candidate_hash"], json.dumps(trial["parameters"], sort_keys=True))
        for kernel in kernels
        for trial in kernel["trials"]
    ]


def main():
    parser = argparse.ArgumentParser()
    for name in ("opt", "module", "answers", "device"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pass-options", default="target=sm_90")
    parser.add_argument("--work")
    parser.add_argument("--program", default="fsr-worker")
    parser.add_argument("--signal", default="KILL")
    args = parser.parse_args()
    work = args.work or tempfile.mkdtemp()
    chance = random.Random(args.seed)

    store, report = os.path.join(work, "calm"), os.path.join(work, "calm.json")
    seconds, _, _ = search(args, store, report)
    expected = set(trials_of(store))
    if not expected:
        print("kill-worker: the undisturbed search made no trial")
        return 1
    kills = turns = 0
    while kills < args.times and turns < 4 * args.times:
        turn, turns = turns, turns + 1
        store = os.path.join(work, f"store-{turn}")
        report = os.path.join(work, f"report-{turn}.json")
        moment = chance.uniform(0.0, seconds)
        try:
            _, killed, _ = search(args, store, report, moment)
            kills += killed
            found = trials_of(store)
            told = reported(report)
            assert set(found) == expected, (
                f"{len(expected - set(found))} trials lost, "
                f"{len(set(found) - expected)} not known"
            )
            assert len(told) == len(set(told)), "a trial is told twice"
            assert len(told) == len(expected), "the report misses trials"
            blamed = [n for n, t in found.items() if t["verdict"] in ("crashed", "timed-out")]
            assert not blamed, f"the kill was blamed on {blamed}"
        except AssertionError as error:
            print(f"kill-worker: turn {turn}, killed at {moment:.3f} s: {error}")
            return 1
        shutil.rmtree(store)
    if not args.work:
        shutil.rmtree(work)
    print(
        f"kill-worker: {kills} workers killed at random moments in {turns} searches of "
        f"{len(expected)} trials: none lost, none doubled"
    )
    return 0 if kills == args.times else 1


if __name__ == "__main__":
    sys.exit(main())
