"""Commits upgrade the packages without a disruption of running workspaces."""

import json
import subprocess
import threading
from collections.abc import Iterator

import pytest

from environment.cluster import CLAIMS, SYSTEM, Cluster, condition, is_ready
from environment.objects import Object
from environment.ec2 import Ec2
from environment.platform import PARAMETERS, Platform, claim
from environment.waiting import until
from gitops import repositories
from gitops.argo import ArgoCd
from gitops.git import Repository
from gitops.repositories import claim as claim_of_team

MANY = 50
KINDS = {
    "provider-gpu-spot": "provider",
    "function-gpu-workspace": "function",
    "configuration-gpu-workspaces": "configuration",
}
FILE = "crossplane/packages.yaml"


@pytest.fixture
def upgraded() -> dict[str, str]:
    """The same packages with other digests. Crossplane makes another revision of each,
    with other pods."""
    renamed = {}
    for name in KINDS:
        old = repositories.reference(name)
        new = f"{old}-again"
        subprocess.run(
            ["crane", "mutate", old, "--label", "again=true", "--tag", new],
            check=True,
            capture_output=True,
        )
        renamed[old] = new
    return renamed


@pytest.fixture
def crowd(cluster: Cluster, namespace: str) -> Iterator[str]:
    """A namespace with fifty workspaces that are Ready."""
    names = [f"w{number}" for number in range(MANY)]
    claims = [claim(namespace, name, PARAMETERS) for name in names]
    listed = {"apiVersion": "v1", "kind": "List", "items": claims}
    cluster.kubectl("apply", "-f", "-", stdin=json.dumps(listed))
    until(f"{MANY} workspaces", lambda: all(map(is_ready, of(cluster, namespace))), 300)
    yield namespace
    cluster.delete_claims(namespace, seconds=300)


def of(cluster: Cluster, namespace: str) -> list[Object]:
    return cluster.all(CLAIMS, namespace)


def test_an_upgrade_and_its_rollback_replace_no_instance_and_fail_no_call(
    cluster: Cluster,
    platform_repository: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
    crowd: str,
    upgraded: dict[str, str],
) -> None:
    before = statuses(cluster, crowd)
    machines = {one["InstanceId"] for one in ec2.live(crowd)}
    assert len(machines) == MANY
    calls, failures = calls_of_the_function(cluster)
    synced = synced_since(cluster)
    with under_load(cluster, crowd):
        play(cluster, platform_repository, upgraded)
    until(
        "all to be Ready", lambda: all(map(is_ready, of(cluster, crowd))), seconds=120
    )
    assert {one["InstanceId"] for one in ec2.live(crowd)} == machines
    assert statuses(cluster, crowd) == before
    calls_after, failures_after = calls_of_the_function(cluster)
    print(f"\n{calls_after - calls:.0f} calls of the function meanwhile")
    # Crossplane has no active revision of the function for a moment, and then retries.
    # Some composites are not Synced meanwhile.
    later = synced_since(cluster)
    waited = sum(later[xr] != since for xr, since in synced.items())
    print(f"{waited} of {len(synced)} workspaces not Synced for a moment")
    assert failures_after == failures
    argocd.await_health("gpu-workspaces", "Healthy", seconds=180)


def test_revisions_that_somebody_activates_by_hand_replace_no_instance(
    cluster: Cluster,
    platform_repository: Repository,
    argocd: ArgoCd,
    ec2: Ec2,
    team: Platform,
    workspaces: Repository,
    upgraded: dict[str, str],
) -> None:
    workspaces.write("workspaces/alice/claim.yaml", claim_of_team("alice"))
    workspaces.push("A workspace")
    until("the Application", lambda: argocd.application("ws.vision.alice"))
    argocd.await_health("ws.vision.alice", "Healthy", seconds=120)
    before = statuses(cluster, team.namespace)
    (machine,) = [one["InstanceId"] for one in ec2.live(team.namespace)]

    text = (platform_repository.folder / FILE).read_text()
    package = "\nspec:\n  package:"
    assert text.count(package) == len(upgraded)
    by_hand = package.replace("spec:", "spec:\n  revisionActivationPolicy: Manual")
    manual = text.replace(package, by_hand)
    platform_repository.write(FILE, manual)
    platform_repository.push("Activate revisions by hand")
    # Each edit of a package makes another revision. Crossplane deactivates the other
    # revisions first.
    for old in upgraded:
        await_package(cluster, old, by_hand=True)
    play(cluster, platform_repository, upgraded, by_hand=True)
    platform_repository.write(FILE, text)
    platform_repository.push("Activate revisions by themselves")
    argocd.await_health("gpu-workspaces", "Healthy", seconds=180)
    argocd.await_health("ws.vision.alice", "Healthy", seconds=120)
    (same,) = [one["InstanceId"] for one in ec2.live(team.namespace)]
    assert same == machine
    assert statuses(cluster, team.namespace) == before


