"""A developer cannot leave the current policy by the fields and annotations of Crossplane."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from environment.cluster import CLAIMS, Cluster
from environment.objects import Object, Refused
from environment.platform import PARAMETERS, Platform, claim

BINDING = "gpu-workspaces"


class Developer:
    """A person with the owners' role in one namespace, and without other rights."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = f"developer-of-{namespace}"
        cluster.kubectl(
            *("create", "rolebinding", "owner", "-n", namespace),
            *("--clusterrole=gpu-workspaces-owner", f"--user={self.name}"),
        )

    def apply(self, document: Object) -> None:
        text = json.dumps(document)
        self.cluster.kubectl("apply", f"--as={self.name}", "-f", "-", stdin=text)

    def patch(self, name: str, change: Object) -> None:
        self.cluster.kubectl(
            *("patch", CLAIMS, name, "-n", self.namespace, f"--as={self.name}"),
            *("--type=merge", "-p", json.dumps(change)),
        )


@pytest.fixture
def developer(cluster: Cluster, namespace: str) -> Developer:
    return Developer(cluster, namespace)


def of_crossplane(cluster: Cluster, fields: Object) -> Object:
    """Crossplane's own fields of a workspace, where this configuration has them."""
    is_claim = cluster.composites != CLAIMS
    return {"spec": fields if is_claim else {"crossplane": fields}}


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"compositionRef": {"name": "lax"}}, "compositionRef"),
        ({"compositionUpdatePolicy": "Manual"}, "compositionUpdatePolicy"),
        ({"compositionRevisionRef": {"name": "old"}}, "compositionRevisionRef"),
        ({"compositionSelector": {"matchLabels": {"a": "b"}}}, "compositionSelector"),
        (
            {"compositionRevisionSelector": {"matchLabels": {"a": "b"}}},
            "compositionRevisionSelector",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_developer_chooses_no_other_policy(
    developer: Developer, cluster: Cluster, fields: dict[str, Any], word: str
) -> None:
    document = claim(developer.namespace, "alice", PARAMETERS)
    chosen = of_crossplane(cluster, fields)["spec"]
    with pytest.raises(Refused) as refused:
        developer.apply({**document, "spec": {**document["spec"], **chosen}})
    assert word in str(refused.value)
    # The same claim without the field is accepted, and cannot get the field later.
    developer.apply(document)
    with pytest.raises(Refused) as refused:
        developer.patch("alice", of_crossplane(cluster, fields))
    assert word in str(refused.value)


@pytest.mark.parametrize(
    "field", ["compositionSelector", "compositionRevisionSelector"]
)
def test_the_definition_itself_refuses_to_select_a_policy_by_labels(
    platform: Platform, cluster: Cluster, field: str
) -> None:
    """The rule is in the package, so it needs no admission policy."""
    document = claim(platform.namespace, "alice", PARAMETERS)
    chosen = of_crossplane(cluster, {field: {"matchLabels": {"a": "b"}}})["spec"]
    with pytest.raises(Refused) as refused:
        cluster.apply({**document, "spec": {**document["spec"], **chosen}})
    assert f"{field} is refused" in str(refused.value)


@pytest.mark.parametrize("key", ["crossplane.io/paused", "crossplane.io/poll-interval"])
def test_a_developer_pauses_no_workspace(developer: Developer, key: str) -> None:
    developer.apply(claim(developer.namespace, "alice", PARAMETERS))
    with pytest.raises(Refused) as refused:
        developer.patch("alice", {"metadata": {"annotations": {key: "true"}}})
    assert key in str(refused.value)


def test_a_developer_works_with_a_claim_that_the_platform_team_pinned(
    developer: Developer, platform: Platform, cluster: Cluster
) -> None:
    developer.apply(claim(developer.namespace, "alice", PARAMETERS))
    platform.ready("alice")
    pinned = of_crossplane(cluster, {"compositionUpdatePolicy": "Manual"})
    cluster.kubectl(
        *("patch", CLAIMS, "alice", "-n", developer.namespace),
        *("--type=merge", "-p", json.dumps(pinned)),
    )
    developer.patch("alice", {"spec": {"parameters": {"opencvVersion": "4.10.0"}}})


@pytest.fixture
def unbound(cluster: Cluster) -> Iterator[None]:
    """Removes the binding of the admission policy."""
    with cluster.without("validatingadmissionpolicybinding", BINDING):
        yield


@pytest.mark.alone
def test_a_workspace_says_that_nothing_enforces_the_policy(
    platform: Platform, unbound: None
) -> None:
    platform.claim("alice")
    platform.ready("alice")
    platform.condition("alice", "PolicyEnforced", "False", "admission.yaml")
