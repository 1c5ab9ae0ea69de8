"""Fixtures: argocd-cm in each shipped form."""

from pathlib import Path

import pytest
import yaml

import engine

HERE = Path(__file__).parent
SHIPPED = HERE.parent


def config_map(form: str) -> dict[str, object]:
    """argocd-cm, as kustomize or Helm would create it from our files."""
    content = yaml.safe_load((SHIPPED / form).read_text())
    data = content["data"] if "data" in content else content["configs"]["cm"]
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm"},
        "data": data,
    }


@pytest.fixture(scope="session", params=["argocd-cm.yaml", "values-wildcards.yaml"])
def form(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    engine.program()
    path = tmp_path_factory.mktemp("form") / "argocd-cm.yaml"
    path.write_text(yaml.safe_dump(config_map(request.param)))
    return path


@pytest.fixture(scope="session")
def component(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """argocd-cm in the form of the kustomize component."""
    engine.program()
    path = tmp_path_factory.mktemp("component") / "argocd-cm.yaml"
    path.write_text(yaml.safe_dump(config_map("argocd-cm.yaml")))
    return path
