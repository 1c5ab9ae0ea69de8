"""`devctl why` names the cause, who can change it, and a next step that helps."""

import json
from typing import Any

import pytest

from devctl.conftest import booted
from devctl.program import Devctl
from environment import variants
from environment.cluster import CLAIMS, Cluster
from environment.emulator import Emulator
from environment.platform import claim
from environment.waiting import until
from lifecycle.conftest import host


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
    # A claim of one's own file is as it is written.
    wish = claim(
        devctl.namespace, "work", {"placement": "Cluster", "flavor": "nothing"}
    )
    ran = devctl("create", "-f", "-", stdin=json.dumps(wish))
    assert ran.returncode == 4, ran.stderr
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


def test_a_workspace_whose_claim_says_stopped(devctl: Devctl, cluster: Cluster) -> None:
    devctl.says("create", "work", "cpu-small")
    change(cluster, devctl, "work", lifecycle={"state": "Stopped"})
    seen = cause(devctl, "work", "State", 120)
    (step,) = seen["next"]
    assert step.startswith(f"kubectl edit gpuws work --namespace {devctl.namespace}")
    assert step.endswith("lifecycle.state: Running")
    change(cluster, devctl, "work", lifecycle={"state": "Running"})
    ready(devctl, "work")


def test_a_run_that_ends_soon(devctl: Devctl) -> None:
    devctl.says("create", "work", "cpu-small", "--lifetime", "20m")
    seen = cause(devctl, "work", "StopsWithin30Minutes")
    assert (seen["who"], seen["next"]) == ("You", ["devctl extend work 2h"])
    devctl.says(*seen["next"][0].split()[1:])
    nothing(devctl, "work")


def test_a_machine_that_no_network_reaches(devctl: Devctl, cluster: Cluster) -> None:
    devctl.refused(
        4,
        *("create", "work", "--instance-type", "g4dn.xlarge"),
        *("--region", "us-east-1", "--opencv", "4.8.0"),
    )
    seen = cause(devctl, "work", "NoNetworks")
    assert seen["who"] == "You"
    assert seen["next"][0].endswith("to spec.parameters.ssh.allowedCidrs")
    change(cluster, devctl, "work", ssh={"allowedCidrs": [f"{host()}/32"]})
    ready(devctl, "work")
    devctl.says("ssh", "work", "--", "true")


def test_an_image_that_nobody_can_pull(
    devctl: Devctl, cluster: Cluster, image: str
) -> None:
    missing = image.rsplit(":", 1)[0] + ":nothing"
    name = variants.flavor(cluster, missing, f"mended-{devctl.namespace}")
    devctl.says("create", "work", name, "--no-wait")
    seen = cause(devctl, "work", "ImageUnavailable", 120)
    assert seen["who"] == "PlatformTeam" and missing in seen["message"]
    assert seen["next"][-1].startswith("send this to the platform team: workspace ")
    devctl.says("stop", "work")
    variants.flavor(cluster, image, name)
    devctl.says("start", "work")


def test_a_gpu_that_no_node_has(devctl: Devctl, cluster: Cluster, image: str) -> None:
    name = f"nowhere-{devctl.namespace}"
    variants.flavor(cluster, image, name, gpus=1, gpuProduct="H900")
    devctl.says("create", "work", name, "--no-wait")
    seen = cause(devctl, "work", "Unschedulable", 120)
    assert seen["who"] == "You" and "devctl flavors" in seen["next"][0]
    change(cluster, devctl, "work", flavor="cpu-small")
    ready(devctl, "work")


@pytest.mark.alone
def test_a_type_that_aws_has_no_capacity_of(
    devctl: Devctl, cluster: Cluster, emulator: Emulator
) -> None:
    full = {"InstanceType": "g4dn.xlarge"}
    emulator.fault(
        operation="CreateFleet", code="InsufficientInstanceCapacity", match=full
    )
    booted(devctl, "work", "--no-wait")
    seen = cause(devctl, "work", "Capacity")
    assert seen["who"] == "You" and "instanceTypes" in seen["next"][1]
    types = ["g4dn.xlarge", "g5.xlarge"]
    change(cluster, devctl, "work", instanceType=None, instanceTypes=types)
    ready(devctl, "work")


def test_a_workspace_that_is_being_deleted(devctl: Devctl, cluster: Cluster) -> None:
    devctl.says("create", "work", "cpu-small")
    of = (CLAIMS, "work", "-n", devctl.namespace)
    add = {"op": "add", "path": "/metadata/finalizers/-", "value": "example.org/test"}
    cluster.kubectl("patch", *of, "--type=json", "-p", json.dumps([add]))
    cluster.kubectl("delete", *of, "--wait=false")
    seen = cause(devctl, "work", "Deleting")
    assert (seen["who"], seen["next"]) == ("Nobody", ["devctl show work"])
    left = {"metadata": {"finalizers": []}}
    until(
        "Crossplane to let the claim go",
        lambda: finalizers(cluster, of) == ["example.org/test"],
    )
    cluster.kubectl("patch", *of, "--type=merge", "-p", json.dumps(left))
    assert "work" in devctl.refused(3, "show", "work")


def finalizers(cluster: Cluster, of: tuple[str, ...]) -> Any:
    found = json.loads(cluster.kubectl("get", *of, "-o", "json"))
    return found["metadata"]["finalizers"]


def ready(devctl: Devctl, name: str) -> None:
    def is_ready() -> bool:
        return bool(devctl.object("show", name)["status"].get("phase") == "Ready")

    until(f"{name} to be Ready", is_ready, 180)


def nothing(devctl: Devctl, name: str) -> None:
    """Waits until no cause is left."""
    until("no cause", lambda: devctl.object("why", name)["causes"] == [], 60)
