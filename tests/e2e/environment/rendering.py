"""Renders claims with Crossplane's own engine, without a cluster."""

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from .waiting import until

ROOT = Path(__file__).parents[3]
EXAMPLES = sorted(
    [
        *(ROOT / "examples/workspaces").glob("*.yaml"),
        *(ROOT / "examples/choosing").glob("*.yaml"),
        *(ROOT / "examples/on-demand").glob("*.yaml"),
        *(ROOT / "examples/provider-aws").glob("*.yaml"),
    ],
    key=lambda path: path.name,
)
NAME = "acme-function-gpu-workspace"
# A run's end depends on the time of the call.
NOW = "2026-11-20T12:00:00Z"

Document = dict[str, Any]


@contextmanager
def serving() -> Iterator[str]:
    """Runs the function outside the cluster, and yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    running = subprocess.Popen(
        [
            os.environ["FUNCTION_GPU_WORKSPACE"],
            "--insecure",
            f"--address={address}",
            "--metrics-address=",
            f"--now={NOW}",
        ]
    )
    host, port = address.split(":")

    def serves() -> bool:
        assert running.poll() is None, "the function ended"
        with socket.socket() as probe:
            return probe.connect_ex((host, int(port))) == 0

    until("the function to serve", serves)
    yield address
    running.terminate()
    assert running.wait(timeout=20) == 0, "the function does not drain"


def render(
    claim: Document, address: str, folder: Path, observed: list[Document] | None = None
) -> str:
    """The YAML documents that Crossplane would apply for a claim."""

    def write(name: str, *documents: Document) -> Path:
        path = folder / name
        path.write_text(yaml.safe_dump_all(documents))
        return path

    optional = (
        [f"--observed-resources={write('observed.yaml', *observed)}"]
        if observed
        else []
    )
    ran = subprocess.run(
        [
            "crossplane",
            "composition",
            "render",
            write("composite.yaml", _composite(claim)),
            _composition(claim),
            write("functions.yaml", _function(address)),
            f"--crossplane-binary={os.environ['CROSSPLANE_CORE']}",
            f"--xrd={ROOT / 'xrds/gpudevworkspaces.platform.acme.io.yaml'}",
            f"--required-resources={write('required.yaml', *_required())}",
            "-r",
            *optional,
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return _ordered(ran.stdout)


def _composition(claim: Document) -> Path:
    """The committed Composition that the claim selects."""
    name = claim["spec"].get("compositionRef", {}).get("name", "gpudevworkspaces")
    (path,) = (ROOT / "compositions").rglob(f"{name}.yaml")
    return path


def _required() -> list[Document]:
    """What the function requires: catalogue, flavors, and namespaces of the examples."""
    files = ("catalogue.yaml", "flavors.yaml", "limits.yaml", "namespaces.yaml")
    texts = [(ROOT / "examples/platform" / file).read_text() for file in files]
    return [document for text in texts for document in yaml.safe_load_all(text)]


def _ordered(rendered: str) -> str:
    """Removes the results that only say which resources are not ready yet, because
    Crossplane writes them in random order. All resources remain."""
    documents = re.split(r"^---\n", rendered, flags=re.MULTILINE)
    told = [part for part in documents if part and "is not yet ready" not in part]
    return "".join(f"---\n{part}" for part in told)


def _composite(claim: Document) -> Document:
    """The composite that Crossplane makes of a claim."""
    metadata = claim["metadata"]
    return {
        "apiVersion": claim["apiVersion"],
        "kind": "GpuDevWorkspace",
        "metadata": {
            "name": f"{metadata['name']}-abcde",
            "uid": "00000000-0000-4000-8000-000000000000",
            "labels": {
                "crossplane.io/claim-name": metadata["name"],
                "crossplane.io/claim-namespace": metadata["namespace"],
                "crossplane.io/composite": f"{metadata['name']}-abcde",
            },
        },
        "spec": {
            **claim["spec"],
            "claimRef": {
                "apiVersion": claim["apiVersion"],
                "kind": claim["kind"],
                "name": metadata["name"],
                "namespace": metadata["namespace"],
            },
        },
    }


def _function(address: str) -> Document:
    return {
        "apiVersion": "pkg.crossplane.io/v1",
        "kind": "Function",
        "metadata": {
            "name": NAME,
            "annotations": {
                "render.crossplane.io/runtime": "Development",
                "render.crossplane.io/runtime-development-target": address,
            },
        },
        "spec": {"package": f"registry.platform.acme.io/acme/{NAME}:v0"},
    }
