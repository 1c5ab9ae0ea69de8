"""The API server accepts all composed resources: no unknown field, no broken rule.

It checks them against the published schema of each kind, also of kinds whose provider
does not run here.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from environment.cluster import Cluster
from environment.rendering import EXAMPLES, render

# The kinds in a rendering that are no composed resources.
ASIDE = ("GpuDevWorkspace", "Result")
KEY = "crossplane.io/composition-resource-name"


@pytest.fixture(scope="module")
def foreign_kinds(cluster: Cluster) -> None:
    """Installs the kinds of providers that this suite does not install. The kinds
    remain, because the API server needs minutes to remove them, and no other suite uses
    the cluster."""
    names = []
    for path in os.environ["MIRRORED_KINDS"].split(":"):
        name = yaml.safe_load(Path(path).read_text())["metadata"]["name"]
        # Parallel tests may create the same kind. A server-side apply allows that.
        cluster.kubectl("apply", "--server-side", "-f", path)
        names.append(f"crd/{name}")
    cluster.kubectl("wait", *names, "--for=condition=Established", "--timeout=60s")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_api_server_takes_everything_that_an_example_is_composed_of(
    example: Path,
    function: str,
    cluster: Cluster,
    namespace: str,
    foreign_kinds: None,
    tmp_path: Path,
) -> None:
    composed = _everything_composed(example, function, tmp_path)
    assert composed, "nothing is composed"
    for key, document in composed.items():
        document["metadata"]["namespace"] = namespace
        taken = cluster.kubectl(
            "apply",
            "--server-side",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
            stdin=json.dumps(document),
        )
        assert "serverside-applied" in taken, f"{key}: {taken}"


def test_a_field_that_a_kind_does_not_have_is_refused(
    cluster: Cluster, namespace: str, foreign_kinds: None
) -> None:
    group = {
        "apiVersion": "ec2.aws.m.upbound.io/v1beta1",
        "kind": "SecurityGroup",
        "metadata": {"name": "misspelt", "namespace": namespace},
        "spec": {"forProvider": {"region": "us-east-1", "vpcIdentifier": "vpc-1"}},
    }
    with pytest.raises(Exception, match="vpcIdentifier"):
        cluster.kubectl(
            "create",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
            stdin=json.dumps(group),
        )


def _everything_composed(
    example: Path, function: str, folder: Path
) -> dict[str, dict[str, Any]]:
    """All composed resources, by composition resource name. Renders the example until
    there are no new ones, with the resources so far observed as ready."""
    claim = yaml.safe_load(example.read_text())
    seen: dict[str, dict[str, Any]] = {}
    while True:
        observed = [_made(document) for document in seen.values()]
        rendered = yaml.safe_load_all(render(claim, function, folder, observed))
        composed = {
            document["metadata"]["annotations"][KEY]: document
            for document in rendered
            if document["kind"] not in ASIDE
        }
        if composed.keys() <= seen.keys():
            return seen
        seen |= composed


def _made(document: dict[str, Any]) -> dict[str, Any]:
    """The observed resource, with the status that its provider would write."""
    metadata = document["metadata"]
    external = f"{document['kind'].lower()}-{metadata['name'][-12:]}"
    annotations = {**metadata["annotations"], "crossplane.io/external-name": external}
    conditions = [
        {
            "type": one,
            "status": "True",
            "reason": "Available",
            "lastTransitionTime": "2024-01-01T00:00:00Z",
        }
        for one in ("Ready", "Synced")
    ]
    at_provider = {
        "availabilityZone": "us-east-1a",
        **document["spec"].get("forProvider", {}),
        "id": external,
        "instanceState": "running",
        "publicIp": "198.51.100.7",
        "privateIp": "10.0.0.7",
    }
    return {
        **document,
        "metadata": {**metadata, "annotations": annotations},
        "status": {"conditions": conditions, "atProvider": at_provider},
    }
