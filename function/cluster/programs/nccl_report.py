"""workspace-nccl: what NCCL finds on this node."""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import subprocess
from collections.abc import Sequence
from typing import Any

from table import table

NAME = "workspace-nccl"
PREFIXES = ("NCCL_", "TORCH_NCCL_", "GLOO_", "CUDA_", "NVIDIA_", "PET_")
GPU_FIELDS = ["index", "name", "memory.total", "driver_version"]
LIMITS = {
    "locked memory": resource.RLIMIT_MEMLOCK,
    "open files": resource.RLIMIT_NOFILE,
    "processes": resource.RLIMIT_NPROC,
    "stack": resource.RLIMIT_STACK,
}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog=NAME,
        description="Shows GPUs, NCCL's version and settings, network interfaces, shared"
        " memory and limits of this node.",
    )
    parser.add_argument("-o", "--output", choices=["table", "json"], default="table")
    options = parser.parse_args(arguments)
    report = found()
    print(json.dumps(report, indent=2) if options.output == "json" else shown(report))
    return 0


def found() -> dict[str, Any]:
    return {
        "node": socket.gethostname(),
        "gpus": gpus(),
        **torch_facts(),
        "interfaces": [name for _, name in socket.if_nameindex()],
        "sharedMemory": shared_memory(),
        "limits": limits(),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(PREFIXES)
        },
    }


def gpus() -> list[dict[str, str]] | str:
    """What the driver shows, or why it shows nothing."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return (
            "no nvidia-smi here: the node has no GPU, or its runtime mounts no driver"
        )
    query = [f"--query-gpu={','.join(GPU_FIELDS)}", "--format=csv,noheader"]
    asked = subprocess.run(
        [program, *query], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if asked.returncode:
        return f"nvidia-smi: {(asked.stderr or asked.stdout).strip()}"
    lines = [line.split(", ") for line in asked.stdout.splitlines()]
    return [dict(zip(GPU_FIELDS, line)) for line in lines]


def torch_facts() -> dict[str, Any]:
    import torch
    import torch.distributed as dist

    available = torch.cuda.is_available()
    facts: dict[str, Any] = {
        "pytorch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudaWorks": available,
        "nccl": None,
    }
    if dist.is_available() and dist.is_nccl_available():
        version = torch.cuda.nccl.version()
        facts["nccl"] = ".".join(map(str, version))
    return facts


def shared_memory(folder: str = "/dev/shm") -> dict[str, int]:
    """In MiB. NCCL takes about 33 for each communicator."""
    usage = shutil.disk_usage(folder)
    return {"totalMiB": usage.total >> 20, "freeMiB": usage.free >> 20}


def limits() -> dict[str, str]:
    def text(value: int) -> str:
        return "unlimited" if value == resource.RLIM_INFINITY else str(value)

    return {name: text(resource.getrlimit(of)[0]) for name, of in LIMITS.items()}


def shown(report: dict[str, Any]) -> str:
    gpu_lines = report["gpus"]
    if not isinstance(gpu_lines, str):
        gpu_lines = "; ".join(", ".join(gpu.values()) for gpu in gpu_lines)
    memory = report["sharedMemory"]
    rows = [
        ["GPUs", gpu_lines or "none"],
        ["PyTorch", report["pytorch"]],
        ["CUDA", report["cuda"] or "PyTorch is built without it"],
        ["CUDA works", "yes" if report["cudaWorks"] else "no"],
        ["NCCL", report["nccl"] or "PyTorch is built without it"],
        ["interfaces", " ".join(report["interfaces"])],
        ["/dev/shm", f"{memory['totalMiB']} MiB, {memory['freeMiB']} MiB free"],
        *[[name, value] for name, value in report["limits"].items()],
        *[[name, value] for name, value in report["environment"].items()],
    ]
    return table(["NODE", report["node"]], rows)