def play(
    cluster: Cluster,
    repository: Repository,
    upgraded: dict[str, str],
    by_hand: bool = False,
) -> None:
    """Upgrades all packages and rolls them back, by commits."""
    for old, new in upgraded.items():
        repository.replace(FILE, old, new)
    repository.push("Upgrade")
    for new in upgraded.values():
        await_package(cluster, new, by_hand)
    repository.revert()
    for old in upgraded:
        await_package(cluster, old, by_hand)


def statuses(cluster: Cluster, namespace: str) -> dict[str, Object]:
    """The statuses of the claims without conditions, whose times change."""
    return {
        one["metadata"]["name"]: {
            key: value for key, value in one["status"].items() if key != "conditions"
        }
        for one in of(cluster, namespace)
    }


def await_package(cluster: Cluster, reference: str, by_hand: bool = False) -> None:
    """Waits until the package of that reference is installed, active and healthy."""
    name = reference.rpartition("/")[2].partition(":")[0]
    kind = f"{KINDS[name]}.pkg.crossplane.io"

    def look() -> bool:
        package = cluster.get(kind, f"acme-{name}", SYSTEM) or {}
        spec = package.get("spec", {})
        if spec.get("package") != reference or by_hand != is_manual(spec):
            return False
        seen = condition(package, "Installed").get("observedGeneration")
        if seen != package["metadata"]["generation"]:
            return False
        status = package.get("status", {})
        if status.get("resolvedPackage") != reference:
            return False
        revision = status.get("currentRevision", "")
        if by_hand:
            activate(cluster, KINDS[name], revision)
        return is_active(cluster, KINDS[name], revision) and all(
            condition(package, type_).get("status") == "True"
            for type_ in ("Installed", "Healthy")
        )

    until(f"{reference} to be installed and healthy", look, seconds=180)


def is_manual(spec: Object) -> bool:
    return bool(spec.get("revisionActivationPolicy") == "Manual")


def is_active(cluster: Cluster, kind: str, revision: str) -> bool:
    found = cluster.get(f"{kind}revisions.pkg.crossplane.io", revision, SYSTEM) or {}
    return bool(found.get("spec", {}).get("desiredState") == "Active")


def activate(cluster: Cluster, kind: str, revision: str) -> None:
    """Activates a revision by hand, as docs/upgrade.md describes."""
    if revision and not is_active(cluster, kind, revision):
        cluster.kubectl(
            *["patch", f"{kind}revisions.pkg.crossplane.io", revision],
            *["--type=merge", "-p", '{"spec": {"desiredState": "Active"}}'],
        )


def synced_since(cluster: Cluster) -> dict[str, str]:
    """The last transition time of each composite's condition Synced."""
    return {
        xr["metadata"]["name"]: condition(xr, "Synced")["lastTransitionTime"]
        for xr in cluster.all("gpudevworkspaces.platform.acme.io", SYSTEM)
    }


def calls_of_the_function(cluster: Cluster) -> tuple[float, float]:
    """How many calls of the function Crossplane made, and how many of them failed."""
    (pod,) = cluster.all("pods", SYSTEM, "app=crossplane")
    path = f"pods/{pod['metadata']['name']}:8080/proxy/metrics"
    metrics = cluster.kubectl("get", "--raw", f"/api/v1/namespaces/{SYSTEM}/{path}")
    counted = [
        line
        for line in metrics.splitlines()
        if line.startswith("function_run_function_response_total{")
        and "function-gpu-workspace" in line
    ]
    assert counted, "Crossplane counts no calls of the function"

    def total(lines: list[str]) -> float:
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    failed = [
        line
        for line in counted
        if 'grpc_code="OK"' not in line or 'result_severity="Fatal"' in line
    ]
    return total(counted), total(failed)


class under_load:
    """Makes Crossplane reconcile every workspace again every 0.5 s."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._touch)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _touch(self) -> None:
        turn = 0
        while not self._over.wait(0.5):
            turn += 1
            self._cluster.kubectl(
                *["annotate", CLAIMS, "--all", "-n", self._namespace],
                *["--overwrite", f"turn={turn}"],
            )
