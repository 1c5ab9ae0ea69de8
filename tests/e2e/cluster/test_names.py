"""No claim takes an object of another person, whatever the claim's name is."""

import json

import pytest

from cluster.conftest import deleted
from cluster.workspaces import HOME, Workspaces
from environment.cluster import Cluster
from environment.objects import Object, Refused
from environment.waiting import until

# The namespace's own account, the objects of its DevUser, and what teams have.
CLAIMS = [
    "default",
    "default-deny",
    "owner",
    "quota",
    "container-defaults",
    "kubernetes",
    "ci-deployer",
]
ROLE = "arn:aws:iam::123456789012:role/deployer"
LABEL = "platform.acme.io/cluster-workspace"


def _object(kind: str, name: str, version: str = "v1", **fields: object) -> Object:
    metadata = {"name": name, "annotations": {"eks.amazonaws.com/role-arn": ROLE}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def _objects(claim: str) -> list[Object]:
    """An object of each kind that a workspace has, with the names of earlier versions."""
    selector = {"matchLabels": {"app": "training"}}
    pod = {
        "metadata": {"labels": {"app": "training"}},
        "spec": {"containers": [{"name": "main", "image": "registry.invalid/none"}]},
    }
    volume = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "none",
    }
    rbac, role = "rbac.authorization.k8s.io", {"kind": "Role", "name": claim}
    return [
        _object("ServiceAccount", claim),
        _object("Role", claim, f"{rbac}/v1", rules=[]),
        _object("RoleBinding", claim, f"{rbac}/v1", roleRef={"apiGroup": rbac, **role}),
        _object(
            "NetworkPolicy",
            claim,
            "networking.k8s.io/v1",
            spec={"podSelector": {}, "policyTypes": ["Ingress"]},
        ),
        _object("Service", claim, spec={"clusterIP": "None", "selector": {"app": "a"}}),
        _object(
            "StatefulSet",
            claim,
            "apps/v1",
            spec={
                "replicas": 0,
                "serviceName": claim,
                "selector": selector,
                "template": pod,
            },
        ),
        _object("PersistentVolumeClaim", f"home-{claim}-0", spec=volume),
        *[
            _object("ConfigMap", f"{claim}{end}", data={"a": "b"})
            for end in ("", "-files", "-keys")
        ],
        *[
            _object("Secret", f"{claim}{end}", stringData={"a": "b"})
            for end in ("", "-host-keys")
        ],
        _object("Lease", f"{claim}-0-activity", "coordination.k8s.io/v1", spec={}),
    ]


def _create(cluster: Cluster, namespace: str, document: Object) -> None:
    """Creates an object unless the namespace has one with the name."""
    try:
        cluster.kubectl(
            *("create", "-n", namespace, "-f", "-"), stdin=json.dumps(document)
        )
    except Refused as refused:
        assert "AlreadyExists" in str(refused), refused


def _all_seen(cluster: Cluster, user: Workspaces) -> bool:
    """Whether the controller of StatefulSets has written the status of each."""
    sets = cluster.all("statefulsets", user.namespace)
    return all(one.get("status", {}).get("observedGeneration") for one in sets)


def _bytes(cluster: Cluster, namespace: str, documents: list[Object]) -> dict[str, str]:
    """Each object as the API server has it, by kind and name."""
    found = {}
    for document in documents:
        kind, name = document["kind"].lower(), document["metadata"]["name"]
        found[f"{kind}/{name}"] = cluster.kubectl(
            *("get", kind, name, "-n", namespace, "-o", "json", "--show-managed-fields")
        )
    return found


