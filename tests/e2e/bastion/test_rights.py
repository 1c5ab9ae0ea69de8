"""What the bastion may do, and what it may do as a person: as lists of the API server,
and by trying everything with the bastion's own token.

`make e2e SUITE=bastion` runs this with Kubernetes' constrained impersonation, and once more
without it.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from bastion.account import Account, Resource, impersonating
from bastion.door import NAMESPACE, Door, Visitor
from cluster.test_rights import rights
from cluster.workspaces import Workspaces
from environment.cluster import SYSTEM, Cluster
from environment.objects import Object

GOLDENS = Path(__file__).parent / "goldens"
BASTION = f"system:serviceaccount:{NAMESPACE}:gpu-bastion"
PLATFORM = "platform.acme.io"
RBAC = "rbac.authorization.k8s.io"

CLAIMS = Resource("gpudevworkspaceclaims", PLATFORM, "v1alpha1")
PODS, SECRETS = Resource("pods"), Resource("secrets")
EXEC = Resource("pods", subresource="exec")
FORWARDED = Resource("pods", subresource="portforward")
NODES = Resource("nodes", is_namespaced=False)

# What somebody who wants more than the bastion has would try.
RESOURCES = [
    CLAIMS,
    Resource("gpudevworkspaceclaims", PLATFORM, "v1alpha1", subresource="status"),
    Resource("gpudevworkspaces", PLATFORM, "v1alpha1", is_namespaced=False),
    Resource("devusers", PLATFORM, "v1alpha1", is_namespaced=False),
    Resource("workspaceflavors", PLATFORM, "v1alpha1", is_namespaced=False),
    Resource("spotpools", "gpu.platform.acme.io", "v1alpha1"),
    Resource("spotleases", "gpu.platform.acme.io", "v1alpha1"),
    PODS,
    EXEC,
    FORWARDED,
    Resource("pods", subresource="attach"),
    Resource("pods", subresource="ephemeralcontainers"),
    Resource("pods", subresource="eviction"),
    Resource("pods", subresource="log"),
    Resource("pods", subresource="proxy"),
    SECRETS,
    Resource("secrets", name="gpu-bastion-host-key"),
    Resource("secrets", name="gpu-bastion-user-authority"),
    Resource("configmaps"),
    Resource("configmaps", name="gpu-workspaces.account"),
    Resource("events"),
    Resource("persistentvolumeclaims"),
    Resource("resourcequotas"),
    Resource("limitranges"),
    Resource("services"),
    Resource("services", subresource="proxy"),
    Resource("serviceaccounts"),
    Resource("serviceaccounts", subresource="token"),
    NODES,
    Resource("nodes", is_namespaced=False, subresource="proxy"),
    Resource("namespaces", is_namespaced=False),
    Resource("persistentvolumes", is_namespaced=False),
    Resource("statefulsets", "apps"),
    Resource("deployments", "apps"),
    Resource("jobs", "batch"),
    Resource("leases", "coordination.k8s.io"),
    Resource("networkpolicies", "networking.k8s.io"),
    Resource("roles", RBAC),
    Resource("rolebindings", RBAC),
    Resource("clusterroles", RBAC, is_namespaced=False),
    Resource("clusterrolebindings", RBAC, is_namespaced=False),
    Resource("customresourcedefinitions", "apiextensions.k8s.io", is_namespaced=False),
    Resource(
        "validatingadmissionpolicies",
        "admissionregistration.k8s.io",
        is_namespaced=False,
    ),
    Resource("certificatesigningrequests", "certificates.k8s.io", is_namespaced=False),
]


def owner(namespace: str) -> str:
    """The service account that the bastion becomes in a namespace."""
    return f"system:serviceaccount:{namespace}:gpu-workspaces.owner"


@pytest.fixture
def account(cluster: Cluster, door: Door) -> Account:
    """Somebody who has the bastion's token."""
    return Account.of(cluster, "gpu-bastion", NAMESPACE)


