"""The home volume. The script finds it when EC2 attaches it, formats it once, and never
formats another disk.

The disks are real block devices (loop devices) with real file systems. The models in
/sys/block and the names in /dev, which EC2 would choose, are fakes.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from random import Random

import pytest

from machines import home, login, workspaces
from machines.disks import INSTANCE_STORE, Disk
from machines.machine import Machine, status

LETTER = f"{home.HOME}/letter"
OWNER = ["runuser", "-u", "developer", "--"]


@pytest.fixture
def machine(fresh: Callable[[], Machine]) -> Machine:
    machine = fresh()
    home.install(machine)
    return machine


@pytest.fixture
def disk() -> Iterator[Callable[[], Disk]]:
    with ExitStack() as disks:
        yield lambda: disks.enter_context(closing(Disk()))


@pytest.fixture
def old_home(fresh: Callable[[], Machine], disk: Callable[[], Disk]) -> Disk:
    """A home in which an owner wrote a letter, on an instance that no longer exists."""
    machine, old = fresh(), disk()
    home.install(machine)
    old.attach(machine, "nvme1n1")
    home.mount(machine)
    machine.run(*OWNER, "sh", "-c", f"echo Dear all >{LETTER}; chmod 600 {LETTER}")
    home.reboot(machine)
    return old


def test_a_blank_volume_that_comes_late_becomes_home(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    machine.run(*OWNER, "mkdir", "-m", "750", f"{home.HOME}/kept")
    before = machine.says(
        "sh", "-c", f"cd {home.HOME}; find . -printf '%m %u %g %p\\n'"
    )
    running = home.wait(machine, "waiting")
    disk().attach(machine, "nvme1n1")
    home.mount(machine, running)
    machine.run("rmdir", f"{home.HOME}/lost+found")
    after = machine.says("sh", "-c", f"cd {home.HOME}; find . -printf '%m %u %g %p\\n'")
    assert sorted(after.splitlines()) == sorted(before.splitlines())
    machine.run(*OWNER, "touch", LETTER)


def test_a_blank_encrypted_volume_becomes_home(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    volume = disk()
    # An encrypted EBS volume has random data in blocks that were never written, because
    # EBS decrypts them: kubernetes/kubernetes#86064.
    volume.fill(Random(0).randbytes(8 << 20))
    volume.attach(machine, "nvme1n1")
    home.mount(machine)
    assert "formatting" in home.log(machine)


def test_a_reboot_keeps_what_is_in_home(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    disk().attach(machine, "nvme1n1")
    home.mount(machine)
    machine.run(*OWNER, "sh", "-c", f"head -c 4M /dev/urandom >{LETTER}")
    written = machine.says("sha256sum", LETTER)
    home.reboot(machine)
    home.mount(machine)
    assert machine.says("sha256sum", LETTER) == written
    assert home.log(machine).count("formatting") == 1


def test_another_instance_gets_home_as_it_was_left(
    fresh: Callable[[], Machine], old_home: Disk
) -> None:
    machine = fresh()
    # On another image, the image's own users may have the first user ids.
    home.install(machine, uid=1234)
    old_home.attach(machine, "nvme3n1")
    home.mount(machine)
    assert machine.says(*OWNER, "cat", LETTER) == "Dear all"
    assert machine.says("stat", "-c", "%a %U:%G", LETTER) == "600 developer:developer"
    assert "formatting" not in home.log(machine)


def test_keys_that_the_owner_added_to_home_keep_working(
    machine: Machine, old_home: Disk
) -> None:
    key = login.make_key(machine)
    old_home.attach(machine, "nvme1n1")
    home.mount(machine)
    add = f"mkdir -m 700 .ssh; echo '{key}' >.ssh/authorized_keys"
    machine.run(*OWNER, "sh", "-c", f"cd; cd {home.HOME}; {add}")
    login.serve(machine)
    assert "letter" in login.ssh(machine, "ls")


FOREIGN = {
    "partitions": "echo start=2048 | sfdisk -q /dev/nvme1n1",
    "another ext4": "mkfs.ext4 -qL data /dev/nvme1n1",
    "an xfs": "mkfs.xfs -qL data /dev/nvme1n1",
    "swap": "mkswap /dev/nvme1n1",
    "an encrypted disk": r"""
        { printf 'LUKS\272\276\0\2'; head -c 4088 /dev/urandom; } >/dev/nvme1n1
    """,
}


@pytest.mark.parametrize("what", FOREIGN)
def test_a_disk_with_other_data_is_left_alone(
    machine: Machine, disk: Callable[[], Disk], what: str
) -> None:
    foreign = disk()
    foreign.attach(machine, "nvme1n1")
    machine.run("sh", "-ec", FOREIGN[what])
    before = foreign.digest()
    home.wait(machine, "other: nvme1n1")
    assert foreign.digest() == before


def test_instance_store_is_never_formatted(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    store, volume = disk(), disk()
    store.attach(machine, "nvme1n1", INSTANCE_STORE)
    # Some images have links from the names in block device mappings to NVMe disks.
    os.symlink("nvme1n1", machine.outside("/dev/sdf"))
    running = home.wait(machine, "homes: blank: other:")
    volume.attach(machine, "nvme2n1")
    home.mount(machine, running)
    assert store.is_untouched()
    assert not volume.is_untouched()


def test_two_blank_disks_are_left_alone(
    machine: Machine, disk: Callable[[], Disk], old_home: Disk
) -> None:
    blank = [disk(), disk()]
    for number, one in enumerate(blank):
        one.attach(machine, f"nvme{number}n1")
    running = home.wait(machine, "blank: nvme0n1 nvme1n1")
    assert all(one.is_untouched() for one in blank)
    old_home.attach(machine, "nvme2n1")
    home.mount(machine, running)
    assert machine.has(LETTER)
    assert all(one.is_untouched() for one in blank)


def test_two_homes_are_left_alone(
    machine: Machine, disk: Callable[[], Disk], old_home: Disk
) -> None:
    copy = disk()
    copy.attach(machine, "nvme2n1")
    machine.run("mkfs.ext4", "-qL", "gpu-home", "/dev/nvme2n1")
    before = [old_home.digest(), copy.digest()]
    old_home.attach(machine, "nvme1n1")
    home.wait(machine, "homes: nvme1n1 nvme2n1")
    assert [old_home.digest(), copy.digest()] == before


def test_a_first_boot_that_died_while_formatting_is_made_good(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    disk().attach(machine, "nvme1n1")
    machine.run("mkfs.ext4", "-qL", "gpu-home-new", "/dev/nvme1n1")
    home.mount(machine)
    assert machine.has(f"{home.HOME}/.profile")


def test_a_home_whose_instance_died_hard_is_repaired(
    machine: Machine, old_home: Disk
) -> None:
    old_home.attach(machine, "nvme1n1")
    # The kernel sets this state if it finds errors in a file system.
    machine.run("debugfs", "-wR", "set_super_value state 2", "/dev/nvme1n1")
    assert "with errors" in machine.says("dumpe2fs", "-h", "/dev/nvme1n1")
    home.mount(machine)
    assert machine.says("cat", LETTER) == "Dear all"
    machine.run("umount", home.HOME)
    assert "with errors" not in machine.says("dumpe2fs", "-h", "/dev/nvme1n1")


def test_a_volume_made_larger_is_used_in_full_after_a_reboot(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    volume = disk()
    volume.attach(machine, "nvme1n1")
    home.mount(machine)
    size = ["findmnt", "-bno", "SIZE", home.HOME]
    before = int(machine.says(*size))
    volume.grow(1024)
    home.reboot(machine)
    home.mount(machine)
    if machine.can_resize():
        assert int(machine.says(*size)) > 1.9 * before
    else:
        # Some sandboxes do not give root this capability. Home must still be mounted.
        assert "Permission denied to resize" in home.log(machine)


def test_running_again_disturbs_nothing(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    disk().attach(machine, "nvme1n1")
    home.mount(machine)
    machine.run(*OWNER, "touch", LETTER)
    home.mount(machine)
    assert machine.has(LETTER)
    assert home.log(machine).count("formatting") == 1


def test_xen_instances_have_a_home_too(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    disk().attach(machine, "xvdf", model=None)
    home.mount(machine)
    assert machine.says("findmnt", "-no", "SOURCE", home.HOME) == "/dev/xvdf"


def test_a_program_brought_along_in_home_gives_nobody_root(
    machine: Machine, disk: Callable[[], Disk]
) -> None:
    disk().attach(machine, "nvme1n1")
    home.mount(machine)
    machine.run("install", "-m", "4755", "/usr/bin/id", f"{home.HOME}/id")
    assert machine.says(*OWNER, f"{home.HOME}/id", "-un") == "developer"


KEPT = f"{home.HOME}/.gpu-workspace-host-keys"


def _make_host_keys(machine: Machine) -> None:
    """Makes new host keys, as cloud-init does at the first boot of an image."""
    machine.run("sh", "-c", "rm /etc/ssh/ssh_host_*; ssh-keygen -A")


def _host_keys(machine: Machine) -> str:
    show = "cd /etc/ssh; sha256sum ssh_host_*_key; cut -d ' ' -f -2 ssh_host_*_key.pub"
    return machine.says("sh", "-c", show)


@pytest.fixture
def known(
    fresh: Callable[[], Machine], disk: Callable[[], Disk]
) -> Callable[[], tuple[Machine, Disk, str]]:
    """Starts a machine that keeps its host keys in home. Returns the machine, the disk
    and the keys."""

    def start() -> tuple[Machine, Disk, str]:
        machine, volume = fresh(), disk()
        home.install(machine, case=workspaces.HOME_AND_AGENT)
        _make_host_keys(machine)
        volume.attach(machine, "nvme1n1")
        keys = _host_keys(machine)
        home.mount(machine)
        assert _host_keys(machine) == keys
        return machine, volume, keys

    return start


Known = Callable[[], tuple[Machine, Disk, str]]


@pytest.mark.parametrize("uid", [1000, pytest.param(1234, marks=pytest.mark.thorough)])
def test_ssh_knows_a_workspace_again_on_its_next_instance(
    fresh: Callable[[], Machine], known: Known, uid: int
) -> None:
    old, volume, keys = known()
    home.reboot(old)
    for _ in range(2):
        machine = fresh()
        home.install(machine, uid, case=workspaces.HOME_AND_AGENT)
        _make_host_keys(machine)
        assert _host_keys(machine) != keys
        volume.attach(machine, "nvme1n1")
        home.mount(machine)
        assert _host_keys(machine) == keys, home.log(machine)
        modes = machine.says("sh", "-c", "stat -c '%a %U' /etc/ssh/ssh_host_*_key")
        assert set(modes.splitlines()) == {"600 root"}
        login.make_key(machine)
        login.serve(machine)
        assert machine.says("stat", "-c", "%U", home.HOME) == "developer"
        home.reboot(machine)


def test_a_restored_key_needs_a_restart_of_sshd_and_a_kept_one_none(
    fresh: Callable[[], Machine], known: Known
) -> None:
    old, volume, _ = known()
    home.reboot(old)
    machine = fresh()
    home.install(machine, case=workspaces.HOME_AND_AGENT)
    systemctl = '#!/bin/sh\necho "$@" >>/run/asked\n'
    machine.write("/usr/local/sbin/systemctl", systemctl, "0755")
    _make_host_keys(machine)
    volume.attach(machine, "nvme1n1")
    home.mount(machine)
    home.mount(machine)
    assert machine.says("cat", "/run/asked") == "try-restart ssh"


def test_the_owner_of_a_home_cannot_read_its_host_keys(known: Known) -> None:
    machine, _, _ = known()
    assert machine.says("stat", "-c", "%a %U", KEPT) == "700 root"
    assert machine.run(*OWNER, "ls", KEPT, check=False).returncode != 0
    assert machine.says("ls", KEPT).split() == [
        f"ssh_host_{kind}_key" for kind in ("ecdsa", "ed25519", "rsa")
    ]


@pytest.mark.parametrize("how", ["a folder", "a link"])
def test_an_owner_gives_a_machine_no_host_key(known: Known, how: str) -> None:
    machine, _, keys = known()
    machine.run(*OWNER, "mv", KEPT, f"{home.HOME}/away")
    make = (
        "mkdir -m 700 mine; ssh-keygen -qt ed25519 -N '' -f mine/ssh_host_ed25519_key"
    )
    name = "mv mine" if how == "a folder" else "ln -s mine"
    machine.run(*OWNER, "sh", "-ec", f"cd {home.HOME}; {make}; {name} {KEPT}")
    home.mount(machine)
    assert _host_keys(machine) == keys
    assert "is not root's alone" in home.log(machine)


def test_systemd_starts_it_at_every_boot(machine: Machine) -> None:
    assert machine.says("systemd-analyze", "verify", home.UNIT) == ""
    machine.run("systemctl", "enable", home.UNIT)
    machine.run("systemctl", "start", home.UNIT)
    assert machine.has(f"/etc/systemd/system/multi-user.target.wants/{home.UNIT}")


def test_the_keys_of_the_claim_open_an_old_home(
    fresh: Callable[[], Machine], old_home: Disk
) -> None:
    machine = fresh()
    workspaces.with_home(machine).boot.finish()
    assert status(machine)["status"] == "done", status(machine)
    assert machine.has(f"/etc/systemd/system/multi-user.target.wants/{home.UNIT}")
    login.serve(machine)
    assert login.ssh(machine, "ls") == "", "before home is there"
    old_home.attach(machine, "nvme1n1")
    home.mount(machine)
    assert "letter" in login.ssh(machine, "ls")


def test_a_key_that_left_the_claim_does_not_open_an_old_home(
    fresh: Callable[[], Machine], disk: Callable[[], Disk]
) -> None:
    old, volume = fresh(), disk()
    workspaces.with_home(old).boot.finish()
    volume.attach(old, "nvme1n1")
    home.mount(old)
    home.reboot(old)
    machine = fresh()
    workspaces.with_home(machine).boot.finish()
    volume.attach(machine, "nvme1n1")
    home.mount(machine)
    login.serve(machine)
    login.ssh(machine, "true")
    machine.write(login.KEY, old.run("cat", login.KEY).stdout, "0600")
    machine.run("rm", f"{login.KEY}.pub")
    with pytest.raises(AssertionError, match="Permission denied"):
        login.ssh(machine, "true")
