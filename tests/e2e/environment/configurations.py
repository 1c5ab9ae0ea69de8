"""Provider configurations of one namespace, and the Secret with its credentials."""

from typing import Any

from .cluster import Cluster
from .emulator import Emulator
from .pools import API, CLUSTER_CONFIGURATIONS

Reference = dict[str, str]


class Configurations:
    """The ProviderConfigs of a namespace, and its ClusterProviderConfig."""

    def __init__(self, cluster: Cluster, namespace: str, emulator: Emulator) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._emulator = emulator
        self._of_cluster: list[str] = []

    def secret(self, text: str, key: str = "credentials") -> None:
        """Applies the namespace's Secret `aws`."""
        self._cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "aws", "namespace": self._namespace},
                "stringData": {key: text},
            }
        )

    def reference(self, key: str = "credentials", namespace: str = "") -> Reference:
        return {"namespace": namespace or self._namespace, "name": "aws", "key": key}

    def apply(self, name: str, credentials: dict[str, Any], **spec: Any) -> Reference:
        """Applies a ProviderConfig. Returns a pool's reference to it."""
        return self._apply("ProviderConfig", name, credentials, spec)

    def apply_to_cluster(self, credentials: dict[str, Any], **spec: Any) -> Reference:
        """Applies a ClusterProviderConfig. The namespace makes its name unique."""
        name = f"of-{self._namespace}"
        self._of_cluster.append(name)
        return self._apply("ClusterProviderConfig", name, credentials, spec)

    def keys(self) -> dict[str, Any]:
        """The credentials field that refers to the Secret."""
        return {"source": "Secret", "secretRef": self.reference()}

    def remove(self) -> None:
        for name in self._of_cluster:
            self._cluster.kubectl(
                "delete", CLUSTER_CONFIGURATIONS, name, "--wait=false"
            )

    def _apply(
        self, kind: str, name: str, credentials: dict[str, Any], spec: dict[str, Any]
    ) -> Reference:
        endpoint = {"url": {"type": "Static", "static": self._emulator.url}}
        self._cluster.apply(
            {
                "apiVersion": API,
                "kind": kind,
                "metadata": {"name": name, "namespace": self._namespace},
                "spec": {"credentials": credentials, "endpoint": endpoint, **spec},
            }
        )
        return {"kind": kind, "name": name}
