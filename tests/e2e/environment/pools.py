"""Pools without a claim, with a platform team's actions on managed resources."""

import json
from typing import Any

from .cluster import SYSTEM, Cluster, condition, is_ready
from .objects import Object, Refused
from .waiting import until

API = "gpu.platform.acme.io/v1alpha1"
# The names include the group, because other providers have kinds of the same name.
CONFIGURATIONS = "providerconfigs.gpu.platform.acme.io"
CLUSTER_CONFIGURATIONS = "clusterproviderconfigs.gpu.platform.acme.io"
USAGES = "providerconfigusages.gpu.platform.acme.io"
PROVIDER = "acme-provider-gpu-spot"
PODS = f"provider={PROVIDER}"
PORT = 8080
# The ConfigMap and the Secret by which the provider recognises its own.
IDENTITY = "provider-gpu-spot-identity"
# The annotation with a pool's or a lease's own identity.
OWN_IDENTITY = "gpu.platform.acme.io/identity"


class Pools:
    """The pools of one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def apply(
        self,
        name: str,
        annotations: dict[str, str] | None = None,
        type_: str = "g4dn.xlarge",
        parameters: dict[str, Any] | None = None,
        **spec: Any,
    ) -> None:
        """Applies a pool of one instance, with further parameters and spec fields."""
        all_parameters = {
            "region": "us-east-1",
            "size": {"minimum": 1, "maximum": 1},
            "capacityType": "Spot",
            "instanceTypes": [type_],
            "image": {"id": "ami-00000000000c0de01"},
            **(parameters or {}),
        }
        self.cluster.apply(
            {
                "apiVersion": API,
                "kind": "SpotPool",
                "metadata": {
                    "name": name,
                    "namespace": self.namespace,
                    "annotations": annotations or {},
                },
                "spec": {"forProvider": all_parameters, **spec},
            }
        )

    def get(self, name: str) -> Object | None:
        return self.cluster.get("spotpool", name, self.namespace)

    def ready(self, name: str, seconds: float = 60) -> Object:
        """The pool once it is Ready."""

        def look() -> Object | None:
            found = self.get(name)
            return found if is_ready(found) else None

        return until(f"pool {name} to be Ready", look, seconds)

    def says(
        self, name: str, type_: str, status: str, word: str = "", seconds: float = 60
    ) -> Object:
        """The pool once its condition has the status, and the word in its text."""

        def look() -> Object | None:
            found = self.get(name)
            seen = condition(found, type_)
            text = f"{seen.get('reason')} {seen.get('message')}"
            return found if seen.get("status") == status and word in text else None

        return until(f"pool {name}: {type_}={status} with {word!r}", look, seconds)

    def annotate(self, name: str, *annotations: str) -> None:
        """Sets annotations as `kubectl annotate --overwrite` takes them: `name=value`, or
        `name-` for one that shall go."""
        changed = dict(map(_setting, annotations))
        self._merge(name, {"metadata": {"annotations": changed}})

    def look_again(self, name: str, token: str) -> Object:
        """The pool after the provider looked at EC2 on request."""
        request = f"crossplane.io/reconcile-requested-at={token}"
        self.annotate(name, request)

        def look() -> Object | None:
            found = self.get(name)
            assert found, f"pool {name} is gone"
            last = found.get("status", {}).get("lastHandledReconcileAt")
            return found if last == token else None

        return until(f"the provider to look at {name} again ({token})", look)

    def abandon(self, name: str) -> None:
        """Deletes a pool, and a person removes the finalizer. The provider does not add it to
        a paused pool. The instances stay."""
        self.annotate(name, "crossplane.io/paused=true")
        self.says(name, "Synced", "False", "ReconcilePaused")
        self._merge(name, {"metadata": {"finalizers": None}})
        self.delete(name)

    def restore(self, backup: Object, name: str = "") -> None:
        """Creates a pool as it was, without the API server's own fields, under its name or
        another one."""
        before = backup["metadata"]
        kept = ("annotations", "finalizers", "labels", "namespace", "name")
        metadata = {key: before[key] for key in kept if key in before}
        document = {**backup, "metadata": {**metadata, "name": name or before["name"]}}
        del document["status"]
        self.cluster.kubectl("create", "-f", "-", stdin=json.dumps(document))

    def patch(self, name: str, spec: dict[str, Any]) -> None:
        self._merge(name, {"spec": spec})

    def delete(self, name: str, wait: bool = True) -> None:
        if wait:
            self.cluster.delete("spotpool", name, self.namespace, 60)
        else:
            self.cluster.objects.delete("spotpool", name, self.namespace)

    def _merge(self, name: str, patch: Object) -> None:
        self.cluster.objects.merge("spotpool", name, self.namespace, patch)


def identity(cluster: Cluster) -> str | None:
    """The identity of the control plane, which everything in EC2 has as a tag."""
    found = cluster.get("configmaps", IDENTITY, SYSTEM)
    data: dict[str, str] = (found or {}).get("data", {})
    return data.get("identity")


def operations(cluster: Cluster, path: str, pod: Object) -> str:
    """The answer of a package's pod at `/metrics`, `/readyz` or `/healthz`. The API server
    asks: a NetworkPolicy lets no client of this machine in."""
    name = pod["metadata"]["name"]
    proxy = f"/api/v1/namespaces/{SYSTEM}/pods/{name}:{PORT}/proxy{path}"
    return cluster.objects.text(proxy)


def answers(cluster: Cluster, path: str, pod: Object) -> bool:
    """Whether `/readyz` or `/healthz` answers `ok`."""
    try:
        return operations(cluster, path, pod) == "ok\n"
    except Refused:
        return False


def samples(text: str) -> dict[str, float]:
    """The values of Prometheus samples, by name and labels."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (l.rsplit(" ", 1) for l in lines)}


def _setting(text: str) -> tuple[str, str | None]:
    name, is_set, value = text.partition("=")
    return (name, value) if is_set else (name.removesuffix("-"), None)