def test_no_claim_takes_over_an_object_that_exists(
    cluster: Cluster, alice: Workspaces
) -> None:
    documents = [one for claim in CLAIMS for one in _objects(claim)]
    for document in documents:
        _create(cluster, alice.namespace, document)
    until("the controller to see the StatefulSets", lambda: _all_seen(cluster, alice))
    before = _bytes(cluster, alice.namespace, documents)
    for claim in CLAIMS:
        alice.claim(claim, home=HOME)
    for claim in CLAIMS:
        (pod,) = until(f"the pod of {claim}", lambda claim=claim: alice.pods(claim))
        account = pod["spec"]["serviceAccountName"]
        assert account.startswith(f"gpuws-{claim}-"), account
    cluster.delete_claims(alice.namespace)
    until("the pods to end", lambda: not any(alice.pods(claim) for claim in CLAIMS))
    assert _bytes(cluster, alice.namespace, documents) == before


def test_a_claim_waits_until_its_name_is_free(
    cluster: Cluster, alice: Workspaces
) -> None:
    service = _object("Service", "gpuws-vision", spec={"clusterIP": "None"})
    _create(cluster, alice.namespace, service)
    before = _bytes(cluster, alice.namespace, [service])
    alice.claim("vision")
    alice.condition("vision", "ConfigResolved", "False", "Service gpuws-vision")
    assert cluster.all("statefulsets", alice.namespace) == []
    assert _bytes(cluster, alice.namespace, [service]) == before
    cluster.kubectl("delete", "service", "gpuws-vision", "-n", alice.namespace)
    alice.ready("vision", seconds=180)


def test_an_owner_changes_the_size_of_a_home_and_not_its_owner(
    cluster: Cluster, alice: Workspaces
) -> None:
    alice.claim("vision", home=HOME)
    (home,) = until("the home", lambda: alice.homes("vision"))
    name, metadata = home["metadata"]["name"], home["metadata"]
    user = cluster.get("devusers", alice.owner, "default") or {}
    marks = metadata["annotations"]
    assert marks["platform.acme.io/owner-uid"] == user["metadata"]["uid"]

    def patch(metadata: Object) -> str:
        return cluster.kubectl(
            *("patch", "pvc", name, "-n", alice.namespace, f"--as={alice.owner}"),
            *("--type=merge", "--dry-run=server", "-p"),
            json.dumps({"metadata": metadata}),
        )

    for change in (
        {"labels": {"platform.acme.io/owner": "bob"}},
        {"labels": {"platform.acme.io/owner": None}},
        {"labels": {LABEL: None}},
        {"annotations": {"platform.acme.io/owner-uid": None}},
    ):
        with pytest.raises(Refused, match="the platform's"):
            patch(change)
    assert "patched" in patch({"labels": {"team": "vision"}})


def test_a_user_takes_no_namespace_that_exists(
    cluster: Cluster, alice: Workspaces
) -> None:
    name = f"{alice.owner}x"
    namespace = f"dev-{name}"
    cluster.create_namespace(namespace, owner=name)
    document = {"kind": "Namespace", "metadata": {"name": namespace}}
    before = _bytes(cluster, "", [document])
    cluster.apply(
        {
            "apiVersion": "platform.acme.io/v1alpha1",
            "kind": "DevUser",
            "metadata": {"name": name},
            "spec": {},
        }
    )

    def refused() -> bool:
        user = cluster.get("devusers", name, "default") or {}
        message = user.get("status", {}).get("message", "")
        return f"Namespace {namespace} exists" in message

    until("the user to be refused", refused, seconds=30)
    until("the user to be deleted", lambda: deleted(cluster, name), seconds=60)
    assert _bytes(cluster, "", [document]) == before
    cluster.delete_namespace(namespace)


def test_a_group_of_kubernetes_gets_nobodys_namespace(
    cluster: Cluster, alice: Workspaces
) -> None:
    everybody = [{"kind": "Group", "name": "system:authenticated"}]
    change = json.dumps({"spec": {"subjects": everybody}})
    with pytest.raises(Refused, match="Kubernetes' own"):
        cluster.kubectl("patch", "devuser", alice.owner, "--type=merge", "-p", change)
