"""The repositories of examples/gitops, checked without Argo CD."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import yaml

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PLATFORM = EXAMPLES / "gitops/platform"
TEAM = EXAMPLES / "gitops/team-vision"
ARGO_CD = "argocd.argoproj.io/"
# The action of argocd/actions/applications.yaml, and the label of what members may run it on.
CONFIRM = "confirm-deletion"
MEMBERS = {"platform.acme.io/confirmed-by": "members"}

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


def test_a_member_may_do_more_than_read_sync_confirm_and_run_a_workspace() -> None:
    """`update` would give an Application another branch, past every review."""
    allowed = {
        "get": {"platform/team-vision", "team-vision/*"},
        "sync": {"team-vision/*"},
        f"action/argoproj.io/Application/{CONFIRM}": {"platform/team-vision"},
        "action/platform.acme.io/GpuDevWorkspaceClaim/*": {"team-vision/*"},
    }
    seen = set()
    for project in (r for _, r in resources(PLATFORM) if is_project(r)):
        for role in project["spec"].get("roles", []):
            for policy in role["policies"]:
                _, subject, kind, action, target, effect = map(
                    str.strip, policy.split(",")
                )
                name = project["metadata"]["name"]
                assert subject == f"proj:{name}:{role['name']}", policy
                assert (kind, effect) == ("applications", "allow"), policy
                # Argo CD ignores a policy about another project than the role's.
                assert target.split("/")[0] == name, policy
                assert target in allowed.get(action, ()), policy
                seen.add(action)
    assert seen == set(allowed)


def test_members_confirm_the_end_of_another_application_than_a_claims() -> None:
    """The action refuses an Application without this label."""
    for _, resource in resources(PLATFORM):
        of_template = resource.get("spec", {}).get("template", {}).get("metadata", {})
        labels = [resource["metadata"].get("labels"), of_template.get("labels")]
        is_for_members = any(MEMBERS.items() <= (one or {}).items() for one in labels)
        is_of_claims = resource["metadata"]["name"] == "team-vision" and (
            resource["kind"] == "ApplicationSet"
        )
        assert is_for_members == is_of_claims, resource["metadata"]


def application_set(path: str) -> Resource:
    text = (PLATFORM / path).read_text()
    (found,) = [r for r in yaml.safe_load_all(text) if r["kind"] == "ApplicationSet"]
    spec: Resource = found["spec"]
    return spec


def template(spec: Resource) -> str:
    """The name of the Applications of an example's ApplicationSet."""
    name: str = spec["template"]["metadata"]["name"]
    return name


def is_listed(spec: Resource, folder: str) -> bool:
    """Whether an ApplicationSet has an Application for a folder."""
    (generator,) = spec["generators"]
    found = set()
    for directory in generator["git"]["directories"]:
        parent, pattern = directory["path"].split("/")
        # As Go's path.Match, as far as the examples use it.
        assert re.fullmatch(r"[-*]+|\*\[[^]]+\]\*", pattern), pattern
        if re.fullmatch(pattern.replace("*", "[^/]*"), folder):
            found.add(directory.get("exclude", False))
    return found == {False}


def rendered(name: str, folder: str) -> str:
    """The name that the ApplicationSet gives the Application of a folder."""
    # As SanitizeName in applicationset/utils/template_functions.go of Argo CD.
    normalized = re.sub("[^-a-z0-9.]", "-", folder.lower())[:253].strip("-.")
    values = {"basename": folder, "basenameNormalized": normalized}
    for key, value in values.items():
        name = name.replace("{{.path.%s}}" % key, value)
    assert "{{" not in name, f"this test does not know {name}"
    return name


def is_taken(name: str) -> bool:
    """Whether the API server takes this as the name of an Application (RFC 1123)."""
    label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    return len(name) <= 253 and bool(re.fullmatch(rf"{label}(\.{label})*", name))


def is_team(name: str) -> bool:
    """Whether a team can have this name. It is a part of the name of a Namespace."""
    is_label = bool(re.fullmatch("[a-z0-9]([-a-z0-9]*[a-z0-9])?", name))
    return is_label and len(f"team-{name}") <= 63


def words(seed: int) -> Iterator[str]:
    """Names that people could give teams and folders: those that collide easily."""
    yield from (
        "gpu",
        "workspaces",
        "vision",
        "vision-x",
        "a",
        "x-a",
        "x",
        "ws",
        "teams",
    )
    yield from (
        "team",
        "team-vision",
        "A",
        "x_a",
        "x.a",
        "a.b",
        ".a",
        "a.",
        "-",
        "a--b",
    )
    dice = Random(seed)
    for _ in range(150):
        yield "".join(dice.choices("ab-._A", k=dice.randint(1, 5)))


def test_two_workspaces_or_the_platform_have_one_application() -> None:
    """Argo CD would change one into the other, or end one with the other."""
    workspaces = application_set("teams/vision/workspaces.yaml")
    of_team = template(workspaces)
    of_teams = template(application_set("crossplane/teams.yaml"))
    owners: dict[str, tuple[str, ...]] = {
        r["metadata"]["name"]: ("platform",)
        for _, r in resources(PLATFORM)
        if r["kind"] == "Application"
    }
    assert "gpu-workspaces" in owners
    candidates = sorted(set(words(seed=7)))
    teams = [team for team in candidates if is_team(team)]
    assert len(teams) > 15 and "vision" in of_team
    for team in teams:
        pairs = [(rendered(of_teams, team), ("team", team))]
        of_this_team = of_team.replace("vision", team)
        for folder in filter(lambda one: is_listed(workspaces, one), candidates):
            name = rendered(of_this_team, folder)
            assert is_taken(name), f"{name} holds up every removal"
            pairs.append((name, (team, folder)))
        for name, owner in pairs:
            assert owners.setdefault(name, owner) == owner, name
    assert ("vision", "x-a") in owners.values()


def test_a_team_whose_name_has_a_dot_takes_names_of_another() -> None:
    """The names of Applications are distinct only because there is no such team."""
    assert not is_team("vision.x")
    for _, namespace in resources(PLATFORM / "teams"):
        if namespace["kind"] == "Namespace":
            assert is_team(namespace["metadata"]["name"].removeprefix("team-"))


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
