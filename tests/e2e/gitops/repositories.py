"""The example repositories, with this cluster's names instead of the real ones."""

import os
import shutil
from pathlib import Path

import yaml

from environment import registry
from environment.objects import Object
from gitops import git

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples/gitops"
PACKAGES = [
    "provider-gpu-spot",
    "function-gpu-workspace",
    "configuration-gpu-workspaces",
]
QUEUE = "gpus"
SUITE = "gitops"
SECRET = {"namespace": "crossplane-system", "name": "aws", "key": "credentials"}


def platform(folder: Path) -> None:
    """examples/gitops/platform with the local registry, git server and EC2."""
    shutil.copytree(EXAMPLES / "platform", folder, dirs_exist_ok=True)
    image = registry.newest("images/workspace", SUITE)
    named = {
        "https://git.platform.acme.io/": f"{git.INSIDE}/",
        "registry.platform.acme.io/acme/workspace:cpu": image,
        "cpu: 500m": "cpu: 100m",
        **{
            f"registry.platform.acme.io/acme/{name}:v0.1.0": reference(name)
            for name in PACKAGES
        },
    }
    for file in folder.rglob("*.yaml"):
        text = file.read_text()
        for old, new in named.items():
            text = text.replace(old, new)
        file.write_text(text)
    _use_emulator(folder / "crossplane/provider-config.yaml")
    _add_queues(folder)


def reference(package: str) -> str:
    """The package that was pushed to the registry before the suite."""
    (tag,) = [
        tag for tag in registry.tags(f"acme/{package}", SUITE) if "again" not in tag
    ]
    return f"{registry.address()}/acme/{package}:{tag}"


def _use_emulator(file: Path) -> None:
    config = yaml.safe_load(file.read_text())
    config["spec"] = {
        "credentials": {"source": "Secret", "secretRef": SECRET},
        "endpoint": {
            "url": {"type": "Static", "static": os.environ["AWS_ENDPOINT_URL"]}
        },
    }
    file.write_text(yaml.safe_dump(config))


def _add_queues(folder: Path) -> None:
    """Adds Kueue's quota of one GPU, and the team's LocalQueue."""
    queues = (ROOT / "tests/e2e/cluster/queues.yaml").read_text()
    (folder / "crossplane/queues.yaml").write_text(queues)
    policy = folder / "crossplane/policy.yaml"
    documents = list(yaml.safe_load_all(policy.read_text()))
    (step,) = documents[0]["spec"]["pipeline"]
    step["input"]["cluster"]["queue"] = {"default": QUEUE}
    policy.write_text(yaml.safe_dump_all(documents))
    namespace = folder / "teams/vision/namespace.yaml"
    documents = list(yaml.safe_load_all(namespace.read_text()))
    documents[0]["metadata"]["labels"]["platform.acme.io/gpu-workspaces"] = "managed"
    namespace.write_text(yaml.safe_dump_all(documents))
    local_queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": QUEUE, "namespace": "team-vision"},
        "spec": {"clusterQueue": QUEUE},
    }
    (folder / "teams/vision/queue.yaml").write_text(yaml.safe_dump(local_queue))
    flavors = folder / "crossplane/flavors.yaml"
    small, *_ = yaml.safe_load_all(flavors.read_text())
    gpu = {**small, "metadata": {**small["metadata"], "name": "gpu"}}
    gpu["spec"] = {**small["spec"], "gpus": 1, "gpuProduct": "Emulated"}
    flavors.write_text(yaml.safe_dump_all([small, gpu]))


def claim(name: str, **parameters: object) -> str:
    document: Object = {
        "apiVersion": "platform.acme.io/v1alpha1",
        "kind": "GpuDevWorkspaceClaim",
        "metadata": {"name": name, "namespace": "team-vision"},
        "spec": {
            "compositionRef": {"name": "acme-gpu-workspaces"},
            "parameters": {"owner": "alice", **parameters},
        },
    }
    return yaml.safe_dump(document, sort_keys=False)
