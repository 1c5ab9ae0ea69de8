"""sshd in a machine, on port 22 of the machine's own network, and ssh to it."""

import subprocess

from machines.machine import Machine

KEY = "/root/.ssh/id_ed25519"
AT = "developer@127.0.0.1"
SETTINGS = ["-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"]
OPTIONS = [*SETTINGS, "-i", KEY]


def make_key(machine: Machine) -> str:
    """Makes a key pair, and returns the public key. The private key stays in the
    machine."""
    machine.run("mkdir", "-p", "/root/.ssh")
    make_pair(machine, KEY)
    return machine.says("cat", f"{KEY}.pub")


def make_pair(machine: Machine, path: str) -> None:
    """Makes a key pair in the machine. `path` is its private key."""
    machine.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", path)


def public_key(machine: Machine, path: str = KEY) -> str:
    """The public key of a key pair in the machine, without its comment."""
    return " ".join(machine.says("cat", f"{path}.pub").split()[:2])


def serve(machine: Machine) -> None:
    host_key = "/etc/ssh/ssh_host_ed25519_key"
    if not machine.has(host_key):
        make_pair(machine, host_key)
    machine.run("mkdir", "-p", "/run/sshd")
    machine.run("/usr/sbin/sshd")
    hosts = "sed 's/^/127.0.0.1 /' /etc/ssh/ssh_host_*_key.pub >/root/.ssh/known_hosts"
    machine.run("sh", "-c", hosts)


def ssh(machine: Machine, command: str, key: str = KEY) -> str:
    return machine.says("ssh", *_with(key), AT, command)


def is_refused(machine: Machine, key: str = KEY) -> bool:
    done = machine.run("ssh", *_with(key), AT, "true", check=False)
    return done.returncode == 255 and "Permission denied (publickey)" in done.stdout


def _with(key: str) -> list[str]:
    return [*SETTINGS, "-o", "IdentitiesOnly=yes", "-i", key]


def ssh_by_password(machine: Machine) -> subprocess.CompletedProcess[str]:
    methods = "PreferredAuthentications=password,keyboard-interactive"
    options = ["-o", "StrictHostKeyChecking=yes", "-o", methods]
    return machine.run("ssh", *options, AT, "true", check=False)
