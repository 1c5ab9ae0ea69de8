"""Argo CD with the example repositories, in a cluster without other workloads."""

import os
from collections.abc import Iterator

import pytest

from environment.cluster import CLAIMS, Cluster
from environment.platform import Platform
from environment.waiting import until
from gitops import repositories
from gitops.argo import ArgoCd
from gitops.git import Repository, Server

TEAM = "team-vision"


@pytest.fixture(scope="session", autouse=True)
def limits() -> None:
    """Changes nothing: Argo CD applies the limits of the platform's repository."""


@pytest.fixture(scope="session")
def argocd(cluster: Cluster) -> ArgoCd:
    argocd = ArgoCd(cluster)
    argocd.log_in()
    return argocd


@pytest.fixture(scope="session")
def server(cluster: Cluster) -> Server:
    return Server(cluster)


@pytest.fixture(scope="session")
def team_repository(
    server: Server, tmp_path_factory: pytest.TempPathFactory
) -> Repository:
    """The team's repository, still without a workspace."""
    repository = server.repository("team-vision", tmp_path_factory.mktemp("team"))
    repository.write("workspaces/README.md", "A folder each.\n")
    repository.push("Begin")
    return repository


@pytest.fixture(scope="session")
def platform_repository(
    cluster: Cluster,
    argocd: ArgoCd,
    server: Server,
    team_repository: Repository,
    tmp_path_factory: pytest.TempPathFactory,
) -> Repository:
    """The platform's repository, once its Application is Healthy."""
    folder = tmp_path_factory.mktemp("platform")
    repository = server.repository("platform", folder)
    repositories.platform(folder)
    repository.push("Begin")
    namespace, name = repositories.SECRET["namespace"], repositories.SECRET["name"]
    key, secret = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]
    profile = (
        f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n"
    )
    cluster.apply(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "stringData": {repositories.SECRET["key"]: profile},
        }
    )
    cluster.kubectl("apply", "-f", str(folder / "bootstrap.yaml"))
    argocd.await_health("gpu-workspaces", "Healthy", seconds=300)
    until("the team's project", lambda: argocd.health("team-vision") == "Healthy", 120)
    return repository


@pytest.fixture
def team(cluster: Cluster, platform_repository: Repository) -> Platform:
    return Platform(cluster, TEAM)


@pytest.fixture
def workspaces(
    cluster: Cluster, argocd: ArgoCd, team: Platform, team_repository: Repository
) -> Iterator[Repository]:
    """The team's repository. The fixture removes the workspaces that a test adds."""
    yield team_repository
    left = [
        path.name
        for path in (team_repository.folder / "workspaces").iterdir()
        if path.is_dir()
    ]
    if left:
        for name in left:
            team_repository.remove(f"workspaces/{name}")
        team_repository.push("Remove what a test left")
    left_over: list[str] = []

    def is_empty() -> bool:
        claims = [one["metadata"]["name"] for one in cluster.all(CLAIMS, TEAM)]
        left_over[:] = [*claims, *argocd.applications("ws.vision.")]
        return not left_over

    try:
        # If an Application was just created again, Argo CD may miss its deletion. It then
        # handles the deletion at a later resync: once five minutes after it, as seen.
        until("the team's workspaces to be gone", is_empty, seconds=480)
    except AssertionError as error:
        raise AssertionError(f"{error}: there are still {left_over}") from None
