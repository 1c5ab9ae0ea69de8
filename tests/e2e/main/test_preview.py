"""What the preview says of a policy is what happens when the policy is applied."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from environment.cluster import CLAIMS, Cluster, condition, is_ready
from environment.ec2 import Ec2
from environment.objects import Object
from environment.platform import PARAMETERS, Platform, claim
from environment.variants import composition
from environment.waiting import until

WORKSPACES = int(os.environ.get("PREVIEWED", "50"))
NAME = "previewed"
BEFORE = {"allowedInstanceTypes": ["g4dn.xlarge", "g4dn.2xlarge", "g5.xlarge"]}
# The market replaces machines, the types refuse claims, the tag changes resources.
AFTER = {
    "defaults": {"capacityType": "OnDemand"},
    "allowedInstanceTypes": ["g4dn.xlarge", "g4dn.2xlarge"],
    "instance": {"tags": {"team": "vision"}},
}
# What developers wrote. Each is one of five workspaces.
WISHES: list[dict[str, Any]] = [
    {},
    {"capacityType": "Spot"},
    {"instanceType": "g5.xlarge"},
    {"capacityType": "Spot", "home": {"sizeGiB": 1}},
    {"lifecycle": {"state": "Stopped"}},
]


@pytest.mark.thorough
@pytest.mark.alone
def test_the_preview_of_many_workspaces_is_what_happens_to_them(
    platform: Platform, cluster: Cluster, ec2: Ec2, tmp_path: Path
) -> None:
    composition(cluster, NAME, BEFORE)
    _commit(platform)
    seconds = 120 + 3 * WORKSPACES
    until("every workspace to settle", lambda: _are_settled(platform), seconds)
    before = _seen(platform)
    said = _previewed(cluster, tmp_path)
    expected = {row["name"]: row["effect"] for row in said["workspaces"]}
    assert len(expected) == WORKSPACES
    assert set(expected.values()) == {"Unchanged", "Changed", "Refused", "Replaced"}

    composition(cluster, NAME, {**BEFORE, **AFTER})
    is_new = _follows(platform, cluster)
    until("every workspace to follow the policy", is_new, seconds)
    until("every workspace to settle", lambda: _are_settled(platform), seconds)
    after = _seen(platform)
    happened = {name: _effect(before[name], after[name]) for name in before}
    missed = {
        name: (expected[name], happened[name])
        for name in expected
        if expected[name] != happened[name]
    }
    print(f"{WORKSPACES} workspaces, {len(missed)} misses")
    assert missed == {}, "workspace: (what the preview said, what happened)"
    running = [name for name, shown in after.items() if shown["instance"]]
    until(
        "the machines that were replaced to go",
        lambda: len(ec2.live(platform.namespace)) == len(running),
        seconds,
    )
    cluster.delete_claims(platform.namespace, seconds=180 + 3 * WORKSPACES)


def test_a_preview_of_a_dump_needs_no_cluster(
    platform: Platform, cluster: Cluster, tmp_path: Path
) -> None:
    name = composition(cluster, "previewed-once", BEFORE)
    platform.claim("alice", composition=name)
    platform.ready("alice")
    dump = tmp_path / "dump.json"
    live = _run(cluster, tmp_path, name, {}, f"--save={dump}")
    assert "1 workspace: 1 unchanged" in live.stdout, live
    assert "Secret" not in {
        one["kind"] for one in json.loads(dump.read_text())["items"]
    }
    again = _run(cluster, tmp_path, name, AFTER, f"--dump={dump}")
    assert again.returncode == 1, "a machine that runs is replaced"
    (line,) = [line for line in again.stdout.splitlines() if "alice" in line]
    assert "replaced" in line and "on" in line.split()


def _commit(platform: Platform) -> None:
    items = []
    for number in range(WORKSPACES):
        parameters = {**PARAMETERS, **WISHES[number % len(WISHES)]}
        document = claim(platform.namespace, f"dev-{number:03}", parameters)
        document["spec"]["compositionRef"] = {"name": NAME}
        items.append(document)
    platform.cluster.apply({"apiVersion": "v1", "kind": "List", "items": items})


def _claims(platform: Platform) -> list[Object]:
    return platform.cluster.all(CLAIMS, platform.namespace)


def _are_settled(platform: Platform) -> bool:
    """Each workspace is ready, at rest, or refused, and has no second machine."""
    claims = _claims(platform)
    pools = platform.cluster.all("spotpools", platform.namespace)
    owners = [_workspace_of(pool) for pool in pools]
    return (
        len(claims) == WORKSPACES
        and len(owners) == len(set(owners))
        and all(map(_is_settled, claims))
    )


def _is_settled(found: Object) -> bool:
    status = found.get("status", {})
    is_refused = condition(found, "ConfigResolved").get("status") == "False"
    return is_ready(found) or status.get("phase") == "Stopped" or is_refused


def _follows(platform: Platform, cluster: Cluster) -> Any:
    """Whether every composite was decided under the newest revision of the policy. A
    pool has the new tag, or the claim is refused, or there is no pool."""

    def follows() -> bool:
        pools: dict[str, Object] = {}
        for pool in cluster.all("spotpools", platform.namespace):
            pools[_workspace_of(pool)] = pool

        def is_new(found: Object) -> bool:
            pool = pools.get(found["metadata"]["name"])
            tags = pool["spec"]["forProvider"]["tags"] if pool else {"team": "none"}
            is_refused = condition(found, "ConfigResolved").get("status") == "False"
            return is_refused or "team" in tags

        return all(map(is_new, _claims(platform)))

    return follows


def _workspace_of(pool: Object) -> str:
    """The name of a pool's claim, from the tags of its instances."""
    workspace: str = pool["spec"]["forProvider"]["tags"]["workspace"]
    return workspace.partition("/")[2]


