"""A person's own shell, into which they paste what a page shows."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from cluster.workspaces import Key


def pasted(line: str, known_hosts: list[str], key: Key, folder: Path, then: str) -> str:
    """What a line of a page prints, after the person types another line. The person has a key and
    known hosts, and no configuration.

    ssh takes the home folder from the user database. So this shell has another folder in its
    place."""
    ssh = folder / "home/.ssh"
    ssh.mkdir(parents=True, mode=0o700)
    shutil.copy(key.private, ssh / "id_ed25519")
    (ssh / "known_hosts").write_text("".join(f"{one}\n" for one in known_hosts))
    home = pwd.getpwuid(os.getuid()).pw_dir
    script = 'mount --bind "$NEW_HOME" "$OLD_HOME" && exec sh -c "$LINE"'
    ran = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        env={
            "PATH": os.environ["PATH"],
            "NEW_HOME": str(ssh.parent),
            "OLD_HOME": home,
            "LINE": line,
        },
        input=f"{then}\nexit\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, f"{line}: {ran.stderr}"
    return ran.stdout
