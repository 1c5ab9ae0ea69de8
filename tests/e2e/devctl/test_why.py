"""`devctl why` names the cause, who can change it, and a next step that helps."""

import json
from typing import Any

import pytest

from devctl.program import Devctl
from environment.cluster import CLAIMS, Cluster
from environment.emulator import Emulator
from environment.waiting import until


def cause(devctl: Devctl, name: str, reason: str, seconds: float = 60) -> Any:
    """The first cause, once it has this reason."""

    def look() -> Any:
        causes = devctl.object("why", name)["causes"]
        return causes[0] if causes and causes[0]["reason"] == reason else None

    return until(f"why {name}: {reason}", look, seconds)


def change(cluster: Cluster, devctl: Devctl, name: str, **parameters: Any) -> None:
    patch = json.dumps({"spec": {"parameters": parameters}})
    cluster.kubectl(
        *("patch", CLAIMS, name, "-n", devctl.namespace, "--type=merge", "-p", patch)
    )


def test_a_flavor_that_does_not_exist(devctl: Devctl, cluster: Cluster) -> None:
    refused = devctl.refused(3, "create", "work", "--flavor", "nothing")
    assert "flavor nothing" in refused and "devctl flavors" in refused
    refused = devctl.refused(
        4, "create", "work", "--flavor", "nothing", "--placement", "cluster"
    )
    seen = cause(devctl, "work", "FlavorMissing")
    assert seen["who"] == "You" and seen["next"][0] == "devctl flavors"
    assert "cpu-small" in devctl.says("flavors")
    change(cluster, devctl, "work", flavor="cpu-small")
    devctl.says("create", "work", "--flavor", "cpu-small")


def test_an_owner_who_is_somebody_else(devctl: Devctl) -> None:
    said = devctl.refused(
        4,
        *("create", "work", "--instance-type", "g4dn.xlarge", "--region", "us-east-1"),
        *("--no-key", "--allow", "203.0.113.0/24", "--owner", "nobody-else"),
    )
    seen = cause(devctl, "work", "ParametersInvalid")
    assert "owner" in seen["message"] and seen["who"] == "You"
    assert "devctl why work" in said or "kubectl edit" in said


@pytest.mark.alone
def test_a_quota_of_aws_names_the_platform_team_and_the_code(
    devctl: Devctl, emulator: Emulator
) -> None:
    emulator.fault(operation="CreateFleet", code="MaxSpotInstanceCountExceeded")
    devctl.says(
        *("create", "work", "--instance-type", "g4dn.xlarge", "--region", "us-east-1"),
        *("--capacity", "spot", "--opencv", "4.8.0", "--allow", "203.0.113.0/24"),
        "--no-wait",
    )
    seen = cause(devctl, "work", "Quota")
    assert seen["who"] == "PlatformTeam"
    assert "L-3819A6DF" in seen["message"]
    assert seen["next"][-1].startswith("send this to the platform team: workspace ")


def test_a_stopped_workspace(devctl: Devctl) -> None:
    devctl.says("create", "work", "cpu-small")
    devctl.says("stop", "work")
    seen = cause(devctl, "work", "Requested")
    assert (seen["who"], seen["next"]) == ("You", ["devctl start work"])
    devctl.says("start", "work")
    assert "work is Ready" in devctl.says("why", "work")


def test_more_pods_than_the_policy_allows(devctl: Devctl) -> None:
    devctl.says("create", "work", "gpu", "--replicas", "9", "--no-wait")
    refused = cause(devctl, "work", "ParametersInvalid")
    assert "distributed" in refused["message"]
