"""The storage of machines: their root disks, and volumes, which outlive machines.

All of it is in one folder. The folder is deleted when the emulator ends, also if it is
killed.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import cgroup

# Waits until its standard input closes, which means that the emulator has ended. Then
# removes the emulator's cgroups, which are empty folders by then, and its disks.
CLEAN = """\
cat >/dev/null
for _ in $(seq 100); do
  [ -d "$2" ] || break
  find "$2" -depth -type d -exec rmdir {} + 2>/dev/null
  sleep 0.1
done
rm -rf -- "$1"
"""


class Storage:
    def __init__(self, below: Path) -> None:
        below.mkdir(parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(prefix="machines-", dir=below))
        (self._folder / "volumes").mkdir()
        command = ["sh", "-c", CLEAN, "-", str(self._folder), str(cgroup.folder())]
        # The script has its own session, so that a signal to the emulator's process
        # group does not end it.
        self._cleaner = subprocess.Popen(
            command, stdin=subprocess.PIPE, start_new_session=True
        )

    def root(self, instance_id: str) -> Path:
        """The folder of a root disk. It has all that was written since the launch."""
        place = self._folder / "roots" / instance_id
        place.mkdir(parents=True, exist_ok=True)
        return place

    def forget_root(self, instance_id: str) -> None:
        shutil.rmtree(self._folder / "roots" / instance_id, ignore_errors=True)

    def volume(self, volume_id: str, gib: int) -> Path:
        """The file of a volume. It begins with zeros, and grows with the volume."""
        file = self._folder / "volumes" / volume_id
        file.touch()
        if file.stat().st_size < gib << 30:
            os.truncate(file, gib << 30)
        return file

    def copy(self, source: str, target: str) -> None:
        """Copies the current content of a volume or snapshot to another.

        A source without a file was never written to. Its copy needs no file either.
        """
        files = self._folder / "volumes"
        if (files / source).exists():
            # cp preserves holes. If the file system supports it, cp shares the blocks
            # instead of copying them.
            subprocess.run(["cp", files / source, files / target], check=True)

    def forget_volume(self, volume_id: str) -> None:
        (self._folder / "volumes" / volume_id).unlink(missing_ok=True)
