"""The shipped files are those that generate.py writes."""

import json
from pathlib import Path
from subprocess import run
from typing import Any

import yaml

import generate
from composites import names, written
from conftest import config_map

SHIPPED = Path(generate.__file__).resolve().parent


def test_shipped_files_are_not_those_of_the_health_checks() -> None:
    for name, text in generate.files().items():
        assert (
            SHIPPED / name
        ).read_text() == text, f"{name}: cargo xtask python argocd/generate.py"


def test_helm_configures_something_else_than_kustomize() -> None:
    """Both forms are equal, so that tests of one form also hold for the other."""
    assert config_map("values.yaml") == config_map("argocd-cm.yaml")


def test_a_managed_resource_of_a_workspace_has_no_health() -> None:
    """Without our script Argo CD shows such a resource as Healthy before it is created."""
    composed = {
        (one["resource"]["apiVersion"].split("/")[0], one["resource"]["kind"])
        for name in names()
        for one in (written(name, "response.yaml").get("desired") or {})
        .get("resources", {})
        .values()
    }
    managed = {
        f"resource.customizations.health.{group}_{kind}"
        for group, kind in composed
        # Other steps of the pipeline may compose resources of other groups.
        if group.endswith(("ec2.aws.m.upbound.io", "platform.acme.io"))
        # A record is data without a controller: it is complete once it exists.
        and kind != "WorkspaceRecord"
    }
    assert len(managed) >= 5
    shown = config_map("argocd-cm.yaml")["data"]
    assert isinstance(shown, dict)
    assert managed - shown.keys() == set()


def argo_cd() -> Path:
    """The folder of Argo CD's source, in the version of the pinned binary. The binary may come from a
    cache, so Go downloads the source where it is missing."""
    module = SHIPPED.parent / "tests/cluster/binaries/argocd"
    command = ["go", "mod", "download", "-json", "github.com/argoproj/argo-cd/v3"]
    done = run(command, cwd=module, capture_output=True, text=True, check=True)
    return Path(json.loads(done.stdout)["Dir"])


def data(path: Path) -> Any:
    return yaml.safe_load(path.read_text())["data"]


def test_argo_cd_watches_what_it_excludes_by_itself() -> None:
    theirs = data(argo_cd() / "manifests/base/config/argocd-cm.yaml")
    ours = yaml.safe_load((SHIPPED / "exclusions.yaml").read_text())
    assert ours[: len(ours) - 2] == yaml.safe_load(
        theirs["resource.exclusions"]
    ), "exclusions.yaml begins with Argo CD's own list"
