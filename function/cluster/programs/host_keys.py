"""The keys that all nodes of a workspace share, kept in its Secret.

Whichever pod comes first makes them. Its patch names the version of the Secret that
it read, so of many that start at once one wins, and the others read what it wrote.
"""

from __future__ import annotations

import base64
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import places
from api_server import Refused, Secrets, Unreachable, in_cluster
from failure import Failure, reported

PRIVATE = [places.HOST_KEY, places.GANG_KEY]
# For how long the API server may be out of reach.
PATIENCE = 120.0
# For how long it may refuse: Crossplane composes the Role beside the pods, in no order,
# and a pod that fails meanwhile is started again ever more slowly.
REFUSAL_PATIENCE = 60.0
LONGEST_PAUSE = 5.0

Keys = dict[str, bytes]


def main() -> int:
    return reported(_prepare)


def _prepare() -> int:
    name = os.environ["WORKSPACE_SECRET"]
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    port = int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
    keys = shared(in_cluster(host, port), name, places.RUN)
    store(keys, places.RUN)
    return 0


def shared(
    secrets: Secrets,
    name: str,
    scratch: Path,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Keys:
    """The workspace's keys, by file name; makes those that the Secret lacks."""
    began, pause = clock(), 0.2
    while True:
        try:
            return _once(secrets, name, scratch)
        except Refused as refused:
            # 409: another pod was faster.
            patience = PATIENCE if refused.status == 409 else REFUSAL_PATIENCE
            if clock() - began >= patience:
                raise Failure(_refusal(secrets, name, refused)) from refused
        except Unreachable as why:
            if clock() - began >= PATIENCE:
                raise Failure(
                    f"Secret {secrets.namespace}/{name}: the API server gave no answer"
                    f" for {PATIENCE:.0f} s: {why}. Look whether the pod may reach it"
                    " (NetworkPolicies, kube-proxy)"
                ) from why
            print(f"API server: {why}; trying again", file=sys.stderr, flush=True)
        sleep(pause * random.uniform(0.5, 1.0))
        pause = min(pause * 2, LONGEST_PAUSE)


def store(keys: Keys, folder: Path) -> None:
    for name, content in keys.items():
        places.write(folder / name, content, 0o644 if name.endswith(".pub") else 0o600)


def _once(secrets: Secrets, name: str, scratch: Path) -> Keys:
    secret = secrets.get(name)
    held = _decoded(secret)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        keys = {k: v for p in PRIVATE for k, v in _pair(Path(folder), p, held).items()}
    missing = {k: v for k, v in keys.items() if held.get(k) != v}
    if missing:
        data = {k: base64.b64encode(v).decode() for k, v in missing.items()}
        version = secret["metadata"]["resourceVersion"]
        secrets.patch(name, {"metadata": {"resourceVersion": version}, "data": data})
    return keys


def _decoded(secret: dict[str, Any]) -> Keys:
    return {k: base64.b64decode(v) for k, v in (secret.get("data") or {}).items()}


def _pair(folder: Path, name: str, held: Keys) -> Keys:
    """A key pair: the held one, or another. The public half follows the private."""
    path = folder / name
    if name in held:
        places.write(path, held[name])
        try:
            public = _keygen("-y", "-P", "", "-f", str(path))
        except subprocess.CalledProcessError as error:
            raise Failure(
                f"the workspace's Secret holds no usable private key in {name}:"
                f" {error.stderr.decode(errors='replace').strip()}. Remove that key from"
                " the Secret, and the next start makes another one"
            ) from error
    else:
        _keygen("-q", "-t", "ed25519", "-N", "", "-C", "gpu-workspace", "-f", str(path))
        public = path.with_name(f"{name}.pub").read_bytes()
    # Without the comment, which newer programs of OpenSSH print and older ones do not.
    words = public.split()[:2]
    return {name: path.read_bytes(), f"{name}.pub": b" ".join(words) + b"\n"}


def _keygen(*arguments: str) -> bytes:
    command = ["ssh-keygen", *arguments]
    try:
        return subprocess.run(
            command, check=True, capture_output=True, stdin=subprocess.DEVNULL
        ).stdout
    except FileNotFoundError as error:
        raise Failure(
            "the image has no ssh-keygen: install OpenSSH's client and server in it"
        ) from error


def _refusal(secrets: Secrets, name: str, refused: Refused) -> str:
    secret = f"Secret {secrets.namespace}/{name}"
    if refused.status == 404:
        return (
            f"{secret} does not exist. It is composed with the workspace: look at the"
            " composite's conditions and events for why it was not"
        )
    if refused.status == 403:
        return (
            f"{secret}: the pod's service account may not read and change it:"
            f" {refused}. It needs a Role with the verbs get and patch for this Secret,"
            " and a RoleBinding; both are composed with the workspace"
        )
    return f"{secret}: the API server refused it: {refused}"
