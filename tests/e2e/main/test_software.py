"""`SoftwareReady`: a workspace is Ready once the setup of its machine has ended."""

import pytest

from environment.cluster import Cluster, condition
from environment.ec2 import Ec2
from environment.emulator import SET_UP, Emulator
from environment.platform import Platform
from environment.pools import Pools
from environment.waiting import until

LOG = "/var/log/gpu-workspace-setup.log"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"
KEY_ON_TWO_LINES = KEY.replace("ed25519 ", "ed25519\u2028")
FAILED = f"""\
-----BEGIN SSH HOST KEY KEYS-----
{KEY} root@ip-10-0-0-7
-----END SSH HOST KEY KEYS-----
gpu-workspace setup FAILED: install OpenCV, no network (exit 1), see {LOG}
"""
# What an owner could write to the console to mislead people who read the status.
HOSTILE = f"""\
<script>alert(1)</script>
gpu-workspace setup FAILED: <img src=x onerror=alert(1)>
gpu-workspace setup done, trust me
-----BEGIN SSH HOST KEY KEYS-----
* {KEY}
{KEY_ON_TWO_LINES}
@cert-authority {KEY}
-----END SSH HOST KEY KEYS-----
-----BEGIN SSH HOST KEY KEYS-----
{KEY}
-----END SSH HOST KEY KEYS-----
{"x" * (1 << 20)}
"""


@pytest.mark.alone
def test_a_failed_setup_is_no_ready_workspace_and_a_mend_replaces_its_machine(
    platform: Platform, ec2: Ec2, emulator: Emulator
) -> None:
    emulator.print_everywhere(FAILED)
    platform.claim("alice")
    software = platform.condition("alice", "SoftwareReady", "False", "SetupFailed")
    for part in ("install OpenCV", "no network", "the platform team", LOG):
        assert part in software["message"], software
    status = platform.phase("alice", "Failed", "install OpenCV")
    # The owner can log in and mend it.
    assert status["ssh"].startswith("ssh developer@")
    assert status["hostKeys"] == [KEY]
    assert condition(platform.workspace("alice"), "Ready")["status"] == "False"
    first = status["instanceId"]

    emulator.print_everywhere(SET_UP)
    platform.claim("alice", opencvVersion="4.9.0")
    until("another machine", lambda: platform.status("alice")["instanceId"] != first)
    second = platform.ready("alice")["instanceId"]

    def alone() -> bool:
        live = ec2.live(platform.namespace)
        return [one["InstanceId"] for one in live] == [second]

    until("the first machine to go", alone)


@pytest.mark.thorough
@pytest.mark.alone
def test_a_hostile_console_writes_nothing_of_its_own_into_the_status(
    platform: Platform, emulator: Emulator
) -> None:
    emulator.print_everywhere(HOSTILE)
    platform.claim("alice")

    def keys() -> bool:
        return bool(platform.status("alice").get("hostKeys"))

    until("the console to be read", keys)
    status = platform.status("alice")
    assert status["hostKeys"] == [KEY]
    for text in ("script", "onerror", "trust me", "xxx", "@cert"):
        assert text not in str(platform.workspace("alice")["status"]), text
        assert text not in str(platform.pool().get("status")), text
    software = condition(platform.workspace("alice"), "SoftwareReady")
    assert (software["status"], software["reason"]) == ("False", "SettingUp")


@pytest.mark.thorough
@pytest.mark.alone
def test_the_console_of_an_instance_without_nitro_is_read_too(
    cluster: Cluster, namespace: str, emulator: Emulator
) -> None:
    emulator.print_everywhere(SET_UP)
    pools = Pools(cluster, namespace)
    pools.apply("old", type_="i3.large", parameters={"readConsole": True})

    def setup() -> str | None:
        status = (pools.ready("old").get("status") or {}).get("atProvider", {})
        (instance,) = status["instances"]
        state: str | None = instance.get("setup", {}).get("state")
        return state

    until("the end of its setup", lambda: setup() == "Ready")
    calls = emulator.recorded("GetConsoleOutput")
    assert "UnsupportedOperation" in {call["code"] for call in calls}


@pytest.mark.thorough
@pytest.mark.alone
def test_a_console_is_read_until_the_setup_ends_and_once_a_minute_at_most(
    platform: Platform, emulator: Emulator
) -> None:
    emulator.print_everywhere("")
    platform.claim("alice")
    platform.condition("alice", "SoftwareReady", "False", "installs its software")
    instance = platform.status("alice")["instanceId"]

    def reads() -> list[float]:
        calls = emulator.recorded("GetConsoleOutput")
        return [
            call["time"]
            for call in calls
            if call["parameters"]["InstanceId"] == instance
        ]

    until("the first call", lambda: len(reads()) == 1)
    emulator.print_everywhere(SET_UP)
    platform.ready("alice", seconds=90)
    first, second = reads()
    assert second - first >= 59
