#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command while an OpenSSH server on this machine plays other hosts.

  with-sshd.py --path FOLDER[:FOLDER...] COMMAND [ARGUMENT...]

In COMMAND, `ssh gpu7 ...` and `ssh gpu8 ...` reach the server, as the user who runs
this; `ssh nowhere ...` finds a port that nobody listens on. What is started there
finds programs in the folders. Keys, known hosts and configuration are made in a
temporary folder, and nothing of ~/.ssh is read or written.

After COMMAND no process that was started through the server may be left: they have ten
seconds, then they are named and killed. The status is COMMAND's, or 1 where something
was left.
"""

import argparse
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from services import SYSTEM, end_all, find, free_ports, tagged, until


def make_key(path):
    subprocess.run([find("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", path],
                   check=True, stdin=subprocess.DEVNULL)


def write_files(folder, port, tag, path):
    for name in ("host", "user"):
        make_key(folder / name)
    shutil.copy(folder / "user.pub", folder / "authorized")
    (folder / "sshd_config").write_text(f"""
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
LogLevel FATAL
SetEnv PATH={path}:{SYSTEM} FSR_TEST_TAG={tag}
""", encoding="utf-8")
    host = (folder / "host.pub").read_text(encoding="utf-8").split()[:2]
    (folder / "known").write_text(f"[127.0.0.1]:{port} {' '.join(host)}\n",
                                  encoding="utf-8")
    (folder / "ssh_config").write_text(f"""
Host nowhere
  Port {free_ports(1)[0]}
Host gpu7 gpu8
  Port {port}
Host *
  HostName 127.0.0.1
  User {pwd.getpwuid(os.getuid()).pw_name}
  IdentityFile {folder}/user
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known
  GlobalKnownHostsFile none
  BatchMode yes
  LogLevel ERROR
""", encoding="utf-8")
    wrapper = folder / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {find("ssh")} -F {folder}/ssh_config "$@"\n',
                       encoding="utf-8")
    wrapper.chmod(0o755)


def wait_for_server(port, server):
    for _ in range(200):
        if server.poll() is not None:
            sys.exit(f"with-sshd: sshd ended with status {server.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("with-sshd: sshd does not listen")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--path", required=True)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    # As root it separates its privileges, and wants this folder, which the init
    # script of its package makes.
    if os.getuid() == 0:
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder, port, tag = pathlib.Path(name), free_ports(1)[0], os.path.basename(name)
        write_files(folder, port, tag, args.path)
        # Its own path, since it starts itself anew for each connection.
        server = subprocess.Popen(
            [find("sshd"), "-D", "-e", "-f", folder / "sshd_config"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, close_fds=True)
        try:
            wait_for_server(port, server)
            environment = dict(os.environ)
            environment["PATH"] = f"{folder}/bin:{environment['PATH']}"
            environment["FSR_TEST_REMOTE_TAG"] = tag
            status = subprocess.run(args.command, env=environment, check=False).returncode
            until(10, lambda: not tagged(tag))
            left = tagged(tag)
        finally:
            server.terminate()
            server.wait()
    return status or int(end_all(left))


if __name__ == "__main__":
    sys.exit(main())
