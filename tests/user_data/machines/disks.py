"""Disks: loop devices on memory or a file, shown to a machine as EC2 attaches volumes.

No device outlives the process that made it: the kernel detaches a device when its last
user closes it. It also frees the memory, which has no name.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
import struct
from pathlib import Path

from machines.machine import Machine

EBS = "Amazon Elastic Block Store"
INSTANCE_STORE = "Amazon EC2 NVMe Instance Storage"

# Constants of linux/loop.h.
LOOP_CTL_GET_FREE = 0x4C82
LOOP_CONFIGURE = 0x4C0A
LOOP_SET_CAPACITY = 0x4C07
LO_FLAGS_AUTOCLEAR = 4
# struct loop_config has the file, the block size, struct loop_info64, reserved words.
CONFIG = struct.Struct("=II52xI176x64x")


class Disk:
    """A disk of zeros in memory, or a disk whose content is a file."""

    def __init__(self, mebibytes: int = 512, file: Path | None = None) -> None:
        if file is None:
            self._content = os.memfd_create("disk")
            os.ftruncate(self._content, mebibytes << 20)
        else:
            self._content = os.open(file, os.O_RDWR)
        self._device = _attach(self._content)
        # The device is /dev/loopNUMBER.
        self.number = os.minor(os.fstat(self._device).st_rdev)

    def fill(self, data: bytes) -> None:
        """Writes data at the start of the disk."""
        os.pwrite(self._device, data, 0)

    def grow(self, mebibytes: int) -> None:
        os.ftruncate(self._content, mebibytes << 20)
        fcntl.ioctl(self._device, LOOP_SET_CAPACITY)

    def is_untouched(self) -> bool:
        """Whether nothing was ever written to the disk, not even zeros."""
        os.fsync(self._device)
        try:
            os.lseek(self._content, 0, os.SEEK_DATA)
        except OSError as error:
            return error.errno == errno.ENXIO
        return False

    def digest(self) -> str:
        os.fsync(self._device)
        with open(self._content, "rb", closefd=False) as file:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()

    def close(self) -> None:
        os.close(self._device)
        os.close(self._content)

    def attach(self, machine: Machine, name: str, model: str | None = EBS) -> None:
        """Shows the disk as /dev/NAME: an NVMe disk with this model, or a Xen disk if
        there is no model."""
        node = machine.outside(f"/dev/{name}")
        os.mknod(node, stat.S_IFBLK | 0o600, os.fstat(self._device).st_rdev)
        if model:
            folder = Path(machine.outside(f"/sys/block/{name}/device"))
            folder.mkdir(parents=True)
            # NVMe controllers pad the model to 40 bytes.
            (folder / "model").write_text(f"{model:40}\n")

    def detach(self, machine: Machine, name: str) -> None:
        """Hides the disk from the machine."""
        Path(machine.outside(f"/dev/{name}")).unlink()
        shutil.rmtree(machine.outside(f"/sys/block/{name}"), ignore_errors=True)

    def is_mounted(self) -> bool:
        """Whether any machine has mounted the disk's file system."""
        try:
            os.close(os.open(f"/dev/loop{self.number}", os.O_RDONLY | os.O_EXCL))
        except OSError as error:
            if error.errno == errno.EBUSY:
                return True
            raise
        return False


def _attach(file: int) -> int:
    control = os.open("/dev/loop-control", os.O_RDWR)
    try:
        while True:
            number = fcntl.ioctl(control, LOOP_CTL_GET_FREE)
            device = os.open(f"/dev/loop{number}", os.O_RDWR)
            try:
                fcntl.ioctl(
                    device, LOOP_CONFIGURE, CONFIG.pack(file, 0, LO_FLAGS_AUTOCLEAR)
                )
                return device
            except OSError as error:
                os.close(device)
                # Another process has taken the same device.
                if error.errno != errno.EBUSY:
                    raise
    finally:
        os.close(control)
