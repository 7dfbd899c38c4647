#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An LLM server for tests, on loopback, that also misbehaves on demand.

  server.py [--answer FILE] [--tls CERTIFICATE KEY] [--do WHAT…] [-- COMMAND…]

Speaks POST …/chat/completions and POST …/v1/messages. With a command, "{url}" in it
becomes the server's address; the command runs, how often the server was asked is
printed, and the status is the command's. Without, prints its port as the first line and
ends with its standard input. What it does with a request is said by the first line of the prompt where that
starts with "do:", else by --do, else "ok":

  do: 429=1 500 ok=hello

One word a try of the same prompt; the last one stays. GET /stats, or the line
"stats" on standard input, tells what was received and charged; "reset JSON" forgets it
and gives {"seed": …} for the word "charge". A request line with a whole address is
taken as a proxy takes it.
"""

import argparse
import email.utils
import http.server
import json
import pathlib
import random
import ssl
import subprocess
import sys
import threading
import time

REFUSAL = "I will not help with that."
WORDS = {
    "nocode": "The kernel is fast enough as it is.",
    "wrongcode": "```python\nprint('softmax')\n```\n",
}


class State:
    """What was seen, under one lock."""

    def __init__(self):
        self.lock = threading.Lock()
        self.reset({})

    def reset(self, options):
        with self.lock:
            self.seed = options.get("seed", 0)
            self.requests = []
            self.tries = {}
            self.flight = {"running": 0, "most": 0}
            self.prompt_tokens = self.answer_tokens = 0

    def stats(self):
        with self.lock:
            return {
                "requests": self.requests,
                "in_flight": self.flight["running"],
                "most_in_flight": self.flight["most"],
                "prompt_tokens": self.prompt_tokens,
                "answer_tokens": self.answer_tokens,
            }


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    state = flight = None
    default_words = ["ok"]
    default_answer = "here it is"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_json(200, self.state.stats())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = json.loads(body)
        prompt = request["messages"][0]["content"]
        state = self.state
        with state.lock:
            number = len(state.requests)
            state.requests.append(
                {
                    "path": self.path,
                    "headers": {k.lower(): v for k, v in self.headers.items()},
                    "request": request,
                    "time": time.monotonic(),
                }
            )
            turn = state.tries.get(prompt, 0)
            state.tries[prompt] = turn + 1
            # One still here after a reset counts in the old book.
            self.flight = state.flight
            self.flight["running"] += 1
            self.flight["most"] = max(self.flight.values())
        words = self.default_words
        line = prompt.split("\n", 1)[0]
        if line.startswith("do:"):
            words = line[3:].split()
        word, _, argument = words[min(turn, len(words) - 1)].partition("=")
        self.usage = (10, 5)
        try:
            if word == "charge":
                word = self.charge(request, prompt, number)
            self.act(word, argument, request)
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            self.leave()

    def leave(self):
        """Before the reply: whoever has it may ask again at once."""
        if self.flight:
            with self.state.lock:
                self.flight["running"] -= 1
            self.flight = None

    def charge(self, request, prompt, number):
        """Charges at random, up to what is allowed, and picks what follows."""
        dice = random.Random(f"{self.state.seed} {number}")
        limit = request.get("max_tokens") or request["max_completion_tokens"]
        size = len(prompt.encode())
        fate = dice.choices(
            ["ok", "nousage", "500", "cut", "close", "badjson", "429"],
            [60, 5, 8, 8, 8, 6, 5],
        )[0]
        prompt_tokens = dice.choice([size, dice.randint(1, size)])
        answer_tokens = dice.choice([limit, dice.randint(1, limit), limit // 8])
        self.usage = (prompt_tokens, answer_tokens)
        time.sleep(dice.random() * 0.004)
        if fate != "429":
            with self.state.lock:
                self.state.prompt_tokens += prompt_tokens
                self.state.answer_tokens += answer_tokens
        return fate

    def act(self, word, argument, request):
        if word in ("ok", "slow"):
            if word == "slow":
                time.sleep(float(argument))
                argument = ""
            self.answer(argument or self.default_answer)
        elif word in WORDS:
            self.answer(WORDS[word])
        elif word == "length":
            self.answer("half an ans", finish="length")
        elif word == "refusal":
            self.answer(None, refusal=REFUSAL)
        elif word == "filter":
            self.answer(None, finish="content_filter")
        elif word == "nousage":
            self.usage = None
            self.answer(self.default_answer)
        elif word == "badusage":
            self.usage = (-7, 1e300)
            self.answer(self.default_answer)
        elif word == "cached":
            self.answer(
                self.default_answer,
                usage={"cache_creation_input_tokens": 30, "cache_read_input_tokens": 200},
            )
        elif word == "echo":
            self.answer(f"headers: {self.headers}")
        elif word == "echofail":
            self.fail(401, f"wrong key: {self.headers}")
        elif word == "oldlimit":
            if "max_completion_tokens" in request:
                self.answer(self.default_answer)
            else:
                self.fail(400, "use 'max_completion_tokens' instead")
        elif word == "429":
            wait = argument or None
            if wait and wait.startswith("date"):
                wait = email.utils.formatdate(
                    time.time() + float(wait[4:]), usegmt=True
                )
            self.fail(429, "too many", {"Retry-After": wait} if wait else {})
        elif word == "redirect":
            self.fail(307, "over there", {"Location": "/elsewhere"})
        elif word.isdigit():
            self.fail(int(word), "no luck")
        elif word == "badjson":
            self.send_bytes(200, b'{"choices": [')
        elif word == "wrongform":
            self.send_json(200, {"choices": []})
        elif word == "error200":
            self.send_json(200, {"error": {"message": "overloaded"}})
        elif word == "deep":
            self.send_bytes(200, b"[" * 1000000 + b"]" * 1000000)
        elif word == "wide":
            self.send_bytes(200, b"[" + b"{}," * int(argument) + b"{}]")
        elif word == "big":
            self.answer("x" * (5 << 20))
        elif word == "cut":
            whole = json.dumps({"choices": "…" * 100}).encode()
            self.send_bytes(200, whole[:50], len(whole))
            self.close_connection = True
        elif word == "close":
            self.close_connection = True
        elif word == "hang":
            time.sleep(60)
            self.close_connection = True
        else:
            self.fail(400, f"unknown word {word}")

    def answer(self, text, finish="stop", refusal=None, usage=None):
        if self.path.endswith("/messages"):
            stop = {"stop": "end_turn", "length": "max_tokens"}.get(finish, "refusal")
            blocks = [{"type": "thinking", "thinking": "hm"}]
            text = text or refusal or ""
            half = len(text) // 2
            for part in (text[:half], text[half:]):
                blocks.append({"type": "text", "text": part})
            reply = {"content": blocks, "stop_reason": "refusal" if refusal else stop}
            names = ("input_tokens", "output_tokens")
        else:
            message = {"role": "assistant", "content": text, "refusal": refusal}
            reply = {"choices": [{"message": message, "finish_reason": finish}]}
            names = ("prompt_tokens", "completion_tokens")
        if self.usage:
            reply["usage"] = {**dict(zip(names, self.usage)), **(usage or {})}
        self.send_json(200, reply)

    def fail(self, status, message, headers=None):
        self.send_bytes(
            status, json.dumps({"error": {"message": message}}).encode(), None, headers
        )

    def send_json(self, status, value):
        self.send_bytes(status, json.dumps(value).encode())

    def send_bytes(self, status, body, length=None, headers=None):
        self.leave()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(length or len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        pass  # A client that goes away, or does not trust the certificate.


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--answer", type=pathlib.Path)
    parser.add_argument("--tls", nargs=2)
    parser.add_argument("--do", nargs="+", default=["ok"])
    parser.add_argument("command", nargs="*")
    arguments = parser.parse_args()

    state = Handler.state = State()
    Handler.default_words = arguments.do
    if arguments.answer:
        Handler.default_answer = arguments.answer.read_text(encoding="utf-8")
    server = Server(("127.0.0.1", 0), Handler)
    if arguments.tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*arguments.tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if arguments.command:
        url = f"http://127.0.0.1:{server.server_port}"
        command = [word.replace("{url}", url) for word in arguments.command]
        status = subprocess.run(command, check=False).returncode
        print(f"asked {len(state.requests)} times", flush=True)
        sys.exit(status)
    print(server.server_port, flush=True)
    for line in sys.stdin:
        command, _, argument = line.strip().partition(" ")
        if command == "reset":
            state.reset(json.loads(argument or "{}"))
            print("{}", flush=True)
        else:
            print(json.dumps(state.stats()), flush=True)


if __name__ == "__main__":
    main()