def _seen(platform: Platform) -> dict[str, Object]:
    """What a person sees of each workspace: its machine, its pool, and a refusal. A claim
    may name a machine for some seconds after another one has taken its place."""
    pools: dict[str, Object] = {}
    machines: dict[str, str] = {}
    for pool in platform.cluster.all("spotpools", platform.namespace):
        name = _workspace_of(pool)
        pools[name] = {**pool["spec"]["forProvider"]}
        pools[name].pop("endsAt", None)
        for instance in pool["status"]["atProvider"].get("instances", []):
            if instance["state"] == "running":
                machines[name] = instance["id"]
    return {
        found["metadata"]["name"]: {
            "instance": machines.get(found["metadata"]["name"]),
            "pool": pools.get(found["metadata"]["name"]),
            "refused": condition(found, "ConfigResolved")["status"] == "False",
        }
        for found in _claims(platform)
    }


def _effect(before: Object, after: Object) -> str:
    if after["instance"] != before["instance"]:
        return "Replaced" if after["instance"] else "Stopped"
    if after["refused"] and not before["refused"]:
        return "Refused"
    return "Unchanged" if after["pool"] == before["pool"] else "Changed"


def _previewed(cluster: Cluster, folder: Path) -> Object:
    ran = _run(cluster, folder, NAME, AFTER, "--output=json")
    assert ran.returncode == 1, ran.stderr
    said: Object = json.loads(ran.stdout)
    return said


def _run(
    cluster: Cluster, folder: Path, name: str, change: Object, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Previews the Composition `name` with a changed policy."""
    found = json.loads(cluster.kubectl("get", "composition", name, "-o", "json"))
    (step,) = found["spec"]["pipeline"]
    policy = {**step["input"], **change}
    for field in ("defaults", "instance"):
        policy[field] = {**step["input"].get(field, {}), **change.get(field, {})}
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(policy))
    return subprocess.run(
        [
            os.environ["FUNCTION_GPU_WORKSPACE"],
            "preview",
            f"--policy={path}",
            f"--composition={name}",
            "--limits=gpu-workspace-limits",
            *arguments,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
