"""The command lines with which the command line was first designed, as they were written."""

from devctl.program import Devctl

TRAIN = """
import os, sys
print("rank", os.environ.get("RANK"), "of", os.environ.get("WORLD_SIZE"), sys.argv[1:])
"""


def test_one_pod_from_create_to_delete(devctl: Devctl) -> None:
    created = devctl.says("create", "my-dev", "--flavor", "gpu-large")
    assert created == "my-dev is Ready: devctl ssh my-dev, or ssh my-dev.ws\n"
    assert devctl.says("ssh", "my-dev", "--", "id", "-un").strip() == "developer"
    assert "my-dev" in devctl.says("list")
    again = devctl("create", "my-dev", "--flavor", "gpu-large")
    assert again.returncode == 0 and "exists" in again.stderr
    other = devctl.refused(5, "create", "my-dev", "--flavor", "cpu-small")
    assert "spec.parameters.flavor: gpu-large, not cpu-small" in other
    assert "is deleted" in devctl.says("delete", "my-dev", "--yes")
    assert "does not exist" in devctl.refused(3, "show", "my-dev")


def test_the_flavor_may_stand_behind_the_name(devctl: Devctl) -> None:
    devctl.says("create", "mydev", "gpu-large", "--no-wait")
    claim = devctl.object("show", "mydev")
    assert claim["spec"]["parameters"]["flavor"] == "gpu-large"
    assert claim["spec"]["parameters"]["placement"] == "Cluster"


def test_four_nodes_run_one_training_with_its_arguments(devctl: Devctl) -> None:
    created = devctl.says(
        *("create", "training-job", "--flavor", "cpu-small"),
        *("--distributed", "--replicas", "4"),
    )
    assert "is Ready" in created
    for replica in ("0", "3"):
        name = devctl.says(
            "ssh", "training-job", "--replica", replica, "--", "hostname"
        )
        assert name.strip().endswith(f"-{replica}")
    missing = devctl.refused(2, "ssh", "training-job", "--replica", "4")
    assert "it has 4 pods, from 0" in missing
    for replica in range(4):
        devctl(
            *("ssh", "training-job", "--replica", str(replica), "--"),
            "cat > train.py",
            stdin=TRAIN,
        )
    output = devctl.says("run", "training-job", "train.py", "--batch-size", "32")
    for rank in range(4):
        assert f"rank {rank} of 4 ['--batch-size', '32']" in output, output
    measured = devctl.object("monitor", "training-job", "--once")
    assert [node["node"] for node in measured["nodes"]] == [0, 1, 2, 3]
    assert all(node["memory"]["usedBytes"] > 0 for node in measured["nodes"])
    assert "NODE" in devctl.says("monitor", "training-job", "--once")


def test_what_one_placement_cannot_do_is_refused_by_name(devctl: Devctl) -> None:
    refused = devctl.refused(
        2, "create", "a", "--placement", "ec2", "--distributed", "--replicas", "2"
    )
    assert "--distributed is not possible with --placement ec2" in refused
    assert "no workspaces" in devctl("list").stderr
