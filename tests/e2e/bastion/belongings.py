"""What a person has, and every question about it that the bastion's protocol has."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bastion.door import Visitor
from cluster.workspaces import Workspaces
from environment.objects import Object
from environment.platform import claim

ROOT = Path(__file__).parents[3]
# A UID that no object has. Who may delete the object is told so by the API server.
NO_UID = "00000000-0000-0000-0000-000000000000"
VERBS = {"Get", "List", "Create", "Patch", "Delete", "Changed", "May", "Time"}
# Kinds of the person's namespace, with what manifests call them, and the menu.
KINDS = {
    "Claim": "GpuDevWorkspaceClaim",
    "ConfigMap": "ConfigMap",
    "Event": "Event",
    "Home": "PersistentVolumeClaim",
    "Pod": "Pod",
    "SpotPool": "SpotPool",
}
MENU = "Flavor"
# What the API server answers to a person about their own objects.
ANSWERED = {
    *(f"Get {kind}" for kind in ("Claim", "ConfigMap", "Home")),
    *(f"List {kind}" for kind in ("Claim", "Event", "Home", "Pod")),
    *(f"Changed {kind}" for kind in ("Claim", "Home")),
    *(f"Delete {kind}" for kind in ("Claim", "Home")),
    "Create Claim",
    "Patch Claim",
}


@dataclass(frozen=True)
class Person:
    """Somebody with a workspace that has a home."""

    user: Workspaces
    visitor: Visitor
    workspace: str
    claim: Object
    # The names of the workspace's pod, of its home, and of an event of the namespace.
    names: dict[str, str]
    address: str

    @property
    def namespace(self) -> str:
        return self.user.namespace

    def secrets(self) -> list[str]:
        """What no answer to somebody else has."""
        (key,) = self.claim["status"]["hostKeys"]
        return [self.claim["metadata"]["uid"], self.address, key.split()[1]]


def settled(user: Workspaces, visitor: Visitor, workspace: str) -> Person:
    """A person whose workspace is Ready."""
    (pod,) = user.pods(workspace)
    (home,) = user.homes(workspace)
    event = user.cluster.all("events", user.namespace)[0]
    names = {
        "Claim": workspace,
        "ConfigMap": "gpu-workspaces.account",
        "Event": event["metadata"]["name"],
        "Home": home["metadata"]["name"],
        "Pod": pod["metadata"]["name"],
        "SpotPool": workspace,
    }
    return Person(
        user=user,
        visitor=visitor,
        workspace=workspace,
        claim=user.workspace(workspace),
        names=names,
        address=pod["status"]["podIP"],
    )


def questions(person: Person, effect: str) -> Iterator[tuple[str, Any]]:
    """Every operation on every kind, about the objects of a person."""
    namespace = person.namespace
    for kind, name in person.names.items():
        of = {"kind": kind, "namespace": namespace, "name": name}
        change = {"metadata": {"annotations": {"example.org/crossed": "yes"}}}
        yield f"Get {kind}", {"Get": of}
        yield f"List {kind}", {"List": [kind, {"Namespace": namespace}]}
        yield f"Changed {kind}", {"Changed": [of, "", {"secs": 1, "nanos": 0}]}
        yield f"Patch {kind}", {"Patch": [of, change, effect]}
        yield f"Delete {kind}", {"Delete": [of, NO_UID]}
        yield f"Create {kind}", {"Create": [_manifest(person, kind), effect]}
        for verb in ("get", "list", "watch", "create", "patch", "delete"):
            yield f"May {verb} {kind}", {"May": [verb, kind, namespace]}


def questions_without_borders(person: Person, other: Person) -> Iterator[Any]:
    """Questions about another person's claim that look like some about one's own, and
    questions about all namespaces."""
    there = f"{other.namespace}/gpudevworkspaceclaims/{other.workspace}"
    for name in (
        f"../../{there}",
        f"..%2f..%2f{other.namespace}%2fgpudevworkspaceclaims%2f{other.workspace}",
        f"../../../namespaces/{there}",
        f"{person.workspace}/../../../{there}",
        f"{person.workspace}?x=/{there}",
        f"{person.workspace}#",
        "..",
        "",
    ):
        own = {"kind": "Claim", "namespace": person.namespace, "name": name}
        yield {"Get": own}
        yield {"Changed": [own, "", {"secs": 1, "nanos": 0}]}
        yield {"Delete": [own, other.claim["metadata"]["uid"]]}
    for namespace in ("", "*", f"{person.namespace}/../{other.namespace}"):
        yield {"List": ["Claim", {"Namespace": namespace}]}
    for kind in KINDS:
        yield {"List": [kind, "Cluster"]}


def variants_of(rust: str, enum: str) -> set[str]:
    """The names of an enum's variants in a file of Rust."""
    text = (ROOT / rust).read_text()
    (body,) = re.findall(rf"pub enum {enum} \{{\n(.*?)\n\}}", text, re.DOTALL)
    return set(re.findall(r"^    ([A-Z]\w*)", body, re.MULTILINE))


def _manifest(person: Person, kind: str) -> Object:
    if kind == "Claim":
        owned = {"owner": person.user.owner, "placement": "Cluster"}
        return claim(person.namespace, "crossed", {**owned, "flavor": "cpu-small"})
    return {
        "apiVersion": "v1",
        "kind": KINDS[kind],
        "metadata": {"name": "crossed", "namespace": person.namespace},
    }
