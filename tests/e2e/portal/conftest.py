"""A platform whose users come through the portal, and have no rights of their own."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, expect

import page as pages
from cluster.conftest import keys
from cluster.workspaces import HOST_NETWORK, Key
from environment import registry, variants
from environment.cluster import CLAIMS, Cluster, is_ready
from environment.objects import Object
from environment.waiting import until
from lifecycle.conftest import agent_url, booting_policy
from page import Person, signs_in
from people import Browser
from portal.installation import Installation, SignIn
from thief import Thief

# Fixtures of other suites.
__all__ = ["agent_url", "booting_policy", "keys"]

PEOPLE = ("alice", "bob")


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster, with claims or without."""
    cluster = Cluster.from_environment()
    if is_namespaced(cluster):
        cluster.composites, cluster.cascade = CLAIMS, "foreground"
    return cluster


def is_namespaced(cluster: Cluster) -> bool:
    """Whether users write the composite itself."""
    return cluster.get("compositeresourcedefinitions", CLAIMS, "default") is not None


@pytest.fixture(scope="session")
def sign_in() -> SignIn:
    return SignIn.of_cluster()


@pytest.fixture(scope="session", autouse=True)
def platform_policy(cluster: Cluster, limits: None, booting_policy: Object) -> None:
    """Instances that boot, for claims that name no Composition and no networks: the portal's do
    not."""
    policy = {**booting_policy, "defaults": {"sshCidrs": [HOST_NETWORK]}}
    if is_namespaced(cluster):
        name, of = "gpudevworkspaceclaims", "namespaced/gpudevworkspaceclaims"
    else:
        name = of = "gpudevworkspaces"
    variants.composition(cluster, name, policy, of)
    for_users(cluster, "Bastion")


# The package manager may write the packages' own Compositions again at any time.
USERS = "devusers-portal"


def for_users(cluster: Cluster, access: str) -> None:
    """Who acts for users: others (`Bastion`), or they themselves (`Direct`)."""
    variants.composition(cluster, USERS, {"access": access}, of="devusers")


@pytest.fixture(scope="session", autouse=True)
def people(
    cluster: Cluster, platform_policy: None, keys: Callable[[str], Key]
) -> dict[str, Key]:
    """alice and bob, each with a namespace and a key."""
    made = {name: keys(name) for name in PEOPLE}
    for name, key in made.items():
        # The platform's examples have namespaces without a DevUser.
        cluster.kubectl(
            *("delete", "namespace", "-l", "!crossplane.io/composite"),
            f"--field-selector=metadata.name=dev-{name}",
        )
        cluster.apply(
            {
                "apiVersion": "platform.acme.io/v1alpha1",
                "kind": "DevUser",
                "metadata": {"name": name},
                "spec": {
                    "publicKeys": [key.public],
                    "subjects": [{"kind": "User", "name": f"{name}@acme.io"}],
                    "crossplane": {"compositionRef": {"name": USERS}},
                },
            }
        )
    for name in made:
        until(
            f"DevUser {name} to be Ready",
            lambda name=name: is_ready(cluster.get("devusers", name, "default")),
            # Claims are counted once their definition is a minute old.
            seconds=120,
        )
    return made


@pytest.fixture(scope="session", autouse=True)
def portal(
    cluster: Cluster,
    sign_in: SignIn,
    people: dict[str, Key],
    tmp_path_factory: pytest.TempPathFactory,
) -> Installation:
    """Two replicas."""
    portal = Installation(cluster, sign_in)
    image = registry.newest("images/portal", "portal")
    portal.install(image, tmp_path_factory.mktemp("portal"))
    return portal


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    with pages.chromium() as browser:
        yield browser


@pytest.fixture
def person(chromium: Chromium, sign_in: SignIn) -> Iterator[Person]:
    """A person who is not signed in. No page of theirs breaks the portal's own policy."""
    with chromium.new_context(ignore_https_errors=True) as context:
        person = Person(context, sign_in.portal)
        yield person
        assert person.reports == []


@pytest.fixture
def signed_in(sign_in: SignIn, portal: Installation) -> Callable[[str], Browser]:
    """A person in a browser without pages. It trusts the cluster's authority alone."""

    def signed_in(name: str) -> Browser:
        browser = Browser(sign_in.portal, sign_in.authority)
        browser.sign_in(f"{name}@acme.io")
        assert browser.get("/api/v1/me").status_code == 200
        return browser

    return signed_in


@pytest.fixture
def thief(portal: Installation) -> Thief:
    """Somebody who has the token of a pod of the portal."""
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text())
    return Thief(config["clusters"][0]["cluster"]["server"], portal.token())


@pytest.fixture
def tabs(chromium: Chromium, sign_in: SignIn) -> Iterator[list[Page]]:
    """Two browsers of alice, with two tabs each. Nobody loads a page again."""
    opened: list[Page] = []
    with ExitStack() as contexts:
        people = []
        for _ in range(2):
            context = chromium.new_context(ignore_https_errors=True)
            person = Person(contexts.enter_context(context), sign_in.portal)
            people.append(person)
            page = person.opens()
            signs_in(page, "alice")
            opened += [page, person.opens()]
        for tab in opened:
            expect(tab.get_by_text("You have no workspaces yet")).to_be_visible()
            tab.evaluate("window.isTheSame = true")
        yield opened
        for tab in opened:
            assert tab.evaluate("window.isTheSame"), "the page was loaded again"
        for person in people:
            # What the network refuses is an error for the console, too.
            reports = person.reports
            assert [one for one in reports if "Content Security Policy" in one] == []


@pytest.fixture(autouse=True)
def no_claims(cluster: Cluster, people: dict[str, Key]) -> Iterator[None]:
    """Each test ends without claims."""
    yield
    for name in people:
        cluster.delete_claims(f"dev-{name}")
