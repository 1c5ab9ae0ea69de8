"""What an owner installed, on instances that boot, with a home."""

from environment.emulator import Emulator
from environment.waiting import until
from lifecycle.life import now
from lifecycle.machine import Machine

# pip builds it without an index: the instances of the emulator reach none.
INSTALL = """\
mkdir -p /tmp/mine && cd /tmp/mine
echo 'VALUE = 7' >mine.py
echo 'from setuptools import setup; setup(name="mine", version="1.0", py_modules=["mine"])' >setup.py
pip install --quiet --no-index --no-build-isolation /tmp/mine
"""
SHOW = "python -c 'import cv2, mine, torch; print(mine.VALUE)'"
# No other test uses this type, because a zone has no capacity of it for a while.
OTHER = "g4dn.2xlarge"


def test_what_the_owner_installed_survives_whatever_happens_to_its_machine(
    machine: Machine, emulator: Emulator
) -> None:
    kept = {"home": {"sizeGiB": 1}, "capacityType": "Spot"}
    machine.commit({}, **kept)
    first = machine.logged_in(240)["instanceId"]
    machine.run(INSTALL)
    assert machine.run(SHOW) == "7"

    machine.commit({"state": "Stopped"}, **kept)
    machine.ended(first, seconds=120)
    machine.phase("Stopped", 120)
    machine.commit({}, **kept)
    second = _again(machine, first, "stop and resume")

    emulator.interrupt(second)
    third = _again(machine, second, "interruption")

    machine.commit({}, instanceType=OTHER, **kept)
    machine.ec2.client.terminate_instances(InstanceIds=[third])
    fourth = _again(machine, third, "another type")

    left = machine.status()["zone"]
    emulator.fault(
        operation="CreateFleet",
        code="InsufficientInstanceCapacity",
        match={"AvailabilityZone": left, "InstanceType": OTHER},
    )
    machine.ec2.client.terminate_instances(InstanceIds=[fourth])
    _again(machine, fourth, "another zone")
    assert machine.status()["zone"] != left


def _again(machine: Machine, before: str, why: str) -> str:
    """The next instance, once it has what the owner installed."""
    begun = now()

    def another() -> str | None:
        instance = machine.status().get("instanceId")
        return instance if instance != before else None

    until("another instance", another, 240)
    instance: str = machine.logged_in(240)["instanceId"]
    assert machine.run(SHOW) == "7"
    print(f"{why}: imported {(now() - begun).total_seconds():.1f} s later")
    return instance
