"""Disks: loop devices over memory, shown to a machine as EC2 would attach them.

Nothing outlives the process that made them: the kernel detaches the device with its
last user, and the memory has no name.
"""

import errno
import fcntl
import hashlib
import os
import stat
import struct

from machines.machine import Machine

EBS = "Amazon Elastic Block Store"
INSTANCE_STORE = "Amazon EC2 NVMe Instance Storage"

# linux/loop.h
LOOP_CTL_GET_FREE = 0x4C82
LOOP_CONFIGURE = 0x4C0A
LOOP_SET_CAPACITY = 0x4C07
LO_FLAGS_AUTOCLEAR = 4
# struct loop_config: the file, the block size, struct loop_info64, reserved words.
CONFIG = struct.Struct("=II52xI176x64x")


class Disk:
    """A disk of zeros."""

    def __init__(self, mebibytes: int = 512) -> None:
        self._memory = os.memfd_create("disk")
        os.ftruncate(self._memory, mebibytes << 20)
        self._device = _attach(self._memory)
        # It is /dev/loop and this number.
        self.number = os.minor(os.fstat(self._device).st_rdev)

    def fill(self, data: bytes) -> None:
        """Writes from its start."""
        os.pwrite(self._device, data, 0)

    def grow(self, mebibytes: int) -> None:
        os.ftruncate(self._memory, mebibytes << 20)
        fcntl.ioctl(self._device, LOOP_SET_CAPACITY)

    def is_untouched(self) -> bool:
        """Whether nothing was ever written to it, not even zeros."""
        os.fsync(self._device)
        try:
            os.lseek(self._memory, 0, os.SEEK_DATA)
        except OSError as error:
            return error.errno == errno.ENXIO
        return False

    def digest(self) -> str:
        os.fsync(self._device)
        with open(self._memory, "rb", closefd=False) as file:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()

    def close(self) -> None:
        os.close(self._device)
        os.close(self._memory)

    def attach(self, machine: Machine, name: str, model: str | None = EBS) -> None:
        """Shows it as /dev/NAME: an NVMe disk of that model, or a Xen disk."""
        node = machine.outside(f"/dev/{name}")
        os.mknod(node, stat.S_IFBLK | 0o600, os.fstat(self._device).st_rdev)
        if model:
            # A controller pads its model to 40 bytes.
            machine.write(f"/sys/block/{name}/device/model", f"{model:40}\n")


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
                # Somebody else was given the same one.
                if error.errno != errno.EBUSY:
                    raise
    finally:
        os.close(control)
