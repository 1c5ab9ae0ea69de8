"""What sshd and ssh are told, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import places

# Set anew by every session, or meant for the container's programs alone.
OF_A_SESSION = {
    *["HOME", "HOSTNAME", "LOGNAME", "MAIL", "OLDPWD", "PWD", "SHELL", "SHLVL"],
    *["TERM", "USER", "_"],
}
OF_THE_CLUSTER = ("KUBERNETES_",)


def session_path(environment: Mapping[str, str]) -> str:
    """The image's environment and the workspace's commands come first."""
    own = [places.ENVIRONMENT / "bin", places.SCRIPTS]
    image = environment.get("PATH") or "/usr/local/bin:/usr/bin:/bin"
    found = [*map(str, own), *image.split(":")]
    return ":".join(dict.fromkeys(folder for folder in found if folder))


def session(environment: Mapping[str, str]) -> dict[str, str]:
    """What every session's environment has of the container's."""
    kept = {
        name: value
        for name, value in environment.items()
        if name not in OF_A_SESSION and not name.startswith(OF_THE_CLUSTER)
    }
    path = session_path(environment)
    # /etc/profile sets PATH anew in login shells; what it runs last takes this one.
    return {"LANG": "C.UTF-8", **kept, "PATH": path, "WORKSPACE_PATH": path}


def expressible(value: str) -> bool:
    """sshd_config has no way to write a line's end."""
    return not any(c in value for c in "\n\r\0")


def quoted(name: str, value: str) -> str:
    """An argument for sshd, whose own rules (argv_split in misc.c) are a shell's
    without expansions: in double quotes, backslash and quotes are escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{name}={escaped}"'


def sshd(run: Path, variables: Mapping[str, str]) -> str:
    """sshd's configuration, for the developer alone and by keys alone."""
    # sshd takes the first SetEnv and ignores the others.
    together = " ".join(
        quoted(n, v) for n, v in sorted(variables.items()) if expressible(v)
    )
    return f"""\
Port 22
HostKey {run / places.HOST_KEY}
PidFile none
AuthorizedKeysFile {places.AUTHORIZED_KEYS} {run / places.GANG_AUTHORIZED_KEYS}
# The kubelet mounts the keys as a folder that everybody may write.
StrictModes no
AllowUsers {places.USER}
AuthenticationMethods publickey
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitEmptyPasswords no
PermitRootLogin no
PermitUserEnvironment no
UsePAM no
UseDNS no
X11Forwarding no
PermitTunnel no
GatewayPorts no
PrintMotd no
LoginGraceTime 30
MaxStartups 64:30:128
MaxSessions 64
# A client that vanished is noticed after 45 s.
ClientAliveInterval 15
ClientAliveCountMax 3
Subsystem sftp internal-sftp
SetEnv {together}
"""


def known_hosts(alias: str, public_key: str) -> str:
    return f"{alias} {public_key.strip()}\n"


def alias(workspace: str) -> str:
    """The name under which all nodes of a workspace are one host."""
    return f"gpu-workspace-{workspace}"


def ssh(run: Path, workspace: str, hosts: Sequence[str]) -> str:
    """The client's configuration for the other nodes."""
    blocks = [_block(run, workspace, host) for host in hosts]
    return "# Written when the workspace starts.\n" + "\n".join(blocks)


def _block(run: Path, workspace: str, host: str) -> str:
    """A node by its pod's name, its full name, and all that lie between them."""
    labels = host.split(".")
    names = [".".join(labels[:length]) for length in range(1, len(labels) + 1)]
    return f"""\
Host {" ".join(names)}
  HostName {host}
  HostKeyAlias {alias(workspace)}
  User {places.USER}
  IdentityFile {run / places.GANG_KEY}
  IdentitiesOnly yes
  UserKnownHostsFile {run / places.KNOWN_HOSTS}
  GlobalKnownHostsFile none
  StrictHostKeyChecking yes
  UpdateHostKeys no
  BatchMode yes
"""
