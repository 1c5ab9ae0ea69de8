"""A laptop with devctl, whose only way is the bastion."""

import os
import shlex
from pathlib import Path

from bastion.door import PORT, Visitor
from devctl.program import Devctl


def with_devctl(
    program: Path, visitor: Visitor, namespace: str, folder: Path
) -> Devctl:
    """devctl with a home folder that has ssh's configuration for the bastion, and
    programs of ssh that read it."""
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True, mode=0o700)
    config = home / ".ssh/config"
    config.write_text(
        f"Host bastion\n  HostName {visitor.address}\n  Port {PORT}\n"
        f"  User {visitor.name}\n  IdentityFile {visitor.key.private}\n"
        f"  UserKnownHostsFile {visitor.known_hosts}\n  StrictHostKeyChecking yes\n"
        "  IdentitiesOnly yes\n  BatchMode yes\n"
    )
    # ssh takes the home folder from the user database, and not from HOME.
    tools = folder / "bin"
    tools.mkdir()
    for name in ("ssh", "scp"):
        tool = tools / name
        real = f"/usr/bin/{name}"
        tool.write_text(f'#!/bin/sh\nexec {real} -F {shlex.quote(str(config))} "$@"\n')
        tool.chmod(0o755)
    way = {
        "DEVCTL_BASTION": "bastion",
        "KUBECONFIG": str(folder / "none"),
        "PATH": f"{tools}:{os.environ['PATH']}",
    }
    return Devctl(program, home, namespace, visitor.key, way)
