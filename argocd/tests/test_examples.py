"""The repositories of examples/gitops, checked without Argo CD."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLATFORM = EXAMPLES / "gitops/platform"
TEAM = EXAMPLES / "gitops/team-vision"
ARGO_CD = "argocd.argoproj.io/"

Resource = dict[str, Any]


def resources(folder: Path) -> Iterator[tuple[str, Resource]]:
    paths = sorted(folder.rglob("*.yaml"))
    assert paths, folder
    for path in paths:
        for document in yaml.safe_load_all(path.read_text()):
            yield path.name, document


def annotation(resource: Resource, name: str) -> str:
    annotations = resource["metadata"].get("annotations") or {}
    return str(annotations.get(ARGO_CD + name, ""))


def without_argo_cd(resource: Resource) -> Resource:
    annotations = resource["metadata"].get("annotations") or {}
    kept = {k: v for k, v in annotations.items() if not k.startswith(ARGO_CD)}
    metadata = resource["metadata"] | {"annotations": kept}
    if not kept:
        del metadata["annotations"]
    return resource | {"metadata": metadata}


def test_the_platforms_repository_lacks_what_the_plain_examples_have() -> None:
    """Files of the same name in both folders have the same resources."""
    plain = {path.name for path in (EXAMPLES / "platform").glob("*.yaml")}
    shared = plain & {path.name for path in PLATFORM.rglob("*.yaml")}
    assert shared >= {"catalogue.yaml", "cluster-rbac.yaml", "flavors.yaml"}
    for name in shared:
        there = yaml.safe_load_all((EXAMPLES / "platform" / name).read_text())
        here = [r for file, r in resources(PLATFORM) if file == name]
        assert [without_argo_cd(r) for r in here] == list(there), name


def test_something_is_synced_before_what_it_needs() -> None:
    waves = {
        (r["kind"], r["metadata"]["name"]): int(annotation(r, "sync-wave") or "0")
        for _, r in resources(PLATFORM / "crossplane")
    }
    order = [
        ("ClusterRole", "crossplane-composes-gpu-workspaces"),
        ("Provider", "acme-provider-gpu-spot"),
        ("Function", "acme-function-gpu-workspace"),
        ("Configuration", "acme-configuration-gpu-workspaces"),
        ("Composition", "acme-gpu-workspaces"),
        ("WorkspaceFlavor", "cpu-small"),
        ("ApplicationSet", "teams"),
    ]
    found = [waves[key] for key in order]
    assert found == sorted(found) and len(set(found)) == len(order), found


def test_packages_have_other_names_than_crossplane_gives_dependencies() -> None:
    """Otherwise Crossplane would install a second provider for the same pools."""
    for _, resource in resources(PLATFORM):
        is_package = "package" in resource.get("spec", {})
        if is_package and resource["apiVersion"].startswith("pkg.crossplane.io/"):
            path = resource["spec"]["package"].split("/", 1)[1].split(":")[0]
            assert resource["metadata"]["name"] == path.replace("/", "-")


def test_a_pod_of_the_control_plane_is_open_to_every_pod() -> None:
    """A NetworkPolicy with another package's name would select no pod, and say nothing."""
    everything = [r for _, r in resources(PLATFORM / "crossplane")]
    ours = {
        (f"pkg.crossplane.io/{r['kind'].lower()}", r["metadata"]["name"])
        for r in everything
        if r["kind"] in ("Function", "Provider") and "gpu" in r["metadata"]["name"]
    }
    specs = [r["spec"] for r in everything if r["kind"] == "NetworkPolicy"]
    selected = {
        label for spec in specs for label in spec["podSelector"]["matchLabels"].items()
    }
    assert selected == ours and len(ours) == 2
    for spec in specs:
        assert spec["policyTypes"] == ["Ingress"]
        assert all(rule["from"] and rule["ports"] for rule in spec["ingress"]), spec


def test_a_team_may_commit_something_else_than_claims() -> None:
    project = next(r for _, r in resources(PLATFORM / "teams/vision") if is_project(r))
    spec = project["spec"]
    assert spec["clusterResourceWhitelist"] == []
    assert spec["namespaceResourceWhitelist"] == [
        {"group": "platform.acme.io", "kind": "GpuDevWorkspaceClaim"}
    ]
    assert [d["namespace"] for d in spec["destinations"]] == ["team-vision"]
    for _, claim in resources(TEAM):
        assert claim["kind"] == "GpuDevWorkspaceClaim"
        assert claim["metadata"]["namespace"] == "team-vision"


def is_project(resource: Resource) -> bool:
    return bool(resource["kind"] == "AppProject")


def test_a_teams_claims_are_refused_for_lack_of_the_platforms_policy() -> None:
    composition = next(r for _, r in resources(PLATFORM) if r["kind"] == "Composition")
    for _, claim in resources(TEAM):
        reference = claim["spec"]["compositionRef"]["name"]
        assert reference == composition["metadata"]["name"]


def test_a_misspelt_field_or_a_claim_in_two_folders_is_applied_over_and_over() -> None:
    """Checks only the sync options. The suite gitops tests Argo CD itself."""
    kinds = ("Application", "ApplicationSet")
    found = [r for _, r in resources(PLATFORM) if r["kind"] in kinds]
    templates = [each["spec"].get("template", each)["spec"] for each in found]
    teams = [spec for spec in templates if "team" in spec["source"]["repoURL"]]
    assert teams
    wanted = {"ServerSideApply=true", "FailOnSharedResource=true"}
    for spec in teams:
        assert wanted <= set(spec["syncPolicy"]["syncOptions"])


def test_claims_hold_each_other_up() -> None:
    """Each folder has one file, and no name occurs twice."""
    folders = Counter(path.parent for path in TEAM.rglob("*.yaml"))
    assert set(folders.values()) == {1}
    assert {folder.parent for folder in folders} == {TEAM / "workspaces"}
    names = Counter(claim["metadata"]["name"] for _, claim in resources(TEAM))
    assert set(names.values()) == {1}


def test_a_home_goes_without_anybody_being_asked() -> None:
    for _, claim in resources(TEAM):
        if "home" in claim["spec"]["parameters"]:
            options = annotation(claim, "sync-options")
            assert options == "Prune=confirm,Delete=confirm", claim["metadata"]
