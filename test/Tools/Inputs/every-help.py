# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs each script of the tree, and each program of the build, with --help.

  every-help.py SOURCE BIN

Nothing may be installed, built or asked for: there is no HOME to write to, and each has
half a minute. Exit status 1 where one says nothing, or ends with another status than 0.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

FOLDERS = ("tools/dev", "benchmarks", "benchmarks/mutation", "benchmarks/measure-study",
           "benchmarks/kernels")


def scripts(source):
    for folder in FOLDERS:
        for path in sorted((source / folder).iterdir()):
            if path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:2] == b"#!":
                yield path


def programs(folder):
    for path in sorted(folder.iterdir()):
        # Scripts that a build puts there are those of the tree.
        if path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:4] == b"\x7fELF":
            yield path


def is_wrong(path, home):
    try:
        ran = subprocess.run([path, "--help"], cwd=home, timeout=30, text=True, check=False,
                             stdin=subprocess.DEVNULL, capture_output=True,
                             env={**os.environ, "HOME": home,
                                  "FSR_LOCAL_MODEL": home + "/model"})
    except subprocess.TimeoutExpired:
        print(f"wrong: {path}: it did not end")
        return True
    why = ""
    if ran.returncode:
        why = f"status {ran.returncode}"
    elif not ran.stdout.strip():
        why = "it says nothing"
    elif ran.stderr.strip():
        why = "it speaks on standard error"
    elif os.listdir(home):
        why = "it leaves " + ", ".join(os.listdir(home))
    if why:
        print(f"wrong: {path}: {why}: {ran.stderr.strip()[-300:]}")
    return bool(why)


def main():
    source, binaries = (pathlib.Path(path).resolve() for path in sys.argv[1:])
    found = list(scripts(source)), list(programs(binaries))
    wrong = 0
    for path in found[0] + found[1]:
        with tempfile.TemporaryDirectory() as home:
            wrong += is_wrong(path, home)
    print(f"{len(found[0])} scripts and {len(found[1])} programs, {wrong} odd")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
