#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stands for fsr-worker: compilers meet before they go on, if they can.

  meeting-worker.py FOLDER NUMBER SECONDS FSR-WORKER ARGUMENT...

A compiler waits until NUMBER of them are there at once, SECONDS at the most. Where they
are, FOLDER has a file "met". Whatever else it is asked for, it becomes FSR-WORKER.
"""

import os
import pathlib
import sys
import time


def main():
    folder, number, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    command = sys.argv[4:]
    if command[1] != "compile":
        os.execv(command[0], command)
    (folder / str(os.getpid())).touch()
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (folder / "met").exists():
        # One that has answered is killed at once.
        here = [one for one in folder.iterdir() if pathlib.Path("/proc", one.name).exists()]
        if len(here) >= number:
            (folder / "met").touch()
        time.sleep(0.01)
    os.execv(command[0], command)


main()
