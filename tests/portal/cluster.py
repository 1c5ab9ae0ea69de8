"""An API server with our kinds, without Crossplane: the tests write what Crossplane would."""

import json
import subprocess
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
CLAIMS = "gpudevworkspaceclaims.platform.acme.io"
# The same key for all: nobody logs in.
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAliceAliceAliceAliceAliceAliceAliceAliceAl"

Object = dict[str, Any]


@dataclass(frozen=True)
class Cluster:
    kubectl_program: str
    kubeconfig: Path
    audit: Path

    def kubectl(self, *words: str, stdin: str | None = None) -> str:
        ran = subprocess.run(
            [self.kubectl_program, f"--kubeconfig={self.kubeconfig}", *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"kubectl {' '.join(words)}: {ran.stderr}"
        return ran.stdout

    def apply(self, *documents: Object) -> None:
        text = yaml.safe_dump_all(documents)
        self.kubectl("apply", "--server-side", "-f", "-", stdin=text)

    def get(self, kind: str, namespace: str, name: str) -> Object:
        found: Object = json.loads(
            self.kubectl("get", kind, name, "-n", namespace, "-o", "json")
        )
        return found

    def status(self, namespace: str, name: str, status: Object) -> None:
        """Writes the status of a claim, as Crossplane does."""
        self.patch_status(CLAIMS, name, status, "-n", namespace)

    def collected(self, namespace: str, name: str) -> None:
        """Ends the deletion of a claim, as Kubernetes' garbage collector does when what belongs
        to it is gone."""
        metadata = self.get(CLAIMS, namespace, name)["metadata"]
        assert "deletionTimestamp" in metadata
        assert metadata["finalizers"] == ["foregroundDeletion"]
        patch = '{"metadata": {"finalizers": null}}'
        self.kubectl(
            *("patch", CLAIMS, name, "-n", namespace, "--type=merge", "-p", patch)
        )

    def patch_status(self, kind: str, name: str, status: Object, *where: str) -> None:
        self.kubectl(
            *("patch", kind, name, *where, "--subresource=status", "--type=merge"),
            *("-p", json.dumps({"status": status})),
        )

    def offer(self, status: Object) -> None:
        """The flavors of the platform's examples. Crossplane writes their status; here, that of
        `t4` is given."""
        text = (ROOT / "examples/platform/flavors.yaml").read_text()
        self.apply(*yaml.safe_load_all(text))
        self.patch_status("workspaceflavors", "t4", status)

    def requests(self) -> list[Object]:
        """What the API server recorded."""
        lines = self.audit.read_text().splitlines()
        return [json.loads(line) for line in lines]

    def recorded(self, request: str) -> list[Object]:
        """What the API server recorded of a request that writes, without what it only tried."""
        records = self.requests()
        return [
            one
            for one in records
            if one["auditID"] == request and "dryRun" not in one["requestURI"]
        ]

    def person(self, name: str, user: str) -> None:
        """A person with a DevUser, and what Crossplane makes of it."""
        self.people({name: user})

    def people(self, users: dict[str, str]) -> None:
        """People with a DevUser each, by the DevUser's name."""
        self.apply(*chain.from_iterable(map(of_person, users, users.values())))
        statuses = [
            {**dev_user(name), "status": {"namespace": f"dev-{name}"}} for name in users
        ]
        self.kubectl(
            *("apply", "--server-side", "--subresource=status", "-f", "-"),
            stdin=yaml.safe_dump_all(statuses),
        )


def dev_user(name: str) -> Object:
    return {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "DevUser",
        "metadata": {"name": name},
    }


def of_person(name: str, user: str) -> list[Object]:
    """A DevUser, and what Crossplane makes of it."""
    namespace = f"dev-{name}"
    owner = {"name": "gpu-workspaces.owner", "namespace": namespace}
    return [
        {**dev_user(name), "spec": {"subjects": [{"kind": "User", "name": user}]}},
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": namespace,
                "labels": {"platform.acme.io/owner": name},
            },
        },
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": owner},
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": owner,
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "gpu-workspaces-owner-by-bastion",
            },
            "subjects": [{"kind": "ServiceAccount", **owner}],
        },
    ]


def definitions() -> list[Object]:
    """The CRDs that Crossplane makes of our definitions: of claims, users and flavors."""
    found = []
    kinds = {"gpudevworkspaces": True, "devusers": False, "workspaceflavors": False}
    for name, is_claim in kinds.items():
        path = ROOT / f"xrds/{name}.platform.acme.io.yaml"
        spec = yaml.safe_load(path.read_text())["spec"]
        names = spec["claimNames"] if is_claim else spec["names"]
        names = {**names, "singular": names["kind"].lower()}
        (version,) = spec["versions"]
        schema = version["schema"]["openAPIV3Schema"]
        # Crossplane adds fields of its own. Rules of ours name the selectors.
        anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        spec_schema = schema["properties"]["spec"]["properties"]
        for field in (
            "compositionSelector",
            "compositionRevisionSelector",
            "resourceRef",
        ):
            spec_schema[field] = anything
        conditions = {"type": "array", "items": anything}
        schema["properties"]["status"]["properties"]["conditions"] = conditions
        found.append(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{names['plural']}.{spec['group']}"},
                "spec": {
                    "group": spec["group"],
                    "names": names,
                    "scope": "Namespaced" if is_claim else "Cluster",
                    "versions": [
                        {
                            "name": version["name"],
                            "served": True,
                            "storage": True,
                            "schema": {"openAPIV3Schema": schema},
                            "subresources": {"status": {}},
                        }
                    ],
                },
            }
        )
    return found
