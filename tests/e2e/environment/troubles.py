"""What Crossplane and the providers report of a namespace's composed resources."""

from collections.abc import Iterator

import urllib3

from .cluster import Cluster
from .objects import Object, Refused, kind_of


def troubles(cluster: Cluster, namespace: str) -> str:
    """The conditions that are not True, of the resources that the namespace's composites
    compose, one in each line."""
    try:
        lines = [
            line
            for composite in _composites(cluster, namespace)
            for resource in _composed(cluster, composite, namespace)
            for line in _conditions(resource)
        ]
    except (Refused, urllib3.exceptions.HTTPError) as error:
        return f"the API server does not tell: {error}"
    return "\n".join(lines) or "none"


def _composites(cluster: Cluster, namespace: str) -> Iterator[Object]:
    for one in cluster.all(cluster.composites, namespace):
        # A composite without a namespace names the namespace of its claim.
        claim = one["spec"].get("claimRef", one["metadata"])
        if claim.get("namespace") == namespace:
            yield one


def _composed(cluster: Cluster, composite: Object, namespace: str) -> Iterator[Object]:
    spec = composite["spec"]
    references = spec.get("crossplane", spec).get("resourceRefs", [])
    for one in references:
        where = one.get("namespace", namespace)
        found = cluster.get(kind_of(one), one["name"], where)
        if found is not None:
            yield found


def _conditions(resource: Object) -> Iterator[str]:
    for one in resource.get("status", {}).get("conditions", []):
        if one["status"] != "True":
            name = f"{resource['kind']} {resource['metadata']['name']}"
            said = f"{one.get('reason', '')} {one.get('message', '')}".strip()
            yield f"{name}: {one['type']}={one['status']} {said}"
