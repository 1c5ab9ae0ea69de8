"""Every example, rendered by Crossplane's own engine, gives its golden."""

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from environment.waiting import until

ROOT = Path(__file__).parents[3]
GOLDENS = Path(__file__).parent / "goldens"
EXAMPLES = sorted((ROOT / "examples/workspaces").glob("*.yaml"))
NAME = "acme-function-gpu-workspace"


@pytest.fixture(scope="module")
def function() -> Iterator[str]:
    """The function, outside the cluster; answers its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    running = subprocess.Popen(
        [
            os.environ["FUNCTION_GPU_WORKSPACE"],
            "--insecure",
            f"--address={address}",
            "--metrics-address=",
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


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_renders_as_its_golden_says(
    example: Path, function: str, tmp_path: Path
) -> None:
    rendered = _render(example, function, tmp_path)
    golden = GOLDENS / example.name
    if os.environ.get("UPDATE_GOLDENS"):
        GOLDENS.mkdir(exist_ok=True)
        golden.write_text(rendered)
    assert rendered == golden.read_text()


def test_every_golden_has_an_example() -> None:
    assert [path.name for path in EXAMPLES] == sorted(
        path.name for path in GOLDENS.glob("*.yaml")
    )


def test_rendering_the_largest_example_takes_a_moment_only(
    function: str, tmp_path: Path
) -> None:
    began = time.monotonic()
    _render(EXAMPLES[-1], function, tmp_path)
    assert time.monotonic() - began < 5


def _render(example: Path, address: str, folder: Path) -> str:
    composite = folder / "composite.yaml"
    composite.write_text(
        yaml.safe_dump(_composite(yaml.safe_load(example.read_text())))
    )
    functions = folder / "functions.yaml"
    functions.write_text(yaml.safe_dump(_function(address)))
    ran = subprocess.run(
        [
            "crossplane",
            "composition",
            "render",
            composite,
            ROOT / "compositions/gpudevworkspaces-ec2.yaml",
            functions,
            f"--crossplane-binary={os.environ['CROSSPLANE_CORE']}",
            f"--xrd={ROOT / 'xrds/gpudevworkspaces.platform.acme.io.yaml'}",
            f"--required-resources={ROOT / 'examples/platform/catalogue.yaml'}",
            "-r",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _composite(claim: dict[str, Any]) -> dict[str, Any]:
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


def _function(address: str) -> dict[str, Any]:
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
