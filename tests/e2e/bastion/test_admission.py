"""The account that the bastion becomes exists for owners only, and no pod has its token."""

import json
import uuid
from collections.abc import Iterator

import pytest

from cluster.workspaces import Workspaces
from environment.cluster import Cluster
from environment.objects import Object, Refused

ACCOUNT = "gpu-workspaces.owner"


def create(cluster: Cluster, namespace: str, document: Object, *flags: str) -> str:
    text = json.dumps({"apiVersion": "v1", **document})
    words = ("create", "-n", namespace, "-f", "-", "-o", "name", *flags)
    return str(cluster.kubectl(*words, stdin=text))


def account(name: str) -> Object:
    return {"kind": "ServiceAccount", "metadata": {"name": name}}


def pod(service_account: str) -> Object:
    """A pod that Pod Security admits, so only its account matters."""
    confined = {
        "allowPrivilegeEscalation": False,
        "runAsNonRoot": True,
        "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    limits = {"cpu": "100m", "memory": "64Mi"}
    container = {
        "name": "sh",
        "image": "example.org/sh",
        "securityContext": confined,
        "resources": {"requests": limits, "limits": limits},
    }
    spec = {"serviceAccountName": service_account, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": "mine"}, "spec": spec}


@pytest.fixture
def unowned(cluster: Cluster) -> Iterator[str]:
    """A namespace that is no owner's."""
    name = f"unowned-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.delete_namespace(name)


def test_nobody_makes_the_account_that_the_bastion_becomes_outside_of_owners_namespaces(
    cluster: Cluster, unowned: str, alice: Workspaces
) -> None:
    """Whoever bound such an account could act in that namespace through the bastion."""
    with pytest.raises(Refused) as refused:
        create(cluster, unowned, account(ACCOUNT))
    assert "platform.acme.io/owner" in str(refused.value)
    create(cluster, unowned, account("another"))
    # Crossplane has made the account in the namespace of an owner.
    assert cluster.get("serviceaccount", ACCOUNT, alice.namespace) is not None


def test_no_pod_gets_the_token_of_the_account_that_the_bastion_becomes(
    cluster: Cluster, alice: Workspaces
) -> None:
    with pytest.raises(Refused) as refused:
        create(cluster, alice.namespace, pod(ACCOUNT), "--dry-run=server")
    assert "no pod may use the ServiceAccount" in str(refused.value)
    create(cluster, alice.namespace, pod("default"), "--dry-run=server")
