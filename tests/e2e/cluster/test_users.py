"""Two users, who have no access to each other's workspaces."""

import json
import uuid

import pytest

from cluster.conftest import NewUser
from cluster.workspaces import HOME, Workspaces
from environment.cluster import Cluster
from environment.objects import Refused
from environment.variants import composition
from environment.waiting import until

CONNECT = """
import socket, sys
for host in sys.argv[1:]:
    try:
        socket.create_connection((host, 22), timeout=3).close()
        print(host, "reached")
    except OSError as error:
        print(host, "refused", type(error).__name__)
"""
# Pairs of verb and resource that users have in their own namespace, and in no other.
OWN = [
    *[
        (verb, "gpudevworkspaceclaims.platform.acme.io")
        for verb in ("get", "list", "watch", "create", "update", "patch", "delete")
    ],
    *[(verb, "pods") for verb in ("get", "list", "watch")],
    ("get", "pods/log"),
    ("create", "pods/portforward"),
    *[
        (verb, "persistentvolumeclaims")
        for verb in ("get", "list", "watch", "patch", "delete")
    ],
    *[(verb, "services") for verb in ("get", "list", "watch")],
    *[(verb, "configmaps") for verb in ("get", "list", "watch")],
    *[(verb, "events") for verb in ("get", "list", "watch")],
    *[(verb, "statefulsets.apps") for verb in ("get", "list", "watch")],
    *[(verb, "workloads.kueue.x-k8s.io") for verb in ("get", "list", "watch")],
]
# Pairs that users have in no namespace, not even in their own.
NEVER = [
    *[(verb, "secrets") for verb in
      ("get", "list", "watch", "create", "update", "patch", "delete")],
    *[(verb, "pods") for verb in ("create", "update", "patch", "delete")],
    *[(verb, resource) for verb in ("get", "create")
      for resource in ("pods/exec", "pods/attach", "pods/ephemeralcontainers")],
    *[(verb, "statefulsets.apps") for verb in ("create", "update", "patch", "delete")],
    *[(verb, "networkpolicies.networking.k8s.io") for verb in
      ("create", "update", "patch", "delete")],
    *[(verb, resource) for verb in ("create", "update", "patch", "delete")
      for resource in ("roles.rbac.authorization.k8s.io",
                       "rolebindings.rbac.authorization.k8s.io",
                       "serviceaccounts", "resourcequotas", "limitranges",
                       "localqueues.kueue.x-k8s.io")],
    ("create", "serviceaccounts/token"),
    ("impersonate", "users"),
]  # fmt: skip
CLUSTER_WIDE = [
    *[(verb, resource) for verb in ("create", "update", "patch", "delete")
      for resource in ("devusers.platform.acme.io",
                       "workspaceflavors.platform.acme.io",
                       "gpudevworkspaces.platform.acme.io",
                       "namespaces",
                       "compositions.apiextensions.crossplane.io",
                       "environmentconfigs.apiextensions.crossplane.io")],
    ("get", "nodes"),
]  # fmt: skip


def may(
    cluster: Cluster, user: Workspaces, verb: str, resource: str, *where: str
) -> bool:
    kind, _, part = resource.partition("/")
    asked = [kind, f"--subresource={part}"] if part else [kind]
    return cluster.may(user.owner, verb, *asked, *where)


def test_an_owner_has_their_namespace_and_nobody_elses(
    cluster: Cluster, alice: Workspaces, bob: Workspaces
) -> None:
    at_home, abroad = ("-n", alice.namespace), ("-n", bob.namespace)
    wrong = [
        *[
            ("may not at home", *one)
            for one in OWN
            if not may(cluster, alice, *one, *at_home)
        ],
        *[
            ("may abroad", *one)
            for one in OWN + NEVER
            if may(cluster, alice, *one, *abroad)
        ],
        *[
            ("may at home", *one)
            for one in NEVER
            if may(cluster, alice, *one, *at_home)
        ],
        *[("may", *one) for one in CLUSTER_WIDE if may(cluster, alice, *one)],
    ]
    assert wrong == []


def test_neither_reaches_the_others_pod_or_service(
    alice: Workspaces, bob: Workspaces
) -> None:
    alice.claim("vision", distributed={"nodes": 2})
    bob.claim("training")
    ours = alice.ready("vision", seconds=180)
    theirs = bob.ready("training", seconds=120)
    bobs = theirs["nodes"][0]
    mate = ours["nodes"][1]
    seen = alice.run(
        "vision",
        *("python", "-", bobs["ip"], bobs["host"], mate["ip"], mate["host"]),
        stdin=CONNECT,
    ).splitlines()
    assert [line.split()[:2] for line in seen] == [
        [bobs["ip"], "refused"],
        [bobs["host"], "refused"],
        [mate["ip"], "reached"],
        [mate["host"], "reached"],
    ]
    # A claim without networks does not let this machine in.
    bob.change("training", ssh={"allowedCidrs": None})
    until(
        "the network to be shut",
        lambda: bob.ssh("training", "true").returncode == 255,
        seconds=30,
    )


