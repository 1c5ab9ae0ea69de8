"""`cargo xtask image ami`: a machine image with the software of workspaces, built by a machine
that boots."""

import signal
import subprocess
from pathlib import Path

import boto3
import pytest
import yaml

from environment.objects import Object
from environment.variants import ROOT
from environment.waiting import until
from lifecycle.conftest import BOOTING, BOOTING_IMAGE, PYTORCH

TAG = "gpu.platform.acme.io:image-build"
REGION = "us-east-1"


class Builder:
    """The builder with a catalogue of its own, and what it leaves in EC2."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._catalogue = folder / "catalogue.yaml"
        self._ec2 = boto3.client("ec2", region_name=REGION)
        self.supply()

    def supply(self, **packages: str) -> None:
        text = (ROOT / "examples/platform/catalogue.yaml").read_text()
        document: Object = yaml.safe_load(text)
        document["data"]["images"][REGION]["default"] = BOOTING_IMAGE
        document["data"]["packages"] = packages
        self._catalogue.write_text(yaml.safe_dump(document))

    def start(self) -> "subprocess.Popen[str]":
        options = ["--catalogue", str(self._catalogue), "--region", REGION]
        options += ["--name", self.name, "--opencv", "4.8.0", "--look-every", "1"]
        return subprocess.Popen(
            ["cargo", "xtask", "image", "ami", *options, "--disk", "8"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def machines(self) -> list[str]:
        """The machines of this build that EC2 bills."""
        filters = [
            {"Name": f"tag:{TAG}", "Values": [self.name]},
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
        ]
        found = self._ec2.describe_instances(Filters=filters)["Reservations"]
        return [one["InstanceId"] for each in found for one in each["Instances"]]

    def images(self) -> list[Object]:
        filters = [{"Name": f"tag:{TAG}", "Values": [self.name]}]
        found: list[Object] = self._ec2.describe_images(Filters=filters)["Images"]
        return found


@pytest.fixture
def builder(tmp_path: Path, request: pytest.FixtureRequest) -> Builder:
    return Builder(tmp_path, f"{request.node.name[:60]}-{tmp_path.parent.name}")


def test_a_built_image_has_its_entry_for_the_catalogue_and_no_machine_is_left(
    builder: Builder,
) -> None:
    entry, said = builder.start().communicate(timeout=400)
    (image,) = builder.images()
    assert image["State"] == "available", said
    written = yaml.safe_load(entry)["images"][REGION][builder.name]
    assert written == {
        "id": image["ImageId"],
        "description": f"{BOOTING}, with the software of workspaces",
        "python": "/opt/workspace-image/bin/python3",
        "opencv": {"version": "4.8.0"},
        "pytorch": {"version": PYTORCH, "python": "/opt/workspace-image/bin/python3"},
    }
    assert "no longer install OpenCV 4.8.0" in said
    assert builder.machines() == []


def test_a_build_whose_setup_fails_leaves_no_image_and_no_machine(
    builder: Builder,
) -> None:
    builder.supply(indexUrl="http://127.0.0.1:9/simple")
    process = builder.start()
    _, said = process.communicate(timeout=400)
    assert process.returncode == 1
    assert "failed at: install OpenCV, no network" in said
    assert (builder.images(), builder.machines()) == ([], [])


def test_an_interrupted_build_leaves_no_machine(builder: Builder) -> None:
    process = builder.start()
    until("its machine", lambda: bool(builder.machines()), 120)
    # As a terminal does: the whole group gets the signal.
    subprocess.run(["kill", f"-{signal.SIGINT}", "--", f"-{process.pid}"], check=True)
    _, said = process.communicate(timeout=120)
    assert "interrupted" in said
    assert process.returncode != 0
    assert (builder.images(), builder.machines()) == ([], [])
