#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command while a Slurm cluster of one node is up on this machine.

  with-slurm.py COMMAND [ARGUMENT...]

The node has two GPUs by its configuration (which no program there will find), so
`srun --gres=gpu:1 ...` works in COMMAND. Configuration, key, sockets, spool folders and
ports are the script's own, in a temporary folder; no cgroups and no systemd are needed,
but root is, which slurmd wants.

After COMMAND no process of a job may be left: they have fifteen seconds, then they are
named and killed. The status is COMMAND's, or 1 where something was left.
"""

import os
import pathlib
import socket
import subprocess
import sys
import tempfile

from services import end_all, find, free_ports, tagged, until

# What Slurm gives to a job; the command itself has the tag too.
JOB = b"SLURM_JOB_ID="


def write_files(folder):
    control, node = free_ports(2)
    (folder / "key").write_bytes(os.urandom(128))
    (folder / "key").chmod(0o400)
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(mode=0o755)
    (folder / "slurm.conf").write_text(f"""
ClusterName=test
SlurmctldHost={socket.gethostname().split('.')[0]}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
KillWait=2
GresTypes=gpu
NodeName=node1 NodeHostname=node1 NodeAddr=127.0.0.1 CPUs={os.cpu_count()} Gres=gpu:2
PartitionName=main Nodes=node1 Default=YES OverSubscribe=FORCE:8
""", encoding="utf-8")
    for number in range(2):
        (folder / f"gpu{number}").touch()  # Stands for a device file.
    (folder / "gres.conf").write_text(f"Name=gpu File={folder}/gpu[0-1]\n",
                                      encoding="utf-8")
    (folder / "cgroup.conf").write_text("CgroupAutomount=no\n", encoding="utf-8")


class Daemons:
    """The three of them, each in the foreground, ended in reverse order."""

    def __init__(self, folder):
        self.folder = folder
        self.running = []

    def start(self, name, *arguments):
        # pylint: disable=consider-using-with
        log = open(self.folder / f"{name}.log", "wb")
        self.running.append(subprocess.Popen(
            [find(name), *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env={**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}))

    def stop(self):
        for daemon in reversed(self.running):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def have_ended(self):
        return any(daemon.poll() is not None for daemon in self.running)

    def logs(self):
        return "".join(f"--- {path.name}\n{path.read_text(errors='replace')[-2000:]}"
                       for path in sorted(self.folder.glob("*.log")))


def is_idle(environment):
    asked = subprocess.run([find("sinfo"), "-h", "-o", "%T"], env=environment,
                           capture_output=True, text=True, check=False)
    return asked.stdout.strip() == "idle"


def main():
    with tempfile.TemporaryDirectory() as name:
        folder, tag = pathlib.Path(name), os.path.basename(name)
        folder.chmod(0o755)  # munged wants its socket to be within reach of all.
        write_files(folder)
        # A job inherits the environment of its srun.
        environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"),
                       "FSR_TEST_TAG": tag, "FSR_TEST_REMOTE_TAG": tag}
        daemons = Daemons(folder)
        try:
            daemons.start("munged", "--foreground", f"--socket={folder}/munge/socket",
                          f"--key-file={folder}/key", f"--pid-file={folder}/munge/pid",
                          f"--log-file={folder}/munge/log",
                          f"--seed-file={folder}/munge/seed", "--force")
            if not until(10, (folder / "munge" / "socket").exists):
                sys.exit("with-slurm: munged does not start\n" + daemons.logs())
            daemons.start("slurmctld", "-D", "-c", "-f", str(folder / "slurm.conf"))
            daemons.start("slurmd", "-D", "-N", "node1", "-f", str(folder / "slurm.conf"))
            until(60, lambda: is_idle(environment) or daemons.have_ended())
            if not is_idle(environment):
                sys.exit("with-slurm: the node does not come up\n" + daemons.logs())
            status = subprocess.run(sys.argv[1:], env=environment, check=False).returncode
            until(15, lambda: not tagged(tag, also=JOB))
            left = tagged(tag, also=JOB)
            if status:
                print(daemons.logs(), file=sys.stderr)
        finally:
            subprocess.run([find("scancel"), "-f", "-s", "KILL", "-u", "root"],
                           env=environment, check=False, capture_output=True)
            daemons.stop()
    return status or int(end_all(left))


if __name__ == "__main__":
    sys.exit(main())
