"""A claim says what machine it wants: by flavor, by GPU, by image, or not at all."""

from typing import Any

import pytest
import yaml

from environment.cluster import Cluster, Refused
from environment.ec2 import Ec2
from environment.platform import PARAMETERS, Platform, claim
from environment.rendering import ROOT
from environment.variants import catalogue, composition
from environment.waiting import until

# Images of the emulator with PyTorch 2.12 and 2.9.
FIRST, SECOND = "ami-00000000000c0de18", "ami-00000000000c0de14"


@pytest.fixture(scope="session", autouse=True)
def menu(cluster: Cluster) -> str:
    """The committed flavors, as `kubectl get flavors` shows them."""
    text = (ROOT / "examples/platform/flavors.yaml").read_text()
    for flavor in yaml.safe_load_all(text):
        cluster.apply(flavor)

    def shown() -> str | None:
        table = cluster.kubectl("get", "flavors")
        return table if "0.526" in table and "0.2" in table else None

    return until("the price in the menu", shown, 120)


def test_the_menu_shows_what_a_machine_has_and_costs(menu: str) -> None:
    lines = [" ".join(line.split()) for line in menu.splitlines()]
    for flavor in (
        "t4 EC2, Cluster 1 x T4 16Gi 4 16Gi 0.526 0.6",
        "cpu-small Cluster 500m 1Gi 0.2",
    ):
        assert any(line.startswith(flavor) for line in lines), menu


def test_a_flavor_of_the_menu_gets_a_machine(platform: Platform, ec2: Ec2) -> None:
    _apply(platform, _example("by-flavor"))
    status = platform.ready("alice")
    assert status["instanceType"] == "g4dn.xlarge"
    assert status["region"] == "us-east-1"
    assert status["choice"]["asked"] == "flavor t4"
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceType"] == "g4dn.xlarge"


def test_a_wish_for_a_gpu_gets_the_cheapest_type_that_has_it(
    platform: Platform, ec2: Ec2
) -> None:
    _apply(platform, _example("by-gpu"))
    choice = platform.ready("alice")["choice"]
    prices = _prices("us-east-1")
    fitting = ["g5.xlarge", "g5.2xlarge", "g6.xlarge", "g6.2xlarge", "g6e.xlarge"]
    allowed = [name for name in choice["instanceTypes"] if name in fitting]
    assert allowed == choice["instanceTypes"], "a type has less than 20 GiB"
    assert allowed == sorted(allowed, key=lambda name: prices[name])
    (instance,) = ec2.live(platform.namespace)
    assert instance["InstanceType"] == allowed[0]


def test_a_gpu_that_nobody_has_is_refused_with_what_there_is_and_its_price(
    platform: Platform, ec2: Ec2
) -> None:
    _apply(platform, {**_example("by-gpu"), "gpu": {"name": "H100", "count": 8}})
    offer = "there are g4dn.xlarge (1 x T4 with 16Gi, 0.526 USD per hour)"
    platform.condition("alice", "ConfigResolved", "False", offer)
    assert platform.status("alice")["phase"] == "Failed"
    assert ec2.live(platform.namespace) == []


def test_a_claim_with_an_owner_only_stays_where_it_started(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    policy = {"defaults": {"region": "us-west-2"}}
    name = composition(cluster, "in-the-west", policy)
    owner_only = {"owner": "alice", "ssh": PARAMETERS["ssh"]}
    _apply(platform, owner_only, name)
    until("the region to be recorded", lambda: _region(platform) == "us-west-2")
    composition(cluster, "in-the-west", {"defaults": {"region": "us-east-1"}})
    pool = platform.pool()["spec"]["forProvider"]["region"]
    assert pool == "us-west-2"
    _apply(platform, {**owner_only, "region": "us-east-1"}, name)
    platform.condition("alice", "ConfigResolved", "False", "must be us-west-2")
    assert platform.pool()["spec"]["forProvider"]["region"] == "us-west-2"
    assert ec2.live(platform.namespace) == []


@pytest.mark.parametrize("home", [None, {"sizeGiB": 10}], ids=["disk", "home"])
def test_another_image_replaces_the_machine_and_keeps_the_home(
    platform: Platform, cluster: Cluster, ec2: Ec2, home: dict[str, int] | None
) -> None:
    name = _with_two_images(cluster)
    wish = {**PARAMETERS, **({"home": home} if home else {})}
    _apply(platform, {**wish, "image": "default"}, name)
    before = platform.ready("alice")
    assert _images(ec2, platform) == [FIRST]
    _apply(platform, {**wish, "image": "earlier"}, name)
    until("the machine of the image", lambda: _images(ec2, platform) == [SECOND], 120)
    old = (None, before["instanceId"])
    until(
        "the claim to name the next machine",
        lambda: platform.status("alice").get("instanceId") not in old,
    )
    after = platform.ready("alice")
    assert after["image"]["name"] == "earlier"
    if home:
        (volume,) = ec2.homes(platform.namespace)
        assert volume["VolumeId"] == before["home"]["volumeId"]
        attached = [one["InstanceId"] for one in volume["Attachments"]]
        assert attached == [after["instanceId"]]


def test_a_home_grows_in_either_word_and_never_shrinks(platform: Platform) -> None:
    stopped = {**PARAMETERS, "lifecycle": {"state": "Stopped"}}
    _apply(platform, {**stopped, "home": {"size": "2Gi"}})
    for home, why in [
        ({"sizeGiB": 1}, "cannot shrink"),
        ({"size": "1Gi"}, "cannot shrink"),
        ({"size": "3Gi", "sizeGiB": 3}, "not both"),
        ({"size": "17Ti"}, "at most 16Ti"),
        ({"size": "2 GB"}, "for example 100Gi"),
    ]:
        with pytest.raises(Refused, match=why):
            _apply(platform, {**stopped, "home": home})
    _apply(platform, {**stopped, "home": {"sizeGiB": 1024}})
    _apply(platform, {**stopped, "home": {"size": "1Ti"}})


def _apply(platform: Platform, parameters: dict[str, Any], policy: str = "") -> None:
    document = claim(platform.namespace, "alice", parameters)
    if policy:
        document["spec"]["compositionRef"] = {"name": policy}
    platform.cluster.apply(document)


def _example(name: str) -> dict[str, Any]:
    text = (ROOT / f"examples/choosing/{name}.yaml").read_text()
    parameters: dict[str, Any] = yaml.safe_load(text)["spec"]["parameters"]
    return parameters


def _prices(region: str) -> dict[str, float]:
    text = (ROOT / "examples/platform/catalogue.yaml").read_text()
    prices: dict[str, float] = yaml.safe_load(text)["data"]["prices"]["hourlyUsd"][
        region
    ]
    return prices


def _with_two_images(cluster: Cluster) -> str:
    earlier = {
        "id": SECOND,
        "pytorch": {"version": "2.9.1", "python": "/opt/pytorch/bin/python3"},
    }
    images = {"us-east-1": {"earlier": earlier}}
    known = catalogue(cluster, "gpu-workspaces-two-images", {"images": images})
    policy = {"catalogue": {"name": known}, "allowedImages": ["default", "earlier"]}
    return composition(cluster, "two-images", policy)


def _region(platform: Platform) -> str | None:
    region: str | None = platform.status("alice").get("region")
    return region


def _images(ec2: Ec2, platform: Platform) -> list[str]:
    return [instance["ImageId"] for instance in ec2.live(platform.namespace)]
