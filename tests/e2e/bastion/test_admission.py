"""The account that the bastion becomes exists for owners only, and no pod has its token."""

import json

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
    container = {"name": "sh", "image": "example.org/sh"}
    spec = {"serviceAccountName": service_account, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": "mine"}, "spec": spec}


def test_nobody_makes_the_account_that_the_bastion_becomes_outside_of_owners_namespaces(
    cluster: Cluster, namespace: str, alice: Workspaces
) -> None:
    """Whoever bound such an account could act in that namespace through the bastion."""
    with pytest.raises(Refused) as refused:
        create(cluster, namespace, account(ACCOUNT))
    assert "platform.acme.io/owner" in str(refused.value)
    create(cluster, namespace, account("another"))
    # Crossplane has made the account in the namespace of an owner.
    assert cluster.get("serviceaccount", ACCOUNT, alice.namespace) is not None


def test_no_pod_gets_the_token_of_the_account_that_the_bastion_becomes(
    cluster: Cluster, alice: Workspaces
) -> None:
    with pytest.raises(Refused) as refused:
        create(cluster, alice.namespace, pod(ACCOUNT), "--dry-run=server")
    assert "no pod may use the ServiceAccount" in str(refused.value)
    create(cluster, alice.namespace, pod("default"), "--dry-run=server")
