"""The fixtures of every suite: the cluster, EC2, the emulator, a bystander."""

import json
import os
import uuid
from collections.abc import Generator, Iterator

import pytest
import yaml

from environment.bystander import Bystander
from environment.cluster import Cluster
from environment.ec2 import Ec2
from environment.emulator import SET_UP, Emulator
from environment.platform import Platform
from environment.pools import Pools
from environment.troubles import troubles
from environment.variants import ROOT

REGION = "us-east-1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Among parallel tests, those that take long begin first. If such a test began last,
    the run would wait for it alone."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: item.get_closest_marker("thorough") is None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fails a test that could run in parallel with other tests of its xdist group.

    pytest-xdist writes a test's group at the end of its node ID.
    """
    group = item.get_closest_marker("xdist_group")
    is_beside_others = "PYTEST_XDIST_WORKER" in os.environ
    if group and is_beside_others and not item.nodeid.endswith(f"@{group.args[0]}"):
        pytest.fail(f"pytest-xdist did not put this test into group {group.args[0]!r}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test reports the composed resources of its namespace that are not in order.
    The clean-up deletes them."""
    report = yield
    used = getattr(item, "funcargs", {})
    if report.when == "call" and report.failed and {"cluster", "namespace"} <= {*used}:
        found = troubles(used["cluster"], used["namespace"])
        report.sections.append(("composed resources that are not in order", found))
    return report


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    return Cluster.from_environment()


@pytest.fixture(scope="session")
def ec2() -> Ec2:
    return Ec2(REGION)


@pytest.fixture(scope="session")
def bystander(ec2: Ec2) -> Bystander:
    """An instance of another owner, in the same account, VPC and default group."""
    return Bystander.launch(ec2)


@pytest.fixture(scope="session", autouse=True)
def set_up() -> None:
    Emulator.from_environment().print_everywhere(SET_UP)


@pytest.fixture(autouse=True)
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    """The emulator. Faults and counts of calls are shared, so only tests that run alone
    may change them for all calls."""
    is_alone = "PYTEST_XDIST_WORKER" not in os.environ
    if not is_alone and request.node.get_closest_marker("alone"):
        pytest.fail("a test that is marked `alone` runs beside others")
    emulator = Emulator.from_environment(is_alone)
    emulator.clear_faults()
    if is_alone:
        emulator.print_everywhere(SET_UP)
    yield emulator
    emulator.clear_faults()


@pytest.fixture(autouse=True)
def nothing_of_others_is_touched(bystander: Bystander) -> Iterator[None]:
    yield
    bystander.check()


@pytest.fixture(scope="session", autouse=True)
def limits(cluster: Cluster) -> None:
    """Widens the platform's limits for the tests. They allow two networks for
    documentation, the network of the hosts of local clusters, and a type that EC2 does
    not have."""
    text = (ROOT / "examples/platform/limits.yaml").read_text()
    shipped = next(yaml.safe_load_all(text))
    types = shipped["data"]["allowedInstanceTypes"]
    wider = {
        "allowedInstanceTypes": [*types, "g4dn.huge"],
        "sshCidrCeiling": ["203.0.113.0/24", "198.51.100.0/24", "10.243.0.0/16"],
    }
    cluster.kubectl(
        *("patch", "environmentconfig", shipped["metadata"]["name"], "--type=merge"),
        *("-p", json.dumps({"data": wider})),
    )


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A team's namespace. The fixture deletes it and its claims after the test."""
    name = f"team-{uuid.uuid4().hex[:8]}"
    cluster.create_namespace(name)
    yield name
    cluster.delete_claims(name)
    cluster.delete_namespace(name)


@pytest.fixture
def pools(cluster: Cluster, namespace: str) -> Pools:
    return Pools(cluster, namespace)


@pytest.fixture
def platform(cluster: Cluster, namespace: str) -> Platform:
    return Platform(cluster, namespace)
