"""A workspace without working pods is never Ready, and its claim says why."""

from cluster.workspaces import HOME, Workspaces
from environment.cluster import Cluster, is_ready
from environment.variants import composition, flavor


def never_ready(alice: Workspaces, name: str) -> None:
    found = alice.workspace(name)
    assert not is_ready(found)
    events = alice.cluster.all(
        "events", alice.namespace, fields="reason=WorkspaceReady"
    )
    assert [e for e in events if e["involvedObject"]["name"] == name] == []


def test_a_pod_that_ends_again_and_again_is_failed_with_its_last_words(
    cluster: Cluster, alice: Workspaces, image: str
) -> None:
    promised = flavor(cluster, image, "wrong-opencv", opencvVersion="4.9.0")
    alice.claim("looping", flavor=promised)
    failed = alice.phase("looping", "Failed", "4.9.0", seconds=180)
    assert "again and again" in failed["message"], failed
    alice.condition("looping", "ComputeReady", "False", "CrashLooping")
    never_ready(alice, "looping")


def test_an_image_that_is_not_there_is_named(
    cluster: Cluster, alice: Workspaces, image: str
) -> None:
    nothing = image.rsplit(":", 1)[0] + ":nothing"
    alice.claim("nothing", flavor=flavor(cluster, nothing, "no-image"))
    failed = alice.phase("nothing", "Failed", seconds=120)
    assert nothing in failed["message"], failed
    never_ready(alice, "nothing")


def test_a_home_without_a_volume_is_named(
    cluster: Cluster, alice: Workspaces, image: str
) -> None:
    name = flavor(cluster, image, "no-storage", storageClassName="none-such")
    alice.claim("homeless", flavor=name, home=HOME)
    seen = alice.condition("homeless", "HomeReady", "False", "none-such")
    assert "home-gpuws-homeless-0" in seen["message"], seen
    alice.condition("homeless", "ComputeReady", "False", "home-gpuws-homeless-0")
    never_ready(alice, "homeless")


def test_a_machine_that_does_not_exist_is_said_to_be_missing(
    cluster: Cluster, alice: Workspaces, image: str
) -> None:
    name = flavor(cluster, image, "no-machine", gpus=1, gpuProduct="H900")
    alice.claim("placeless", flavor=name)
    seen = alice.condition("placeless", "ComputeReady", "False", "Unschedulable")
    assert "0/1 nodes are available" in seen["message"], seen
    never_ready(alice, "placeless")


def test_a_flavor_that_comes_later_is_waited_for(
    cluster: Cluster, alice: Workspaces, image: str
) -> None:
    alice.claim("early", flavor="comes-later")
    alice.condition("early", "ConfigResolved", "False", "comes-later does not exist")
    flavor(cluster, image, "comes-later")
    # Crossplane would call the function again after the policy's interval. A commit
    # makes it call the function at once.
    alice.change("early", overrides={"cpu": "150m"})
    alice.ready("early", seconds=120)


def test_homes_go_with_their_claim_where_the_policy_says_so(
    cluster: Cluster, alice: Workspaces
) -> None:
    homes_go = composition(cluster, "homes-go", {"home": {"onDelete": "Delete"}})
    alice.claim("passing", home=HOME, composition=homes_go)
    alice.ready("passing", seconds=120)
    (home,) = alice.homes("passing")
    alice.delete("passing")
    remaining = [one["metadata"]["uid"] for one in alice.homes("passing")]
    assert home["metadata"]["uid"] not in remaining
