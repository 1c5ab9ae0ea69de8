"""What a run on all nodes takes over from the session that starts it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

# Of this session or this node alone.
OWN = {
    *["PET_NODE_RANK", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "SHELL", "HOME", "_"],
    *["USER", "LOGNAME", "MAIL", "TERM", "COLORTERM", "DISPLAY", "LS_COLORS", "PS1"],
}
OWN_PREFIXES = ("SSH_", "XDG_", "TMUX", "VSCODE_", "KUBERNETES_", "LESS", "BASH_FUNC")


def changed(
    environment: Mapping[str, str], session: Mapping[str, str]
) -> dict[str, str]:
    """What the owner set or changed: `NCCL_DEBUG=INFO workspace-torchrun …` and an
    activated environment count on every node."""
    return {
        name: value
        for name, value in environment.items()
        if session.get(name) != value
        and name not in OWN
        and not name.startswith(OWN_PREFIXES)
    }


def at_start(file: Path) -> dict[str, str]:
    """What every session of this node starts with."""
    if not file.exists():
        return {}
    found = json.loads(file.read_text())
    assert isinstance(found, dict)
    return found