def test_a_claim_for_somebody_else_is_refused(
    cluster: Cluster, alice: Workspaces, bob: Workspaces
) -> None:
    """The policy binds owners to namespaces."""
    binding = {"ownerBinding": {"namespaceLabel": "platform.acme.io/owner"}}
    bound = composition(cluster, "bound", binding)
    alice.claim("stolen", owner=bob.owner, composition=bound)
    alice.condition("stolen", "ConfigResolved", "False", f"must be {alice.owner}")
    assert alice.pods("stolen") == []


def test_a_user_with_homes_is_not_deleted(cluster: Cluster, alice: Workspaces) -> None:
    alice.claim("vision", home=HOME)
    alice.ready("vision", seconds=120)

    def protected() -> bool:
        user = cluster.get("devusers", alice.owner, "default") or {}
        return bool(user.get("status", {}).get("protected"))

    until("the user to be protected", protected, seconds=30)
    with pytest.raises(Refused, match="home-gpuws-vision-0"):
        cluster.kubectl("delete", "devuser", alice.owner, "--timeout=20s")
    alice.delete("vision")
    (home,) = alice.homes("vision")

    def names_the_home() -> bool:
        try:
            cluster.kubectl("delete", "devuser", alice.owner, "--dry-run=server")
        except Refused as refused:
            return home["metadata"]["name"] in str(refused)
        raise AssertionError("a user with a home may be deleted")

    until("the refusal to name the home", names_the_home, seconds=90)
    assert alice.homes("vision")[0]["status"]["phase"] == "Bound"


def test_a_further_key_reaches_running_workspaces(
    cluster: Cluster, alice: Workspaces, bob: Workspaces
) -> None:
    alice.claim("vision")
    alice.ready("vision", seconds=120)
    assert alice.ssh("vision", "true", key=bob.key).returncode != 0
    keys = {"spec": {"publicKeys": [alice.key.public, bob.key.public]}}
    cluster.kubectl(
        "patch", "devuser", alice.owner, "--type=merge", "-p", json.dumps(keys)
    )
    # The commit makes Crossplane call the function at once. Without it, the next
    # periodic call would add the DevUser's new key.
    alice.change("vision", ssh={"publicKeys": [bob.key.public]})
    until(
        "the further key to open",
        lambda: alice.ssh("vision", "true", key=bob.key).returncode == 0,
        seconds=120,
    )


def test_a_ready_user_has_as_many_claims_as_the_quota_allows(
    new_user: NewUser, cluster: Cluster
) -> None:
    count = "count/gpudevworkspaceclaims.platform.acme.io"
    user = new_user(quota={count: "1"})
    # Ready means that Kubernetes counts claims: the first one is not refused.
    user.claim("first")
    with pytest.raises(Refused, match=f"exceeded quota.*{count}=1"):
        user.claim("second")
    quota = cluster.get("resourcequotas", "quota", user.namespace)
    assert quota is not None
    hard, used = quota["spec"]["hard"], quota["status"]["used"]
    assert (hard[count], used[count]) == ("1", "1")
    # The person's entry replaces that of the policy, and the others stay.
    assert {"requests.ephemeral-storage", "limits.ephemeral-storage", "pods"} <= {*hard}


def test_a_user_is_ready_once_kubernetes_counts_a_kind_that_was_just_defined(
    new_user: NewUser, cluster: Cluster
) -> None:
    plural = f"parcels{uuid.uuid4().hex[:6]}"
    definition = f"{plural}.example.com"
    cluster.apply(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": definition},
            "spec": {
                "group": "example.com",
                "names": {"plural": plural, "kind": plural.capitalize()},
                "scope": "Namespaced",
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": {"type": "object"}},
                    }
                ],
            },
        }
    )
    try:
        user = new_user(quota={f"count/{definition}": "1"})
        parcel = {
            "apiVersion": "example.com/v1",
            "kind": plural.capitalize(),
            "metadata": {"name": "first", "namespace": user.namespace},
        }
        cluster.apply(parcel)
        parcel["metadata"]["name"] = "second"
        with pytest.raises(Refused, match="exceeded quota"):
            cluster.apply(parcel)
    finally:
        cluster.kubectl("delete", "crd", definition, "--wait=false")
