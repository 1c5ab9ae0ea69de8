"""A home moves from provider-aws to a pool by the commands of docs/upgrade.md."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from documents import suites
from environment.ec2 import Ec2
from environment.waiting import until
from lifecycle.machine import Machine

ON_DEMAND = {"capacityType": "OnDemand", "home": {"sizeGiB": 1}}
SOON = 300


@pytest.mark.alone
def test_a_home_moves_with_its_files_and_host_keys(
    machine: Callable[[str], Machine], ec2: Ec2, tmp_path: Path
) -> None:
    old = machine("ProviderAws")
    old.commit({}, **ON_DEMAND)
    before = old.logged_in(SOON)
    old.await_home()
    old.run("echo written >thesis")

    new = machine("SpotPool")
    presets = {
        "NAMESPACE": new.namespace,
        "CLAIM": new.name,
        "COMPOSITION": new.composition,
    }
    print(suites.run("move-home", presets, _with_aws(tmp_path), seconds=1200))
    after = new.logged_in(SOON)
    new.await_home(before["hostKeys"])
    assert new.run("cat thesis") == "written"
    # The home is the only volume of the pool, and nothing of provider-aws is left.
    homes = lambda: [one["VolumeId"] for one in Ec2(ec2.region).homes(new.namespace)]
    until(
        "the empty volume to go",
        lambda: homes() == [after["home"]["volumeId"]],
        instead=homes,
    )
    left = {one["VolumeId"] for one in ec2.volumes(new.namespace)}
    assert before["home"]["volumeId"] not in left
    assert [one["InstanceId"] for one in Ec2(ec2.region).live(new.namespace)] == [
        after["instanceId"]
    ]


def _with_aws(folder: Path) -> dict[str, str]:
    """The environment, with the `aws` of this Python environment first. The environment's own
    script names the place where the environment was made, which is another one."""
    program = folder / "aws"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m awscli "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
