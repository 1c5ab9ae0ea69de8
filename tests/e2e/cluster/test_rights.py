"""The rights of each account, as the API server lists them."""

import json
import os
import re
from pathlib import Path

import yaml

from cluster.workspaces import Workspaces
from environment.cluster import SYSTEM, Cluster
from environment.objects import Object

GOLDEN = Path(__file__).parent / "goldens/rights.yaml"
# Every account may ask about itself.
ABOUT_ITSELF = ("authentication.k8s.io", "authorization.k8s.io")


def account_of(pod: Object) -> str:
    namespace = pod["metadata"]["namespace"]
    return f"system:serviceaccount:{namespace}:{pod['spec']['serviceAccountName']}"


def groups_of(user: str) -> list[str]:
    if not user.startswith("system:serviceaccount:"):
        return ["system:authenticated"]
    namespace = user.split(":")[2]
    accounts = "system:serviceaccounts"
    return ["system:authenticated", accounts, f"{accounts}:{namespace}"]


def rights(cluster: Cluster, user: str, namespace: str) -> dict[str, str]:
    """The verbs by resource: `group/resource [names]`."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    said = cluster.kubectl(
        *("create", "-f", "-", "-o", "json", "--validate=false", f"--as={user}"),
        *(f"--as-group={group}" for group in groups_of(user)),
        stdin=json.dumps(review),
    )
    status = json.loads(said)["status"]
    assert not status["incomplete"], status
    found: dict[str, set[str]] = {}
    for rule in status["resourceRules"]:
        names = rule.get("resourceNames", [])
        for group in rule.get("apiGroups", []):
            if group in ABOUT_ITSELF:
                continue
            for resource in rule.get("resources", []):
                key = f"{group}/{resource}".lstrip("/")
                key += f" [{', '.join(sorted(map(stable, names)))}]" if names else ""
                found.setdefault(key, set()).update(rule["verbs"])
    return {key: " ".join(sorted(verbs)) for key, verbs in sorted(found.items())}


def stable(name: str) -> str:
    """A name without the hash of its workspace."""
    return re.sub(r"-[0-9a-f]{8}$", "-HASH", name)


def test_each_account_has_the_rights_that_are_written_down(
    cluster: Cluster, alice: Workspaces
) -> None:
    alice.claim("vision")
    alice.ready("vision", seconds=180)
    (pod,) = alice.pods("vision")
    (function,) = cluster.pods("function=acme-function-gpu-workspace")
    (provider,) = cluster.pods("provider=acme-provider-gpu-spot")
    (crossplane,) = cluster.all("pods", SYSTEM, "app=crossplane")
    found = {
        "owner in their namespace": rights(cluster, alice.owner, alice.namespace),
        "owner in another namespace": rights(cluster, alice.owner, SYSTEM),
        "pods of a workspace and their agent": rights(
            cluster, account_of(pod), alice.namespace
        ),
        "function": rights(cluster, account_of(function), alice.namespace),
        "provider": rights(cluster, account_of(provider), alice.namespace),
        "Crossplane": rights(cluster, account_of(crossplane), alice.namespace),
    }
    if os.environ.get("UPDATE_GOLDENS"):
        GOLDEN.write_text(yaml.safe_dump(found, sort_keys=True, width=100))
    assert found == yaml.safe_load(GOLDEN.read_text())
