#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command as on a kernel that has neither seccomp nor Landlock.

  without-sandbox.py COMMAND [ARGUMENT...]

A seccomp filter of this process's own answers "no such call" to both, and is
inherited. Exit status 77 where this kernel has no seccomp to pretend with.
"""

import ctypes
import os
import platform
import struct
import sys

NO_NEW_PRIVS, SET_SECCOMP, FILTER = 38, 22, 2
CALLS = {"x86_64": (317, 444), "aarch64": (277, 444)}  # seccomp, landlock
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
NOT_THERE, ALLOW = 0x00050000 | 38, 0x7FFF0000  # ENOSYS


def main():
    calls = CALLS.get(platform.machine())
    if not calls:
        sys.exit(77)
    program = [(LOAD, 0, 0, 0)]
    for call in calls:
        program += [(EQUAL, 0, 1, call), (RETURN, 0, 0, NOT_THERE)]
    program.append((RETURN, 0, 0, ALLOW))
    code = b"".join(struct.pack("HBBI", *each) for each in program)
    buffer = ctypes.create_string_buffer(code)
    head = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    # The call is prctl, since what is forbidden may be forbidden already.
    if libc.prctl(NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(SET_SECCOMP, FILTER, head):
        sys.exit(77)
    os.execvp(sys.argv[1], sys.argv[1:])


main()
