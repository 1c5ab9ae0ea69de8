"""Where a workspace's files are."""

from __future__ import annotations

import os
from pathlib import Path

# The ConfigMap with these scripts. Python resolves the symbolic link that the kubelet
# replaces when the ConfigMap changes, so a script's own path does not stay valid.
SCRIPTS = Path("/opt/gpu-workspace/bin")
# The image's Python environment; images that have none have Python on their PATH.
ENVIRONMENT = Path("/opt/workspace/venv")
HOME = Path("/home/developer")
USER = "developer"
# Memory that both containers share.
RUN = Path("/run/gpu-workspace")

AUTHORIZED_KEYS = Path("/etc/gpu-workspace/ssh/authorized_keys")
HOST_KEY = "ssh_host_ed25519_key"
GANG_KEY = "gang_ed25519"
GANG_AUTHORIZED_KEYS = "gang_authorized_keys"
SSHD_CONFIG = "sshd_config"
SSH_CONFIG = "ssh_config"
KNOWN_HOSTS = "known_hosts"
# What every session starts with, as JSON.
SESSION = "session.json"


def write(path: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Replaces a file; nobody ever sees half of it, or it with another mode."""
    data = content.encode() if isinstance(content, str) else content
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with os.fdopen(os.open(beside, flags, mode), "wb") as file:
        os.fchmod(file.fileno(), mode)
        file.write(data)
    os.replace(beside, path)
