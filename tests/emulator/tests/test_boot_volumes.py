"""EBS volumes on machines: block devices whose content outlives the machine."""

from collections.abc import Callable, Iterator

import pytest

from booting import Booted, Cloud
from machines.waiting import until

# These tests are slow: each boots machines of its own.
pytestmark = pytest.mark.thorough

DISK = "/dev/nvme1n1"
FORMAT = f"sudo mkfs.ext4 -q {DISK} && sudo mount {DISK} /mnt"


@pytest.fixture
def volume(cloud: Cloud, booted: Booted) -> Callable[..., str]:
    zone = booted.shown()["Placement"]["AvailabilityZone"]

    def create(**source: str) -> str:
        made = cloud.ec2.create_volume(AvailabilityZone=zone, Size=1, **source)
        name: str = made["VolumeId"]
        until("the volume", lambda: _state(cloud, name) == "available")
        return name

    return create


@pytest.fixture
def other(cloud: Cloud, booted: Booted) -> Iterator[Booted]:
    """Another machine in the same zone."""
    zone = booted.shown()["Placement"]["AvailabilityZone"]
    instance = cloud.boot(Placement={"AvailabilityZone": zone})
    yield instance
    instance.terminate()


def _state(cloud: Cloud, volume: str) -> str:
    (shown,) = cloud.ec2.describe_volumes(VolumeIds=[volume])["Volumes"]
    return str(shown["State"])


def _attach(instance: Booted, volume: str) -> None:
    attach = instance.cloud.ec2.attach_volume
    attach(InstanceId=instance.id, VolumeId=volume, Device="/dev/sdf")
    there = f"test -b {DISK} && echo there || :"
    until("the disk", lambda: instance.says(there) == "there")


def _detach(instance: Booted, volume: str) -> None:
    instance.cloud.ec2.detach_volume(VolumeId=volume)
    until("a free volume", lambda: _state(instance.cloud, volume) == "available")


def test_an_attached_volume_is_an_ebs_disk_of_its_size(
    booted: Booted, volume: Callable[..., str]
) -> None:
    name = volume()
    _attach(booted, name)
    model = booted.says("cat /sys/block/nvme*/device/model")
    assert model.strip() == "Amazon Elastic Block Store"
    assert booted.says(f"sudo blockdev --getsize64 {DISK}") == str(1 << 30)
    _detach(booted, name)
    assert booted.says(f"ls {DISK} /sys/block 2>/dev/null || :") == "/sys/block:"


def test_a_mount_is_seen_by_a_service_that_started_before_it(
    booted: Booted, volume: Callable[..., str]
) -> None:
    booted.ssh("sudo systemd-run --quiet -p ProtectSystem=full --unit=early sleep 600")
    _attach(booted, name := volume())
    booted.ssh(f"{FORMAT} && sudo touch /mnt/letter")
    own = "/proc/$(sudo systemctl show --value -p MainPID early)/root"
    booted.ssh(f"sudo test -e {own}/mnt/letter")
    booted.ssh("sudo systemctl stop early; sudo umount /mnt")
    _detach(booted, name)


def test_what_is_written_moves_with_the_volume_and_not_while_it_is_mounted(
    booted: Booted, other: Booted, volume: Callable[..., str]
) -> None:
    name = volume()
    _attach(booted, name)
    booted.ssh(f"{FORMAT} && echo Dear all | sudo tee /mnt/letter")
    booted.cloud.ec2.detach_volume(VolumeId=name)
    settings = booted.cloud.control.ask("GET", "/settings")
    patience = settings["detachingSeconds"] + 1
    with pytest.raises(AssertionError, match="waited"):
        until("", lambda: _state(booted.cloud, name) == "available", patience)
    assert booted.says("cat /mnt/letter") == "Dear all"
    booted.ssh("sudo umount /mnt")
    until("a free volume", lambda: _state(booted.cloud, name) == "available")
    _attach(other, name)
    assert other.says(f"sudo mount {DISK} /mnt && cat /mnt/letter") == "Dear all"


def test_the_end_of_its_instance_keeps_what_is_written(
    cloud: Cloud, booted: Booted, volume: Callable[..., str]
) -> None:
    zone, name = booted.shown()["Placement"]["AvailabilityZone"], volume()
    first = cloud.boot(Placement={"AvailabilityZone": zone})
    _attach(first, name)
    first.ssh(f"{FORMAT} && echo Dear all | sudo tee /mnt/letter")
    first.terminate()
    _attach(booted, name)
    assert booted.says(f"sudo mount {DISK} /mnt && cat /mnt/letter") == "Dear all"
    booted.ssh("sudo umount /mnt")
    _detach(booted, name)


def test_a_volume_of_a_stopped_instance_is_there_when_it_starts(
    cloud: Cloud, other: Booted, volume: Callable[..., str]
) -> None:
    name = volume()
    cloud.ec2.stop_instances(InstanceIds=[other.id])
    other.await_state("stopped")
    cloud.ec2.attach_volume(InstanceId=other.id, VolumeId=name, Device="/dev/sdf")
    cloud.ec2.start_instances(InstanceIds=[other.id])
    other.await_login()
    assert other.says(f"test -b {DISK} && echo there") == "there"


def test_a_volume_from_a_snapshot_has_what_was_written_before_it(
    booted: Booted, volume: Callable[..., str]
) -> None:
    ec2, name = booted.cloud.ec2, volume()
    _attach(booted, name)
    booted.ssh(f"{FORMAT} && echo Dear all | sudo tee /mnt/letter && sudo umount /mnt")
    snapshot = ec2.create_snapshot(VolumeId=name)["SnapshotId"]
    booted.ssh(f"sudo mount {DISK} /mnt && sudo rm /mnt/letter && sudo umount /mnt")
    _detach(booted, name)
    completed = ec2.get_waiter("snapshot_completed")
    completed.wait(SnapshotIds=[snapshot], WaiterConfig={"Delay": 1})
    copy = volume(SnapshotId=snapshot)
    _attach(booted, copy)
    assert booted.says(f"sudo mount {DISK} /mnt && cat /mnt/letter") == "Dear all"
    booted.ssh("sudo umount /mnt")
    _detach(booted, copy)


def test_a_volume_that_is_made_larger_is_larger_on_the_machine(
    booted: Booted, volume: Callable[..., str]
) -> None:
    name = volume()
    _attach(booted, name)
    booted.cloud.ec2.modify_volume(VolumeId=name, Size=2)
    assert booted.says(f"sudo blockdev --getsize64 {DISK}") == str(2 << 30)
    _detach(booted, name)


def test_a_deleted_volume_leaves_no_file(
    cloud: Cloud, booted: Booted, volume: Callable[..., str]
) -> None:
    name = volume()
    _attach(booted, name)
    assert list(cloud.folder.rglob(name))
    _detach(booted, name)
    cloud.ec2.delete_volume(VolumeId=name)
    assert not list(cloud.folder.rglob(name))