def test_the_bastion_has_the_rights_that_are_written_down(
    cluster: Cluster,
    account: Account,
    alice: Workspaces,
    bob: Workspaces,
    constrained: bool,
) -> None:
    as_alice = impersonating(owner(alice.namespace))
    found: Object = {
        "bastion, in its namespace": rights(cluster, BASTION, NAMESPACE),
        "bastion, in a person's namespace": rights(cluster, BASTION, alice.namespace),
        "account of a person, in their namespace": rights(
            cluster, owner(alice.namespace), alice.namespace
        ),
        "account of a person, in another person's namespace": rights(
            cluster, owner(alice.namespace), bob.namespace
        ),
        "tried by the bastion, in its namespace": account.rights(RESOURCES, NAMESPACE),
        "tried by the bastion, in a person's namespace": account.rights(
            RESOURCES, alice.namespace
        ),
        "tried by the bastion as a person, in their namespace": account.rights(
            RESOURCES, alice.namespace, as_alice
        ),
        "tried by the bastion as a person, in another person's namespace": account.rights(
            RESOURCES, bob.namespace, as_alice
        ),
    }
    name = "constrained-impersonation" if constrained else "impersonation"
    golden = GOLDENS / f"rights-{name}.yaml"
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(yaml.safe_dump(found, sort_keys=True, width=100))
    assert found == yaml.safe_load(golden.read_text())


def test_whoever_has_the_bastions_token_has_no_rights_over_secrets_pods_and_nodes(
    cluster: Cluster, account: Account, alice: Workspaces
) -> None:
    as_alice = impersonating(owner(alice.namespace))
    # What it may do shows that the token is good.
    assert account.does("list", CLAIMS, alice.namespace, as_alice).status == 200
    (key,) = [one for one in RESOURCES if one.name == "gpu-bastion-host-key"]
    assert account.does("get", key, NAMESPACE).status == 200

    namespaces = [alice.namespace, SYSTEM, "kube-system", "default"]
    for headers in (None, as_alice):
        for resource in (SECRETS, EXEC, FORWARDED, NODES):
            for namespace in namespaces:
                for verb in resource.verbs():
                    answer = account.does(verb, resource, namespace, headers)
                    assert answer.is_refused, (verb, str(resource), namespace, answer)
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "mine"},
            "spec": {
                "serviceAccountName": "gpu-workspaces.owner",
                "containers": [{"name": "sh", "image": "busybox"}],
            },
        }
        for namespace in (NAMESPACE, *namespaces):
            path = f"/api/v1/namespaces/{namespace}/pods"
            created = account.ask("POST", path, headers, pod)
            assert created.is_refused, (namespace, created)
    # The Secret of the bastion itself is one of one name.
    for verb in ("list", "watch", "get", "update", "patch", "delete"):
        assert account.does(verb, SECRETS, NAMESPACE).is_refused, verb


def test_whoever_has_the_bastions_token_has_no_rights_as_anybody_but_owners(
    cluster: Cluster, account: Account, alice: Workspaces
) -> None:
    someone = owner(alice.namespace)
    path = CLAIMS.path("list", alice.namespace)
    assert account.ask("GET", path, impersonating(someone)).status == 200
    for user in (
        f"system:serviceaccount:{alice.namespace}:default",
        f"system:serviceaccount:{alice.namespace}:gpu-workspaces",
        f"system:serviceaccount:{alice.namespace}:gpu-workspaces.owner.",
        f"system:serviceaccount:{SYSTEM}:crossplane",
        "system:serviceaccount:kube-system:clusterrole-aggregation-controller",
        BASTION,
        alice.owner,
        "gpu-workspaces.owner",
        "admin",
        "kubernetes-admin",
        "system:admin",
        "system:anonymous",
        "system:kube-controller-manager",
        "system:node:node",
    ):
        answer = account.ask("GET", path, impersonating(user))
        assert answer.status == 403 and "impersonate" in answer.message, (user, answer)
    for header, value in (
        ("Impersonate-Group", "system:masters"),
        ("Impersonate-Group", "system:authenticated"),
        ("Impersonate-Uid", "0"),
        ("Impersonate-Extra-scopes", "view"),
    ):
        headers = {**impersonating(someone), header: value}
        answer = account.ask("GET", path, headers)
        assert answer.status == 403 and "impersonate" in answer.message, (
            header,
            answer,
        )
    # An account of that name where nobody has it has no rights there.
    elsewhere = impersonating(owner("kube-system"))
    for resource in (CLAIMS, PODS, SECRETS):
        assert account.does("list", resource, "kube-system", elsewhere).is_refused
        assert account.does("list", resource, alice.namespace, elsewhere).is_refused


def test_a_person_works_with_these_rights(
    alice: Workspaces, enter: Callable[..., Visitor]
) -> None:
    visitor = enter(alice)
    assert "cpu-small" in visitor.says("flavors")
    visitor.says("create", "work", "cpu-small", "--no-wait")
    assert "work" in visitor.says("list", "-o", "name")
    visitor.says("why", "work")
    visitor.says("cost", "--month")
    visitor.says("stop", "work", "--no-wait")
    assert "is deleted" in visitor.says("delete", "work", "--yes")
