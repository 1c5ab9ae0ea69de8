"""The program that asks a real account, run against the emulator."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "acceptance"
TAG = "gpu-workspaces-acceptance"


@pytest.fixture
def program(emulator, tmp_path):
    """Starts the program. The emulator's clock runs."""
    emulator.let_time_pass()

    def start(*options: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "acceptance", "--region", "us-east-1", "--yes"]
        command += ["--endpoint-url", emulator.url, "--tags-minutes", "0", *options]
        keys = {"AWS_ACCESS_KEY_ID": "AKIAEXAMPLE000000000"}
        keys["AWS_SECRET_ACCESS_KEY"] = "not-a-secret"
        environment = {**os.environ, **keys, "PYTHONPATH": str(FOLDER)}
        return subprocess.Popen(
            command,
            cwd=tmp_path,
            env=environment,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def left(ec2):
    """The live instances and templates with the tag."""
    tagged = [{"Name": "tag-key", "Values": [TAG]}]
    live = {"Name": "instance-state-name", "Values": ["pending", "running"]}
    found = ec2.describe_instances(Filters=[*tagged, live])["Reservations"]
    templates = ec2.describe_launch_templates(Filters=tagged)["LaunchTemplates"]
    return len(found), len(templates)


def test_each_question_has_an_answer_and_nothing_is_left(ec2, program, tmp_path):
    running = program()
    said = running.communicate(timeout=120)[1]
    assert running.returncode == 0, said
    written = json.loads((tmp_path / "answers.json").read_text())
    answers = {key: one["answer"] for key, one in written["answers"].items()}
    assert all("unanswered" not in answer for answer in answers.values()), answers
    first, second = (answers["token-repeated"][one] for one in ("first", "second"))
    assert first["instances"] == second["instances"]
    assert answers["token-together"]["instances"] == 1
    assert len(written["forAPerson"]) == 5
    assert left(ec2) == (0, 0)


def test_a_run_after_a_kill_deletes_what_the_killed_one_left(ec2, program):
    running = program()
    end = time.monotonic() + 60
    while left(ec2)[0] == 0 and time.monotonic() < end:
        time.sleep(0.05)
    running.send_signal(signal.SIGKILL)
    running.communicate(timeout=30)
    instances, templates = left(ec2)
    assert instances > 0 and templates == 1
    again = program("--clean")
    said = again.communicate(timeout=60)[1]
    assert again.returncode == 0, said
    assert left(ec2) == (0, 0)


def test_it_touches_nothing_without_its_tag(ec2, launch, program):
    (other,) = launch()
    running = program("--clean")
    assert running.wait(timeout=60) == 0
    found = ec2.describe_instances(InstanceIds=[other["InstanceId"]])
    state = found["Reservations"][0]["Instances"][0]["State"]["Name"]
    assert state in ("pending", "running")


def test_answers_in_the_repository_are_awss_own():
    for file in FOLDER.glob("*.json"):
        endpoint = json.loads(file.read_text())["endpoint"]
        assert urlsplit(endpoint).hostname.endswith(".amazonaws.com"), file
