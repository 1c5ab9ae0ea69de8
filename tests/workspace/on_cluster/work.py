"""A script for runs on all nodes. It is in a ConfigMap, so that a node also finds it
after a restart."""

import json

# Does an all-reduce every 0.2 s. Its argument is the number of them.
TRAIN = """\
import sys, time
import torch, torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
for step in range(int(sys.argv[1])):
    tensor = torch.tensor([rank + 1.0])
    dist.all_reduce(tensor)
    assert tensor.item() == size * (size + 1) / 2
    if rank == 0:
        print("step", step, "of", size, flush=True)
    time.sleep(0.2)
print("rank", rank, "done", flush=True)
"""
SCRIPT = "/srv/work/train.py"
# A value that must be quoted in sshd's configuration.
NASTY = """ a "b" 'c' \\d # $HOME %h ü\\"""


def mounted(manifest: str) -> str:
    """The manifest with the script in a ConfigMap, and with the variable NASTY."""
    variable = "            - {name: NCCL_DEBUG, value: WARN}\n"
    assert variable in manifest
    nasty = f"            - {{name: NASTY, value: {json.dumps(NASTY)}}}\n"
    manifest = manifest.replace(variable, variable + nasty)
    volume = "        - name: home\n"
    mount = "            - {name: home, mountPath: /home/developer}\n"
    assert volume in manifest and mount in manifest
    work = "        - name: work\n          configMap: {name: gang-work}\n"
    manifest = manifest.replace(volume, work + volume)
    at = "            - {name: work, mountPath: /srv/work}\n"
    return f"{manifest.replace(mount, mount + at)}\n---\n{_script()}"


def _script() -> str:
    document = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "gang-work", "namespace": "workspaces"},
        "data": {"train.py": TRAIN},
    }
    return json.dumps(document)
