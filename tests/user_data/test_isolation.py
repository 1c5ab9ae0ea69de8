"""A killed run leaves nothing behind on the machine that runs the tests."""

import subprocess
import sys
from pathlib import Path

from machines.root import Root
from machines.waiting import until

RUN = """
import sys, time
from pathlib import Path
from machines.disks import Disk
from machines.machine import started
from machines.root import Root
with started(Root(Path(sys.argv[1])), Path(sys.argv[2])) as machine:
    disk = Disk()
    disk.attach(machine, "nvme1n1")
    machine.run("sh", "-ec", "mkfs.ext4 -q /dev/nvme1n1; mount /dev/nvme1n1 /mnt")
    inside = machine.start("sleep", "infinity")
    print(machine.pid, inside.pid, disk.number, flush=True)
    time.sleep(3600)
"""


def test_a_killed_run_leaves_no_process_no_mount_and_no_disk(
    base: Root, packages: Path
) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    command = [sys.executable, "-c", RUN, str(base.folder), str(packages)]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    with run.stdout:
        machine, inside, disk = run.stdout.readline().split()
    backing = Path(f"/sys/block/loop{disk}/loop/backing_file")
    assert backing.exists()
    run.kill()
    run.wait()
    for process in (machine, inside):
        until("no process", lambda: not Path(f"/proc/{process}").exists())
    until("no disk", lambda: not backing.exists())
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert list(base.mountpoint.iterdir()) == []
