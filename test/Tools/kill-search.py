#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills fsr-opt itself at random moments of a search, then gives the same command
again, and checks that nothing was lost or done twice.

  kill-search.py --opt FSR_OPT --module M --answer FILE --device SPEC
                 [--times 50] [--seed 1] [--pass-options TEXT] --work FOLDER

The LLM is a command (`exec:`) that gives FILE to every request and notes what it was
asked. An undisturbed search says which trials and talks there are at the end, and how
long it takes. Each time: kill -9 at a moment drawn from that time; then the same
command to its end. No request whose answer was on disk at the kill may be asked
again, no trial that was on disk may change, no winner is measured twice, and the end is
that of the undisturbed search. Prints a summary; exit status 0 where all of that held.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

ANSWERER = """import hashlib, sys
request = sys.stdin.buffer.read()
with open(sys.argv[2], "a") as log:
    log.write(hashlib.sha256(request).hexdigest() + "\\n")
sys.stdout.write(open(sys.argv[1]).read())
"""


def files_of(store, folder, name_end):
    found = {}
    for path, _, names in os.walk(os.path.join(store, folder)):
        if ".fsr-staging-" in path:
            continue  # Not renamed yet, so not there.
        for name in names:
            if name.endswith(name_end) and not name.startswith(".fsr-staging-"):
                whole = os.path.join(path, name)
                with open(whole, "rb") as file:
                    found[os.path.relpath(whole, store)] = file.read()
    return found


def asked(log):
    if not os.path.exists(log):
        return []
    with open(log, encoding="ascii") as file:
        return file.read().split()


def talked(store):
    """Hashes of the requests whose talks are whole on disk."""
    talks = files_of(store, "talks", "request.md")
    return {hashlib.sha256(text).hexdigest() for text in talks.values()}


def verdicts(store):
    return {
        name: json.loads(text)["verdict"]
        for name, text in files_of(store, "trials", ".json").items()
    }


def main():
    parser = argparse.ArgumentParser()
    for name in ("opt", "module", "answer", "device", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pass-options", default="target=sm_90")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    os.makedirs(args.work, exist_ok=True)
    answerer = os.path.join(args.work, "answerer.py")
    with open(answerer, "w", encoding="ascii") as file:
        file.write(ANSWERER)

    def start(store, log):
        options = (
            f"llm='exec:{sys.executable} {answerer} {args.answer} {log}' store={store} "
            f"device='{args.device}' {args.pass_options}"
        )
        return subprocess.Popen(
            [args.opt, args.module, f"--fsr-optimize-gpu={options}", "-o", os.devnull],
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(store, log):
        process = start(store, log)
        said = process.communicate()[1]
        assert process.returncode == 0, f"exit status {process.returncode}: {said[-500:]}"

    calm, log = os.path.join(args.work, "calm"), os.path.join(args.work, "calm.log")
    begin = time.monotonic()
    finish(calm, log)
    seconds = time.monotonic() - begin
    wanted = verdicts(calm)
    requests = talked(calm)
    if not wanted or len(asked(log)) != len(requests):
        print(f"kill-search: {len(wanted)} trials, {len(asked(log))} calls, "
              f"{len(requests)} talks in the undisturbed search")
        return 1

    kills = turns = 0
    while kills < args.times and turns < 4 * args.times:
        turn, turns = turns, turns + 1
        store = os.path.join(args.work, f"store-{turn}")
        log = os.path.join(args.work, f"log-{turn}")
        moment = chance.uniform(0.0, seconds)
        process = start(store, log)
        try:
            process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            kills += 1
        try:
            kept = files_of(store, "trials", ".json")
            known = talked(store)
            before = len(asked(log))
            finish(store, log)
            again = [one for one in asked(log)[before:] if one in known]
            assert not again, f"{len(again)} answers that were there were asked for again"
            after = files_of(store, "trials", ".json")
            changed = [name for name, text in kept.items() if after.get(name) != text]
            assert not changed, f"{len(changed)} finished trials changed"
            assert verdicts(store) == wanted, "another end than the undisturbed search"
            accepted = sum(one == "accepted" for one in wanted.values())
            records = len(files_of(store, "records", "record.json"))
            assert records == accepted, f"{records} records of {accepted} accepted trials"
            assert not files_of(store, "searches", ".json"), "it ended and is marked unfinished"
            assert talked(store) == requests, "other talks than the undisturbed search"
        except AssertionError as error:
            print(f"kill-search: turn {turn}, killed at {moment:.3f} s: {error}")
            return 1
        shutil.rmtree(store)
    print(
        f"kill-search: fsr-opt killed at {kills} random moments of {turns} searches with "
        f"{len(wanted)} trials and {len(requests)} talks: nothing repeated, the same end"
    )
    return 0 if kills == args.times else 1


if __name__ == "__main__":
    sys.exit(main())
