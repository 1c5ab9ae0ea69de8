"""The developer's home: what an empty one is given. Nothing is ever overwritten."""

from __future__ import annotations

import os
from pathlib import Path

import places
from failure import Failure

SKELETON = Path("/etc/skel")
FILES = [".bashrc", ".profile", ".bash_logout"]
PROFILE = """\

# /etc/profile has set PATH anew; this is the workspace's.
if [ -n "${WORKSPACE_PATH:-}" ]; then
  export PATH="$WORKSPACE_PATH"
fi
"""


def prepare(home: Path, run: Path, skeleton: Path = SKELETON) -> None:
    try:
        _fill(home, run, skeleton)
    except OSError as error:
        raise Failure(
            f"{error.filename}: {error.strerror}: the home must be writable for uid"
            f" {os.getuid()}. Look at the volume's access modes and the pod's fsGroup"
        ) from error


def _fill(home: Path, run: Path, skeleton: Path) -> None:
    for name in FILES:
        _add(home / name, _content(skeleton / name))
    folder = home / ".ssh"
    folder.mkdir(mode=0o700, exist_ok=True)
    _add(folder / "config", f"Include {run / places.SSH_CONFIG}\n")
    _tighten(folder)


def _content(example: Path) -> str:
    text = example.read_text() if example.exists() else ""
    return text + PROFILE if example.name == ".profile" else text


def _add(path: Path, content: str) -> None:
    if not path.is_symlink() and not path.exists():
        places.write(path, content, 0o644)


def _tighten(folder: Path) -> None:
    """A pod's fsGroup makes every file of a volume writable for the group, and ssh
    refuses keys and configuration that others than the owner may write."""
    for path in [folder, *folder.iterdir()]:
        mode = path.lstat().st_mode
        wide = 0o077 if path.name.startswith("id_") and path.suffix != ".pub" else 0o022
        owned = path.lstat().st_uid == os.getuid()
        if owned and not path.is_symlink() and mode & wide:
            path.chmod(mode & 0o7777 & ~wide)
