"""What a workspace's owner and its pods reach: no platform, and no other tenant."""

import http.server
import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.connecting import CONNECT
from cluster.workspaces import HOST_NETWORK, Key, Workspaces
from environment.cluster import Cluster
from environment.objects import Refused
from environment.variants import composition, flavor
from environment.waiting import until


def reached(user: Workspaces, name: str, *targets: str) -> dict[str, str]:
    said = user.run(name, "python", "-", *targets, stdin=CONNECT)
    return dict(line.rsplit(" ", 1) for line in said.splitlines())


def test_a_workspace_reaches_no_platform_and_no_other_workspace(
    cluster: Cluster, alice: Workspaces, bob: Workspaces
) -> None:
    alice.claim("vision")
    bob.claim("training")
    alice.ready("vision", seconds=180)
    peer = bob.ready("training", seconds=120)["nodes"][0]["ip"]
    (function,) = cluster.pods("function=acme-function-gpu-workspace")
    (provider,) = cluster.pods("provider=acme-provider-gpu-spot")
    at_function, at_provider = (p["status"]["podIP"] for p in (function, provider))
    shut = [
        f"{at_function}:9443",
        f"{at_function}:8080",
        f"{at_provider}:8080",
        f"{peer}:22",
    ]
    # The API server's name needs DNS.
    seen = reached(alice, "vision", *shut, "kubernetes.default.svc:443")
    assert seen == {
        **dict.fromkeys(shut, "refused"),
        "kubernetes.default.svc:443": "reached",
    }


@contextmanager
def mirror(address: str) -> Iterator[int]:
    """A package mirror on this machine; its port."""
    server = http.server.ThreadingHTTPServer(
        (address, 0), http.server.BaseHTTPRequestHandler
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()


def test_a_package_mirror_answers_where_the_policy_names_its_network(
    cluster: Cluster, alice: Workspaces
) -> None:
    egress = {"cluster": {"egress": {"further": [HOST_NETWORK]}}}
    mirrored = composition(cluster, "mirrored", egress)
    alice.claim("without")
    alice.claim("with", composition=mirrored)
    ip = alice.ready("with", seconds=180)["nodes"][0]["ip"]
    alice.ready("without", seconds=60)
    route = subprocess.run(
        ["ip", "-json", "route", "get", ip], capture_output=True, text=True, check=True
    )
    here = json.loads(route.stdout)[0]["prefsrc"]
    with mirror(here) as port:
        target = f"{here}:{port}"
        assert reached(alice, "with", target) == {target: "reached"}
        assert reached(alice, "without", target) == {target: "refused"}


def test_an_owner_starts_no_process_in_any_container(
    cluster: Cluster, alice: Workspaces
) -> None:
    alice.claim("vision")
    alice.ready("vision", seconds=180)
    (pod,) = alice.pods("vision")
    spec = pod["spec"]
    containers = [c["name"] for c in spec["initContainers"] + spec["containers"]]
    assert len(containers) > 1
    for container in containers:
        with pytest.raises(Refused, match="pods/exec"):
            cluster.kubectl(
                *("exec", "-n", alice.namespace, pod["metadata"]["name"]),
                *("-c", container, f"--as={alice.owner}", "--", "true"),
            )


def test_the_account_of_pods_changes_only_the_data_of_its_secret(
    cluster: Cluster, alice: Workspaces
) -> None:
    alice.claim("vision")
    alice.ready("vision", seconds=180)
    (pod,) = alice.pods("vision")
    account = pod["spec"]["serviceAccountName"]
    label = "platform.acme.io/cluster-workspace=gpuws-vision"
    (secret,) = cluster.all("secrets", alice.namespace, label)

    def patch(change: dict[str, object]) -> str:
        return cluster.kubectl(
            *("patch", "secret", secret["metadata"]["name"], "-n", alice.namespace),
            *("--type=merge", "-p", json.dumps(change), "--dry-run=server"),
            f"--as=system:serviceaccount:{alice.namespace}:{account}",
        )

    assert "patched" in patch({"data": {"ssh_host_ed25519_key.pub": "AAAA"}})
    for change in (
        {"metadata": {"finalizers": ["example.com/never"]}},
        {"metadata": {"labels": {"platform.acme.io/owner": "mallory"}}},
        {"metadata": {"labels": {"platform.acme.io/cluster-workspace": None}}},
        {"metadata": {"ownerReferences": None}},
        {"metadata": {"annotations": {"crossplane.io/external-name": "x"}}},
        {"immutable": True},
    ):
        with pytest.raises(Refused, match="gpu-workspace-accounts"):
            patch(change)


def certificate(key: Key, authority: Key, principal: str, valid: str) -> None:
    """Signs a key. ssh finds the certificate beside it."""
    public = key.private.with_suffix(".pub")
    subprocess.run(
        ["ssh-keygen", "-q", "-s", authority.private, "-I", key.private.name]
        + ["-n", principal, "-V", valid, public],
        check=True,
    )


def test_a_certificate_opens_the_workspace_of_its_principal_until_it_ends(
    cluster: Cluster, alice: Workspaces, tmp_path: Path
) -> None:
    ours = Key.generate(tmp_path, "authority")
    other = Key.generate(tmp_path, "other-authority")
    trusting = composition(
        cluster, "trusting", {"ssh": {"userAuthorities": [ours.public]}}
    )
    alice.claim("vision", composition=trusting)
    alice.ready("vision", seconds=180)

    def signed(name: str, by: Key, principal: str, valid: str) -> Key:
        key = Key.generate(tmp_path, name)
        certificate(key, by, principal, valid)
        return key

    good = signed("good", ours, alice.owner, "+1h")
    until(
        "the certificate to open",
        lambda: alice.ssh("vision", "true", key=good).returncode == 0,
        seconds=90,
    )
    # Who logged in, by key and certificate, is in the pod's log.
    (pod,) = alice.pods("vision")
    log = cluster.kubectl("logs", "-n", alice.namespace, pod["metadata"]["name"])
    (entry,) = re.findall(r"Accepted publickey for developer .* ID good .*", log)[-1:]
    assert len(re.findall(r"SHA256:", entry)) == 2, entry
    for key in (
        signed("for-another", ours, "mallory", "+1h"),
        signed("expired", ours, alice.owner, "-2h:-1h"),
        signed("of-another", other, alice.owner, "+1h"),
        Key.generate(tmp_path, "without"),
    ):
        assert "Permission denied" in alice.ssh("vision", "true", key=key).stderr


def test_a_pod_that_fills_its_disk_is_the_one_that_ends(
    cluster: Cluster, image: str, alice: Workspaces, bob: Workspaces
) -> None:
    small = flavor(cluster, image, "small-disk", scratch="64Mi")
    alice.claim("greedy", flavor=small)
    bob.claim("modest")
    before = bob.ready("modest", seconds=180)["nodes"][0]["name"]
    alice.ready("greedy", seconds=120)
    (pod,) = alice.pods("greedy")
    alice.run("greedy", "fallocate", "-l", "200M", "big")

    def ended() -> bool:
        now = alice.pods("greedy")
        return [p["metadata"]["uid"] for p in now] != [pod["metadata"]["uid"]] or any(
            p.get("status", {}).get("reason") == "Evicted" for p in now
        )

    until("the pod that fills its disk to end", ended, seconds=120)
    (untouched,) = bob.pods("modest")
    assert untouched["metadata"]["name"] == before
    assert untouched["status"]["phase"] == "Running"
