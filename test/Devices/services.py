# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the scripts that start a service for a test have in common."""

import os
import pathlib
import shutil
import signal
import socket
import sys
import time

SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAME = pathlib.Path(sys.argv[0]).stem


def find(name):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":" + SYSTEM)
    if not path:
        sys.exit(f"{NAME}: there is no {name}; tools/dev/setup installs it")
    return path


def free_ports(count):
    listeners = [socket.socket() for _ in range(count)]
    for listener in listeners:
        listener.bind(("127.0.0.1", 0))
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def until(seconds, holds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.1)
    return False


def tagged(tag, also=b""):
    """Processes with FSR_TEST_TAG=`tag` in their environment, and a variable that begins
    with `also`: by id, with their command lines."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "environ").read_bytes().split(b"\0")
            if f"FSR_TEST_TAG={tag}".encode() in words and \
                    any(word.startswith(also) for word in words):
                line = (entry / "cmdline").read_bytes()
                if line:  # Not one that has ended.
                    found[int(entry.name)] = line.replace(b"\0", b" ").decode()
        except OSError:
            pass  # It ended, or is somebody else's.
    return found


def end_all(left):
    """Names and kills what a test left behind; whether there was any."""
    for pid, line in left.items():
        print(f"{NAME}: left behind: {line}")
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return bool(left)
