#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command on a terminal of its own and presses Ctrl-C at a given moment.

  interrupt.py --worker NAME --when TEXT [--limit SECONDS] -- COMMAND…

The moment is when TEXT stands in what the command drew on its standard error. Prints
that line as it was drawn, each whole line that followed, the exit status, and how many
processes called NAME ran below the command before and after. Exit status 1 where TEXT
never came or the command did not end.
"""

import argparse
import os
import pty
import select
import signal
import subprocess
import sys
import time


def workers(name, root, known=()):
    """Processes called `name` below `root`, or among `known`, that still run."""
    found = set()
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        command = text[text.index("(") + 1 : text.rindex(")")]
        parents[int(entry)] = int(fields[1])
        # The kernel keeps 15 characters of a name.
        if command == name[:15] and fields[0] != "Z":
            found.add(int(entry))

    def is_below(pid):
        while pid > 1 and pid != root:
            pid = parents.get(pid, 0)
        return pid == root

    return {pid for pid in found if pid in known or is_below(pid)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", required=True)
    parser.add_argument("--when", required=True)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()

    master, terminal = pty.openpty()
    environment = dict(os.environ, TERM="xterm")
    end = time.monotonic() + args.limit
    with subprocess.Popen(
        args.command, stdin=terminal, stdout=subprocess.DEVNULL, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        text, before, pressed = "", set(), False
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 0.1)
            if ready:
                try:
                    data = os.read(master, 65536)
                except OSError:  # The other end was closed.
                    break
                text += data.decode(errors="replace")
            elif process.poll() is not None:
                break
            # Behind a whole line stands what clears the rest of it.
            at = text.find(args.when)
            if not pressed and at >= 0 and "\x1b[K" in text[at:]:
                # The next set of parameters is begun at once; give it the time.
                time.sleep(0.5)
                before = workers(args.worker, process.pid)
                start = text.rfind("\r", 0, at) + 1
                print("drawn: " + text[start : text.index("\x1b[K", at)])
                text, pressed = "", True
                process.send_signal(signal.SIGINT)
        try:
            status = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            status = None
    if not pressed or status is None:
        print(f"interrupt: pressed {pressed}, status {status}, text {text!r}")
        return 1
    for line in text.replace("\x1b[K", "\r").replace("\r", "\n").splitlines():
        if line.startswith("fsr-tune:"):
            print("said: " + line)
    time.sleep(0.2)
    after = workers(args.worker, process.pid, before)
    print(f"status {status}, {len(before)} worker before, {len(after)} after")
    return 0


if __name__ == "__main__":
    sys.exit(main())
