#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A language model behind llama-cpp-python's server, on loopback, for one command.

  local-model.py --model FILE --context TOKENS COMMAND…

"{url}" in the command becomes the server's address. When the command has ended, a line
tells what the server replied to it:

  server: 2 replies: 200 200; 9000 tokens in, 128 out; ended by length length

The status is the command's. The port is the system's choice and is taken before the
server starts, so that nothing can come between.
"""

import argparse
import json
import socket
import subprocess
import sys
import threading
import time

import uvicorn
from llama_cpp.server.app import create_app
from llama_cpp.server.settings import ModelSettings, ServerSettings


class Watch:
    """Passes everything through, and remembers status and body of each reply."""

    def __init__(self, app):
        self.app = app
        self.replies = []

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, body = 0, b""

        async def look(message):
            nonlocal status, body
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                body += message.get("body", b"")
                # Before it is sent: the command may end the moment it has it.
                if not message.get("more_body"):
                    self.replies.append((status, json.loads(body)))
            await send(message)

        await self.app(scope, receive, look)

    def summary(self):
        statuses = " ".join(str(status) for status, _ in self.replies)
        answers = [reply for status, reply in self.replies if status == 200]
        tokens = [
            sum(answer["usage"][name] for answer in answers)
            for name in ("prompt_tokens", "completion_tokens")
        ]
        ends = " ".join(answer["choices"][0]["finish_reason"] for answer in answers)
        return (
            f"server: {len(self.replies)} replies: {statuses}; {tokens[0]} tokens in, "
            f"{tokens[1]} out; ended by {ends or 'nothing'}"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()

    watch = Watch(
        create_app(
            server_settings=ServerSettings(),
            model_settings=[
                ModelSettings(
                    model=arguments.model,
                    model_alias="smollm2",
                    n_ctx=arguments.context,
                    # More would wait for each other, spinning: on a busy machine
                    # that takes many times as long.
                    n_threads=1,
                    n_threads_batch=1,
                    seed=1,
                    verbose=False,
                )
            ],
        )
    )
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(watch, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while thread.is_alive() and not server.started:
        time.sleep(0.05)
    if not server.started:
        sys.exit("the server did not start")
    url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    command = [word.replace("{url}", url) for word in arguments.command]
    try:
        status = subprocess.run(command, check=False).returncode
    finally:
        server.should_exit = True
        thread.join()
    print(watch.summary(), flush=True)
    sys.exit(status)


if __name__ == "__main__":
    main()
