"""An instance of the image that boots is a machine, from launch to termination."""

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from booting import Booted, Cloud
from ec2_emulator.boot.cgroup import folder as cgroups
from machines.waiting import until


@pytest.fixture
def own(cloud: Cloud) -> Iterator[Booted]:
    """An instance that only one test uses."""
    instance = cloud.boot()
    yield instance
    instance.terminate()


def test_its_public_address_is_where_one_logs_in_and_its_console_has_the_host_keys(
    booted: Booted,
) -> None:
    kinds = {line.split()[1] for line in booted.known_hosts()}
    assert "ssh-ed25519" in kinds
    assert booted.says("id -un") == "developer"
    script = "ip -json address show dev eth0"
    assert booted.address in booted.says(script)


def test_cloud_init_finds_ec2_and_ends_well(booted: Booted) -> None:
    assert "DataSourceEc2" in booted.says("sudo cat /run/cloud-init/result.json")
    assert booted.says("cloud-init status") == "status: done"
    noted = booted.says("sudo grep -cE 'WARNING|ERROR' /var/log/cloud-init.log || :")
    assert noted == "0", booted.says("sudo grep -E 'WARN|ERR' /var/log/cloud-init.log")


def test_systemd_runs_and_no_unit_failed(booted: Booted) -> None:
    until("a settled machine", lambda: "running" == _settled(booted))
    assert booted.says("sudo systemctl is-active witness.service") == "active"


def _settled(booted: Booted) -> str:
    return booted.says("sudo systemctl is-system-running || sudo systemctl --failed")


def test_it_has_the_name_that_ec2_gives_it(booted: Booted) -> None:
    name = booted.shown()["PrivateDnsName"].split(".")[0]
    assert booted.says("hostname") == name
    assert booted.says("getent hosts $(hostname) >/dev/null && echo known") == "known"


@pytest.mark.thorough
def test_a_stopped_instance_ran_its_stop_hooks_and_starts_with_its_disk(
    own: Booted,
) -> None:
    ec2, before = own.cloud.ec2, own.address
    own.ssh("echo kept >letter; sudo touch /run/volatile")
    ec2.stop_instances(InstanceIds=[own.id])
    own.await_state("stopped")
    assert _closed(before)
    assert "PublicIpAddress" not in own.shown()
    ec2.start_instances(InstanceIds=[own.id])
    own.await_login()
    assert own.address != before
    assert own.says("cat letter /var/lib/witness") == "kept\nstopped"
    assert own.says("test -e /run/volatile || echo gone") == "gone"
    assert own.says("sudo systemctl is-active witness.service") == "active"


@pytest.mark.thorough
def test_a_reboot_keeps_address_and_disk_and_starts_everything_anew(
    own: Booted,
) -> None:
    before = own.address
    own.ssh("echo kept >letter; sudo touch /run/volatile")
    own.cloud.ec2.reboot_instances(InstanceIds=[own.id])
    again = "test -e /run/volatile || echo gone"
    until("another boot", lambda: own.ssh(again, check=False) == "gone")
    assert (own.state, own.address) == ("running", before)
    assert own.says("cat letter") == "kept"


@pytest.mark.thorough
def test_somebody_on_the_machine_reboots_it(own: Booted) -> None:
    own.ssh("sudo touch /run/volatile; (sleep 0.2; sudo systemctl reboot) >&- 2>&- &")
    again = "test -e /run/volatile || echo gone"
    until("another boot", lambda: own.ssh(again, check=False) == "gone")
    assert own.state == "running"


POWER_OFF = "(sleep 0.2; sudo systemctl poweroff) >&- 2>&- &"


@pytest.mark.thorough
def test_a_machine_that_is_shut_down_from_inside_stops_its_instance(
    own: Booted,
) -> None:
    own.ssh(POWER_OFF)
    own.await_state("stopped")
    code = own.shown()["StateReason"]["Code"]
    assert code == "Client.InstanceInitiatedShutdown"


@pytest.mark.thorough
def test_or_terminates_it_where_its_launch_says_so(cloud: Cloud) -> None:
    instance = cloud.boot(InstanceInitiatedShutdownBehavior="terminate")
    instance.ssh(POWER_OFF)
    instance.await_state("terminated")


@pytest.mark.thorough
def test_a_terminated_instance_ran_its_stop_hooks_and_leaves_nothing(
    cloud: Cloud,
) -> None:
    instance = cloud.boot()
    address = instance.address
    hook = "sudo sed -i 's,/var/lib/witness,/dev/console,' "
    instance.ssh(f"{hook} /etc/systemd/system/witness.service")
    instance.ssh("sudo systemctl daemon-reload")
    cloud.ec2.terminate_instances(InstanceIds=[instance.id])
    until("the hook", lambda: "stopped" in _console(instance).splitlines())
    instance.await_state("terminated")
    assert _closed(address)
    assert not list(cloud.folder.rglob(instance.id))
    assert address not in _routes()


def _console(instance: Booted) -> str:
    ec2 = instance.cloud.ec2
    return str(ec2.get_console_output(InstanceId=instance.id).get("Output", ""))


def _closed(address: str) -> bool:
    """Whether no SSH server answers. A connection alone proves nothing, because a
    router elsewhere may accept it."""
    try:
        with socket.create_connection((address, 22), timeout=1) as connection:
            return connection.recv(4) != b"SSH-"
    except OSError:
        return True


def test_instances_of_other_images_have_no_machine(cloud: Cloud) -> None:
    instance = cloud.boot(ready=False, ImageId="ami-00000000000c0de01")
    instance.await_state("running")
    assert not instance.address.startswith("10.246.")
    assert _console(instance) == ""
    instance.terminate()


@pytest.mark.thorough
def test_a_killed_emulator_leaves_no_machine_no_network_and_no_file(
    tmp_path: Path,
) -> None:
    mounts = Path("/proc/self/mountinfo").read_text()
    with Cloud.up(tmp_path, number=1) as cloud:
        instance = cloud.boot()
        address = instance.address
        assert address in _routes()
        (folder,) = (tmp_path / "machines").iterdir()
        group = cgroups(cloud.process.pid)
        assert group.exists()
        cloud.process.kill()
        cloud.process.wait()
        until("no network", lambda: address not in _routes())
        until("no file", lambda: not folder.exists())
        until("no cgroup", lambda: not group.exists())
    assert Path("/proc/self/mountinfo").read_text() == mounts


def _routes() -> list[str]:
    listed = subprocess.run(["ip", "route"], capture_output=True, text=True, check=True)
    return listed.stdout.split()
