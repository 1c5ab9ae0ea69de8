"""The documentation's commands, unchanged, on a cluster with Crossplane and nothing
else. Each test continues with the cluster that the test before has left."""

import os
import subprocess
from pathlib import Path

import pytest
import yaml

from cluster.workspaces import Key
from documents import suites
from environment.cluster import CLAIMS, Cluster, is_ready
from environment.objects import Object, Refused
from environment.ec2 import Ec2
from environment.variants import ROOT
from environment.waiting import until
from lifecycle.conftest import BOOTING_IMAGE, host

PACKAGES = [
    "provider-gpu-spot",
    "function-gpu-workspace",
    "configuration-gpu-workspaces",
]
VERSION, NEXT = "v0.1.0", "v0.1.1"
TEAM, CLAIM = "team-vision", "alice-vision"


@pytest.fixture(scope="module")
def registry() -> str:
    """The registry, with the packages under the versions that the pages name."""
    registry = os.environ["GPU_WORKSPACES_REGISTRY"]
    for package in PACKAGES:
        repository = f"{registry}/acme/{package}"
        tags = [tag for tag in crane("ls", repository).split() if "-dev." in tag]
        assert tags, f"nothing in {repository}: run the suite by `make e2e`"
        crane("copy", f"{repository}:{tags[-1]}", f"{repository}:{VERSION}")
        # Another digest makes Crossplane create another revision.
        crane(
            *["mutate", f"{repository}:{VERSION}"],
            *["--label", f"version={NEXT}", "--tag", f"{repository}:{NEXT}"],
        )
    return registry


def crane(*arguments: str) -> str:
    ran = subprocess.run(
        ["crane", *arguments], capture_output=True, text=True, check=True
    )
    return ran.stdout


@pytest.fixture(scope="module")
def presets(registry: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("platform")
    local = suites.emulator_platform(folder, os.environ["AWS_ENDPOINT_URL"])
    key = Key.generate(folder, "key")
    own = {
        "WORKSPACE": str(_personal(folder, key)),
        "SSH_KEY": str(key.private),
        "SSH_FOLDER": str(folder),
    }
    return {"REGISTRY": registry, "VERSION": VERSION, "NEXT": NEXT, **local, **own}


def _personal(folder: Path, key: Key) -> Path:
    """Puts this host's key and network, and an image that boots, where the page tells its
    reader to write their own. Returns the claim's file."""
    network = f"{host()}/32"
    catalogue = _read(folder / "catalogue.yaml")
    catalogue["data"]["owners"]["alice"]["publicKeys"].append(key.public)
    catalogue["data"]["images"]["us-east-1"]["default"] = BOOTING_IMAGE
    (folder / "catalogue.yaml").write_text(yaml.safe_dump(catalogue))
    limits = list(yaml.safe_load_all((folder / "limits.yaml").read_text()))
    (data,) = [one["data"] for one in limits if one["kind"] == "EnvironmentConfig"]
    data["sshCidrCeiling"].append(network)
    (folder / "limits.yaml").write_text(yaml.safe_dump_all(limits))
    claim = _read(ROOT / "examples/workspaces/alice-vision.yaml")
    claim["spec"]["parameters"]["ssh"]["allowedCidrs"] = [network]
    (folder / "claim.yaml").write_text(yaml.safe_dump(claim))
    return folder / "claim.yaml"


def _read(file: Path) -> Object:
    document: Object = yaml.safe_load(file.read_text())
    return document


def run(name: str, presets: dict[str, str]) -> str:
    """Runs a suite with those presets whose variables its page has."""
    wanted = suites.assigned(suites.suite(name))
    return suites.run(name, {k: v for k, v in presets.items() if k in wanted})


def test_the_install_path_ends_with_a_ready_workspace(
    cluster: Cluster, ec2: Ec2, presets: dict[str, str]
) -> None:
    with pytest.raises(Refused):
        cluster.kubectl("get", CLAIMS, "-A")
    print(run("install", presets))
    assert is_ready(cluster.get(CLAIMS, CLAIM, TEAM))
    assert len(ec2.live(TEAM)) == 1


def test_the_commands_of_troubleshooting_answer(presets: dict[str, str]) -> None:
    print(run("troubleshooting", presets))


def test_the_upgrade_and_its_rollback_keep_the_machine(
    cluster: Cluster, ec2: Ec2, presets: dict[str, str]
) -> None:
    (before,) = ec2.live(TEAM)
    print(run("upgrade", presets))
    (after,) = ec2.live(TEAM)
    assert after["InstanceId"] == before["InstanceId"]
    until("the claim", lambda: is_ready(cluster.get(CLAIMS, CLAIM, TEAM)))


def test_removing_leaves_no_instance(ec2: Ec2, presets: dict[str, str]) -> None:
    print(run("remove", presets))
    assert ec2.live(TEAM) == []
