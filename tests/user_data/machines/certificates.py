"""SSH certificate authorities in a machine, and certificates that they sign."""

from machines import login
from machines.machine import Machine

FOLDER = "/root/authorities"
KEY = "/root/.ssh/certified"


def make_authority(machine: Machine, name: str) -> str:
    """The authority's public key. The authority is made if it does not exist."""
    path = f"{FOLDER}/{name}"
    machine.run("mkdir", "-p", FOLDER)
    if not machine.has(path):
        login.make_pair(machine, path)
    return login.public_key(machine, path)


def sign(machine: Machine, authority: str, principal: str, validity: str) -> str:
    """A new key with a certificate of an authority: the path of its private key."""
    machine.run("rm", "-f", KEY, f"{KEY}.pub", f"{KEY}-cert.pub")
    machine.run("mkdir", "-p", "/root/.ssh")
    login.make_pair(machine, KEY)
    names = ["-s", f"{FOLDER}/{authority}", "-I", "test", "-n", principal]
    machine.run("ssh-keygen", "-q", *names, "-V", validity, f"{KEY}.pub")
    return KEY
