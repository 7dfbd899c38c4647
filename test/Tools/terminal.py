#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command on a terminal of its own, and may press Ctrl-C at a given moment.

  terminal.py [--columns N] [--when TEXT] [--running NAME] [--signal NAME]
              [--pause SECONDS] [--limit SECONDS] -- COMMAND…

The moment is when TEXT stands in the live line that the command draws on its standard
error, and then a process called NAME runs below it. Prints the lines as they were drawn
(`drawn:`; those that differ in the clock alone once, and up to the moment only), what
stands on the terminal at the end (`said:`, and `left behind:` where its last line has no
end), the exit status, and which processes ran below the command at the moment and
after its end. Without --when the command runs to its end. Exit status 1 where the moment
never came, the command did not end, or a line was as wide as the terminal or wider.
"""

import argparse
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

ERASE = "\x1b[K"


def processes():
    """Parent, name and state of each process by its id."""
    found = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        name = text[text.index("(") + 1 : text.rindex(")")]
        found[int(entry)] = (int(fields[1]), name, fields[0])
    return found


def below(root):
    """Names by id of the processes below `root` that have not ended."""
    known = processes()

    def is_below(pid):
        while pid > 1 and pid != root:
            pid = known.get(pid, (0,))[0]
        return pid == root

    return {
        pid: name
        for pid, (_, name, state) in known.items()
        if state not in "ZX" and pid != root and is_below(pid)
    }


def still_there(before):
    known = processes()
    return {
        pid: name
        for pid, name in before.items()
        if pid in known and known[pid][1] == name and known[pid][2] not in "ZX"
    }


def drawn_lines(text):
    """What was drawn, each piece ended by what clears the rest of the line."""
    return [line for line in re.findall("\r([^\r\n\x1b]*)\x1b\\[K", text) if line]


def screen(text):
    """The whole lines that stand on the terminal at the end, and what is behind them."""
    without_colour = re.sub("\x1b\\[[0-9;]*m", "", text)
    lines, line, column = [], [], 0
    for piece in re.findall("\x1b\\[K|.", without_colour, re.DOTALL):
        if piece == ERASE:
            del line[column:]
        elif piece == "\r":
            column = 0
        elif piece == "\n":
            lines.append("".join(line))
            line, column = [], 0
        else:
            line[column : column + 1] = [piece]
            column += 1
    return lines, "".join(line)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=80)
    parser.add_argument("--when")
    parser.add_argument("--running")
    parser.add_argument("--signal", default="INT")
    parser.add_argument("--pause", type=float, default=0)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()

    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, args.columns, 0, 0))
    environment = dict(os.environ, TERM="xterm")
    environment.pop("COLUMNS", None)
    end = time.monotonic() + args.limit
    # Whoever runs tests may ignore Ctrl-C, and that would be inherited.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        args.command, stdin=terminal, stdout=subprocess.DEVNULL, stderr=terminal, env=environment
    ) as process:
        os.close(terminal)
        text, before, pressed_at = "", {}, None
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 0.02)
            if ready:
                try:
                    data = os.read(master, 65536)
                except OSError:  # The other end was closed.
                    break
                if not data:
                    break
                text += data.decode(errors="replace")
            elif process.poll() is not None:
                break
            if args.when is None or pressed_at is not None:
                continue
            at = text.find(args.when)
            # Behind a whole line stands what clears the rest of it.
            if at < 0 or ERASE not in text[at:]:
                continue
            if args.running and args.running[:15] not in below(process.pid).values():
                continue
            time.sleep(args.pause)
            before, pressed_at = below(process.pid), len(text)
            process.send_signal(getattr(signal, "SIG" + args.signal))
        try:
            status = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            status = None
    if status is None or (args.when is not None and pressed_at is None):
        print(f"terminal: at {pressed_at}, status {status}, text {text!r}")
        return 1

    shown, last = drawn_lines(text[:pressed_at]), None
    for line in shown:
        form = re.sub(r"  ?\d+:\d\d$", "", line)
        if form != last:
            print("drawn: " + line)
        last = form
    lines, rest = screen(text)
    for line in lines:
        print("said: " + line)
    if rest:
        print("left behind: " + rest)
    running = ", ".join(sorted(before.values())) or "nothing"
    # Nobody waits for what a killed process leaves; it takes a moment.
    until = time.monotonic() + (10 if args.signal == "KILL" else 0)
    there = still_there(before)
    while there and time.monotonic() < until:
        time.sleep(0.05)
        there = still_there(before)
    left = ", ".join(sorted(there.values())) or "nothing"
    print(f"status {status}, before: {running}, after: {left}")
    for pid in there:
        os.kill(pid, signal.SIGKILL)
    too_wide = [line for line in drawn_lines(text) if len(line) >= args.columns]
    for line in too_wide:
        print(f"too wide: {line}")
    return 1 if too_wide else 0


if __name__ == "__main__":
    sys.exit(main())
