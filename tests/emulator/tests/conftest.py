"""One emulator for all tests, which is reset before each test. Clients do not retry."""

import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from booting import Booted, Cloud

REGION = "us-east-1"
IMAGE = "ami-00000000000c0de01"
ROOT = Path(__file__).resolve().parent.parent
# The folders of the emulator's package, and of the package `machines`.
PATH = os.pathsep.join([str(ROOT), str(ROOT.parent / "user_data")])


class Control:
    """The control API, and boto3 clients of the emulator it controls."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, method: str, path: str, document: Any = None) -> Any:
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(
            f"{self.url}/_emulator{path}", data=data, method=method
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            return json.load(answer)

    def refusal(self, method: str, path: str, document: Any = None) -> tuple[int, str]:
        with pytest.raises(urllib.error.HTTPError) as caught:
            self.ask(method, path, document)
        return caught.value.code, json.load(caught.value)["error"]

    def fault(self, operation: str, **fields: Any) -> str:
        fault_id: str = self.ask("POST", "/faults", {"operation": operation, **fields})[
            "id"
        ]
        return fault_id

    def settings(self, **changes: Any) -> None:
        self.ask("POST", "/settings", changes)

    def advance(self, seconds: float) -> None:
        self.ask("POST", "/clock", {"advanceSeconds": seconds})

    def let_time_pass(self) -> None:
        self.ask("POST", "/clock", {"stopped": False})

    def calls(self, query: str = "") -> Any:
        return self.ask("GET", f"/calls{query}")

    def client(
        self,
        service: str,
        region: str = REGION,
        access_key: str = "AKIAEXAMPLE000000000",
        **config: Any,
    ) -> Any:
        settings = {"retries": {"total_max_attempts": 1}, **config}
        return boto3.client(
            service,
            region_name=region,
            endpoint_url=self.url,
            aws_access_key_id=access_key,
            aws_secret_access_key="not-a-secret",
            config=Config(**settings),
        )


@contextmanager
def started(*options: str) -> Iterator[tuple[Control, subprocess.Popen[str]]]:
    """Starts an emulator. Yields its control and its process, which a test may end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ec2_emulator", "--port", "0", *options],
        env={**os.environ, "PYTHONPATH": PATH},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    control = None
    said = []
    for line in process.stderr:
        said.append(line)
        found = re.search(r"listening on (http://\S+)", line)
        if found:
            control = Control(found.group(1))
            break
    assert control is not None, f"the emulator ended before it listened: {said}"
    # The emulator would block if nobody read its stderr.
    drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
    yield control, process
    if process.poll() is None:
        process.terminate()
        assert process.wait(timeout=10) == 0
    drain.wait(timeout=10)


@pytest.fixture(scope="session")
def server() -> Iterator[Control]:
    with started() as (control, _):
        yield control


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    """An emulator whose instances boot. Its clock runs."""
    with Cloud.up(tmp_path_factory.mktemp("cloud")) as cloud:
        yield cloud


@pytest.fixture(scope="session")
def booted(cloud: Cloud) -> Booted:
    """An instance that tests share. They must not change it."""
    return cloud.boot()


@pytest.fixture(scope="session")
def clients(server: Control) -> dict[str, Any]:
    services = ("ec2", "ssm", "sts", "sqs", "events", "iam")
    return {service: server.client(service) for service in services}


@pytest.fixture
def emulator(server: Control) -> Control:
    """The emulator after a reset. Its clock is stopped, and tests advance it."""
    server.ask("POST", "/reset")
    server.ask("POST", "/clock", {"stopped": True})
    return server


@pytest.fixture
def ec2(emulator: Control, clients: dict[str, Any]) -> Any:
    return clients["ec2"]


@pytest.fixture
def launch(ec2: Any) -> Callable[..., list[dict[str, Any]]]:
    """Launches instances, by default one g5.xlarge."""

    def run(**changes: Any) -> list[dict[str, Any]]:
        request = {
            "ImageId": IMAGE,
            "InstanceType": "g5.xlarge",
            "MinCount": 1,
            "MaxCount": 1,
            **changes,
        }
        instances: list[dict[str, Any]] = ec2.run_instances(**request)["Instances"]
        return instances

    return run


SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}


def shown(ec2: Any, **request: Any) -> list[dict[str, Any]]:
    """The instances that DescribeInstances shows."""
    reservations = ec2.describe_instances(**request)["Reservations"]
    return [instance for one in reservations for instance in one["Instances"]]


def refused(call: Callable[..., Any], **request: Any) -> tuple[int, str, str]:
    """Checks that EC2 refuses the call. Returns HTTP status, code and message."""
    with pytest.raises(ClientError) as caught:
        call(**request)
    answer = caught.value.response
    status = answer["ResponseMetadata"]["HTTPStatusCode"]
    return status, answer["Error"]["Code"], answer["Error"]["Message"]
