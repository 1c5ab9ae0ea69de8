"""A workspace without a claim behaves as one with a claim."""

import base64

from environment.cluster import CLAIMS, Cluster
from environment.objects import Object
from environment.ec2 import Ec2
from environment.platform import Platform
from environment.waiting import until
from main.test_admission import (  # noqa: F401
    developer,
    test_a_developer_chooses_no_other_policy,
    test_a_developer_pauses_no_workspace,
    test_a_developer_works_with_a_claim_that_the_platform_team_pinned,
    test_the_definition_itself_refuses_to_select_a_policy_by_labels,
)
from main.test_owner_binding import (  # noqa: F401
    test_a_claim_without_an_owner_belongs_to_the_owner_of_its_namespace,
)
from main.test_workspace import (  # noqa: F401
    test_a_claim_is_a_running_spot_instance_as_it_was_asked_for,
    test_a_reached_quota_is_named_on_the_claim_with_the_limit_to_raise,
    test_an_instance_that_aws_takes_back_is_replaced_and_not_called_ready,
    test_claims_of_one_name_in_two_namespaces_do_not_mix,
    test_deleting_a_claim_leaves_nothing_in_ec2_and_nothing_in_the_cluster,
    test_the_region_of_a_claim_cannot_change,
    test_what_is_billed_or_open_carries_tags_and_no_more_than_asked,
)
from main.test_wrong_input import (  # noqa: F401
    test_a_workspace_goes_on_running_while_its_claim_makes_no_sense,
    test_what_policy_forbids_is_shown_on_the_claim_and_nothing_is_launched,
)


def test_the_secret_tells_how_to_log_in_and_goes_with_the_workspace(
    platform: Platform, cluster: Cluster
) -> None:
    platform.claim("alice")
    status = platform.ready("alice")
    told = _connection(platform, "alice")
    assert told == {
        "host": status["publicIp"],
        "port": "22",
        "user": "developer",
        "ssh": status["ssh"],
    }
    platform.delete("alice")
    assert cluster.get("secrets", "gpuws-alice-connection", platform.namespace) is None


def test_a_workspace_that_is_deleted_without_waiting_still_ends_its_instance(
    platform: Platform, cluster: Cluster, ec2: Ec2
) -> None:
    platform.claim("alice")
    platform.ready("alice")
    cluster.kubectl("delete", CLAIMS, "alice", "-n", platform.namespace)
    assert cluster.get(CLAIMS, "alice", platform.namespace) is None
    until("the instance to end", lambda: ec2.live(platform.namespace) == [])
    until(
        "the pool to go",
        lambda: cluster.all("spotpools", platform.namespace) == [],
    )


def test_a_workspace_in_the_cluster_is_the_claims_own_and_leaves_its_home(
    platform: Platform, cluster: Cluster
) -> None:
    cluster.apply(_flavor())
    platform.claim("pods", placement="Cluster", flavor="nowhere", home={"sizeGiB": 1})

    def made() -> Object | None:
        return cluster.get("statefulsets", "gpuws-pods", platform.namespace)

    (owner,) = until("the StatefulSet", made)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("GpuDevWorkspaceClaim", "pods")

    def homes() -> list[str]:
        found = cluster.all("persistentvolumeclaims", platform.namespace)
        return [home["metadata"]["name"] for home in found]

    assert until("the home", homes) == ["home-gpuws-pods-0"]
    platform.delete("pods")
    assert made() is None
    assert homes() == ["home-gpuws-pods-0"]


def _connection(platform: Platform, name: str) -> dict[str, str]:
    def look() -> Object | None:
        secret = platform.cluster.get(
            "secrets", f"gpuws-{name}-connection", platform.namespace
        )
        return secret if secret and secret.get("data") else None

    secret = until("the connection Secret", look)
    assert secret["type"] == "connection.crossplane.io/v1alpha1"
    return {
        key: base64.b64decode(value).decode() for key, value in secret["data"].items()
    }


def _flavor() -> Object:
    return {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "WorkspaceFlavor",
        "metadata": {"name": "nowhere"},
        "spec": {
            "image": "registry.platform.acme.io/acme/nothing:none",
            "opencvVersion": "4.8.0",
            "pytorchVersion": "1.13.0",
            "cpu": "100m",
            "memory": "128Mi",
            "shmSize": "16Mi",
        },
    }
