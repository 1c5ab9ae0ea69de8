"""One torchrun on two pods: a real process group, and the loss of a pod."""

import json
import subprocess
import threading

from cluster.workspaces import HOME, Workspaces
from environment.waiting import until

# Computes sums over all processes, with a checkpoint that survives the loss of a pod.
TRAINING = """
import os, pathlib, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
checkpoint = pathlib.Path.home() / "step"
begun = int(checkpoint.read_text()) if checkpoint.exists() else 0
step = torch.tensor([begun])
dist.all_reduce(step, op=dist.ReduceOp.MIN)
for step in range(int(step), 40):
    total = torch.tensor([float(rank + 1)])
    dist.all_reduce(total)
    assert total.item() == size * (size + 1) / 2, total
    # The other node's end kills this process at any moment, also while it writes.
    written = checkpoint.with_suffix(".new")
    written.write_text(str(step))
    written.replace(checkpoint)
    print(f"rank {rank} step {step} on {os.uname().nodename}", flush=True)
    time.sleep(0.25)
print(f"rank {rank} of {size} done", flush=True)
"""


def distributed(alice: Workspaces, name: str) -> None:
    alice.claim(name, distributed={"nodes": 2}, overrides={"memory": "2Gi"}, home=HOME)
    status = alice.ready(name, seconds=180)
    assert [node["ready"] for node in status["nodes"]] == [True, True]


def test_one_command_reduces_over_both_nodes(alice: Workspaces) -> None:
    distributed(alice, "gang")
    nodes = json.loads(
        alice.run("gang", "workspace-allreduce", "--backend", "gloo", "-o", "json")
    )
    assert len(nodes) == 2, nodes
    rendezvous = alice.run("gang", "workspace-rendezvous")
    assert "gang-1" in rendezvous, rendezvous


def test_a_killed_node_comes_back_and_the_run_recovers(alice: Workspaces) -> None:
    distributed(alice, "training")
    for node in (0, 1):
        alice.run("training", "cat", ">", "train.py", node=node, stdin=TRAINING)

    ran: list[subprocess.CompletedProcess[str]] = []
    run = threading.Thread(
        target=lambda: ran.append(
            alice.ssh("training", "workspace-torchrun", "--restarts", "3", "train.py")
        )
    )
    run.start()
    until(
        "the run to get somewhere",
        lambda: int(alice.run("training", "cat", "step", "||", "echo", "0")) >= 3,
        seconds=90,
    )
    alice.cluster.kubectl(
        "delete", "pod", "-n", alice.namespace, "gpuws-training-1", "--grace-period=1"
    )
    run.join(timeout=240)
    assert ran, "the run did not end"
    said = ran[0].stdout + ran[0].stderr
    assert ran[0].returncode == 0, said
    for rank in (0, 1):
        assert f"rank {rank} of 2 done" in said, said
    alice.ready("training", seconds=120)
