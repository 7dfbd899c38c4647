#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills a command while the worker that it has somewhere else is at work.

  kill-parent.py COMMAND [ARGUMENT...]

Under with-sshd.py or with-slurm.py, which see to it that nothing stays. Waits until a
process called fsr-worker with the tag of those has used half a second of processor time,
then kills COMMAND with SIGKILL. Status 0 where that came to pass.
"""

import os
import pathlib
import subprocess
import sys
import time

TICK = os.sysconf("SC_CLK_TCK")


def is_at_work(entry, tag):
    try:
        if tag not in (entry / "environ").read_bytes().split(b"\0"):
            return False
        name, fields = (entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)
        used = sum(int(field) for field in fields.split()[11:13])
    except OSError:
        return False  # It ended, or is somebody else's.
    return name.endswith("(fsr-worker") and used >= TICK / 2


def main():
    tag = f"FSR_TEST_TAG={os.environ['FSR_TEST_REMOTE_TAG']}".encode()
    with subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if any(is_at_work(entry, tag) for entry in pathlib.Path("/proc").iterdir()
                   if entry.name.isdigit()):
                process.kill()
                process.wait()
                print("kill-parent: killed while the worker was at work")
                return 0
            time.sleep(0.01)
    print(f"kill-parent: ended by itself with status {process.returncode}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
