"""A workspace of one pod: logins, and the files and keys that survive."""

import subprocess

from cluster.workspaces import HOME, Workspaces
from environment.cluster import is_ready
from environment.waiting import until


def test_the_owner_logs_in_to_a_verified_host_and_nobody_else_does(
    alice: Workspaces, bob: Workspaces
) -> None:
    alice.claim("vision", home=HOME)
    status = alice.ready("vision", seconds=120)
    assert status["phase"] == "Ready"
    host = f"gpuws-vision-0.gpuws-vision.{alice.namespace}.svc.cluster.local"
    assert status["nodes"][0]["host"] == host
    assert status["ssh"] == f"devctl ssh vision --namespace {alice.namespace}"

    said = alice.run(
        "vision", "python", "-c", "'import torch, cv2; print(cv2.__version__)'"
    )
    assert said == "4.8.0"
    assert alice.run("vision", "df", "-k", "--output=size", "/dev/shm").split()[
        1
    ] == str(64 * 1024)

    stranger = alice.ssh("vision", "true", key=bob.key)
    assert "Permission denied" in stranger.stderr
    other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEfakefakefakefakefakefakefakefakefakefakefake"
    impostor = alice.ssh("vision", "true", host_key=other)
    assert "Host key verification failed" in impostor.stderr


def test_home_and_host_keys_survive_a_lost_pod_and_a_stop(alice: Workspaces) -> None:
    alice.claim("lasting", home=HOME)
    before = alice.ready("lasting", seconds=120)
    alice.run("lasting", "echo", "unsaved", ">", "thesis.txt")

    lost = alice.pods("lasting")[0]
    alice.cluster.kubectl(
        "delete", "pod", "-n", alice.namespace, lost["metadata"]["name"], "--wait=false"
    )

    def another() -> bool:
        pods = alice.pods("lasting")
        return len(pods) == 1 and (
            pods[0]["metadata"]["uid"] != lost["metadata"]["uid"] and is_ready(pods[0])
        )

    until("another pod", another, seconds=120)
    after = alice.ready("lasting", seconds=60)
    assert after["hostKeys"] == before["hostKeys"]
    assert alice.run("lasting", "cat", "thesis.txt") == "unsaved"

    alice.change("lasting", lifecycle={"state": "Stopped"})
    stopped = alice.phase("lasting", "Stopped", seconds=90)
    assert "ssh" not in stopped and alice.pods("lasting") == []
    assert [home["status"]["phase"] for home in alice.homes("lasting")] == ["Bound"]

    alice.change("lasting", lifecycle={"state": "Running"})
    again = alice.ready("lasting", seconds=120)
    assert again["hostKeys"] == before["hostKeys"]
    assert alice.run("lasting", "cat", "thesis.txt") == "unsaved"


def test_a_changed_size_waits_for_the_next_start(alice: Workspaces) -> None:
    alice.claim("growing", home=HOME)
    alice.ready("growing", seconds=120)
    (pod,) = alice.pods("growing")
    alice.change("growing", overrides={"cpu": "200m"})
    alice.condition(
        "growing", "ConfigResolved", "True", "take effect at the next start"
    )
    assert alice.pods("growing")[0]["metadata"]["uid"] == pod["metadata"]["uid"]

    alice.change("growing", lifecycle={"state": "Stopped"})
    alice.phase("growing", "Stopped", seconds=90)
    alice.change("growing", lifecycle={"state": "Running"})
    status = alice.ready("growing", seconds=120)
    assert status["pods"]["cpu"] == "200m"
    (pod,) = alice.pods("growing")
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"


def test_a_deleted_claim_leaves_its_home_and_a_new_one_finds_it(
    alice: Workspaces,
) -> None:
    alice.claim("again", home=HOME)
    alice.ready("again", seconds=120)
    alice.run("again", "echo", "unsaved", ">", "thesis.txt")
    alice.delete("again")
    assert alice.pods("again") == []
    (home,) = alice.homes("again")
    assert home["status"]["phase"] == "Bound"

    alice.claim("again", home=HOME)
    alice.ready("again", seconds=120)
    assert alice.run("again", "cat", "thesis.txt") == "unsaved"


def test_files_are_copied_by_scp_as_editors_do(alice: Workspaces) -> None:
    alice.claim("copying")
    status = alice.ready("copying", seconds=120)
    node = status["nodes"][0]
    known = alice.key.private.parent / "known-hosts-scp"
    known.write_text(f"{node['host']} {status['hostKeys'][0]}\n")
    subprocess.run(
        [
            "scp",
            "-q",
            *("-i", alice.key.private, "-F", "none"),
            *(
                "-o",
                f"UserKnownHostsFile={known}",
                "-o",
                f"HostKeyAlias={node['host']}",
            ),
            *("-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes"),
            __file__,
            f"developer@{node['ip']}:copied.py",
        ],
        check=True,
    )
    assert "as_editors_do" in alice.run("copying", "cat", "copied.py")
