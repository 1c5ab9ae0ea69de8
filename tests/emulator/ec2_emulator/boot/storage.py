"""What machines write: their root disks, and volumes, which outlive machines.

All of it is in one folder, which goes with the emulator, however that ends.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from . import cgroup

# Waits for the end of whoever holds the other end of its standard input, then cleans up
# after it: its cgroups, which are folders that nobody is in any more, and its disks.
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
        # In a session of its own: what ends the emulator must not end it, too.
        self._cleaner = subprocess.Popen(
            command, stdin=subprocess.PIPE, start_new_session=True
        )

    def root(self, instance_id: str) -> Path:
        """The folder of a root disk: what was written since the instance's launch."""
        place = self._folder / "roots" / instance_id
        place.mkdir(parents=True, exist_ok=True)
        return place

    def forget_root(self, instance_id: str) -> None:
        shutil.rmtree(self._folder / "roots" / instance_id, ignore_errors=True)

    def volume(self, volume_id: str, gib: int) -> Path:
        """The file of a volume, zeros at first; it grows with the volume."""
        file = self._folder / "volumes" / volume_id
        file.touch()
        if file.stat().st_size < gib << 30:
            os.truncate(file, gib << 30)
        return file

    def copy(self, source: str, target: str) -> None:
        """The content of a volume or snapshot becomes another's, as it is now.

        A source without a file was never written to; nor is its copy.
        """
        files = self._folder / "volumes"
        if (files / source).exists():
            # Holes stay holes, and where the file system can, nothing is copied at all.
            subprocess.run(["cp", files / source, files / target], check=True)

    def forget_volume(self, volume_id: str) -> None:
        (self._folder / "volumes" / volume_id).unlink(missing_ok=True)
