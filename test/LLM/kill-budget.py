#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills fsr-tune at random moments of searches that cost money, and goes on with them
under the same or a raised cap.

  kill-budget.py --server SERVER.PY --answer FILE --work FOLDER [--kills 20] [--seed 1]
                 -- FSR-TUNE-SEARCH…

The server of the tests charges at random, up to what a request allows, and breaks down
after charging; its books are the truth. Each search is killed up to four times and then
left to its end. After each run: no more was charged than the cap of that run, and no
request was made for an answer that was on disk before it. Prints a summary; exit status
0 where all of that held.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import time

PRICES = {"usd_per_million_prompt_tokens": 3, "usd_per_million_answer_tokens": 15}


class Server:
    """The server, as a child."""

    def __init__(self, script, answer):
        self.child = subprocess.Popen(
            [sys.executable, script, "--answer", answer, "--do", "charge"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = f"http://127.0.0.1:{int(self.child.stdout.readline())}/v1"

    def tell(self, line):
        self.child.stdin.write(line + "\n")
        self.child.stdin.flush()
        return json.loads(self.child.stdout.readline())

    def books(self):
        """What was charged in dollars, and the prompts, once nothing is in flight."""
        while True:
            stats = self.tell("stats")
            time.sleep(0.01)
            if stats["in_flight"] == 0 and stats == self.tell("stats"):
                break
        usd = (
            stats["prompt_tokens"] * PRICES["usd_per_million_prompt_tokens"]
            + stats["answer_tokens"] * PRICES["usd_per_million_answer_tokens"]
        ) / 1e6
        prompts = [one["request"]["messages"][0]["content"] for one in stats["requests"]]
        return usd, prompts


def answered(store):
    """The prompts whose talks are whole on disk."""
    return {
        path.read_text(encoding="utf-8")
        for path in store.glob("talks/*/*/request.md")
        if ".fsr-staging-" not in str(path)
    }


def main():
    parser = argparse.ArgumentParser()
    for name in ("server", "answer", "work"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", nargs="+")
    args = parser.parse_args()
    dice = random.Random(args.seed)
    work = pathlib.Path(args.work)
    work.mkdir(parents=True, exist_ok=True)
    prices = work / "prices.json"
    prices.write_text(json.dumps({"format_version": 1, "models": {"m": PRICES}}))
    server = Server(args.server, args.answer)
    environment = {**os.environ, "OPENAI_API_KEY": "sk"}

    kills = searches = resumed = short = 0
    while kills < args.kills and searches < args.kills:
        searches += 1
        server.tell("reset " + json.dumps({"seed": args.seed * 1000 + searches}))
        store = work / f"store-{searches}"
        cap = dice.uniform(0.2, 0.5)
        for run in range(5):
            if run and dice.random() < 0.5:
                cap += dice.uniform(0.1, 0.5)
            known, before = answered(store), len(server.books()[1])
            options = [
                "--llm=openai:m",
                f"--llm-url={server.url}",
                f"--prices={prices}",
                f"--budget-usd={cap}",
                f"--store={store}",
            ]
            process = subprocess.Popen(
                args.command + options,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            try:
                # Later it mostly pauses before a retry.
                limit = dice.uniform(0.02, 0.4) if run < 4 else 60
                said = process.communicate(timeout=limit)[0]
                short += "ended by budget" in said
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                kills += 1
            usd, prompts = server.books()
            again = known.intersection(prompts[before:])
            resumed += bool(known) and len(prompts) > before
            if usd > cap or again:
                print(
                    f"kill-budget: search {searches}, run {run + 1}: {usd:.6f} USD "
                    f"charged under a cap of {cap:.6f}; {len(again)} answers that were "
                    "there were asked for again"
                )
                return 1
    print(
        f"kill-budget: fsr-tune killed at {kills} random moments of {searches} searches: "
        "no cap passed, nothing repeated"
    )
    if not (kills >= args.kills and resumed and short):
        print(f"kill-budget: {resumed} resumed, {short} ended by their budget: no test")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
