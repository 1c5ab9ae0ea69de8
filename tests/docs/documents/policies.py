"""IAM policies, and the AWS calls in the provider's source."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .markdown import ROOT

Statement = dict[str, Any]

FOLDER = ROOT / "docs/aws"
_SOURCE = ROOT / "provider/aws/src"
# The calls of the program that builds machine images, which has a role of its own.
_BUILDER = _SOURCE / "image_builder.rs"

# A call of an AWS client in the source: the client's field, and the method.
_CLIENT = re.compile(
    r"(?:\.\s*|\b(?=client\b))(client|sts)\s*(?:\(\)\s*)?\.\s*(?!clone\b)([a-z0-9_]+)\s*\(",
    re.DOTALL,
)
_SENT = re.compile(r"\.\s*send\(\)")
# The action of the single operation also permits the batch operation ("Actions,
# resources, and condition keys for Amazon SQS").
_ALLOWED_BY = {"sqs:DeleteMessageBatch": "sqs:DeleteMessage"}
# Further actions that an operation requires ("EC2 Fleet prerequisites", "Grant
# permission to tag Amazon EC2 resources during creation"; "Pass session tags in AWS
# STS").
NEEDED_BY = {
    "ec2:CreateFleet": {"ec2:RunInstances", "ec2:CreateTags"},
    "ec2:CreateImage": {"ec2:CreateTags"},
    "ec2:CreateLaunchTemplate": {"ec2:CreateTags"},
    "ec2:CreateSecurityGroup": {"ec2:CreateTags"},
    "ec2:CreateSnapshot": {"ec2:CreateTags"},
    "ec2:CreateVolume": {"ec2:CreateTags"},
    "sts:AssumeRole": {"sts:TagSession"},
}


def called() -> set[str]:
    """The IAM actions that the calls in the provider's source require."""
    return _required(set(_SOURCE.rglob("*.rs")) - {_BUILDER})


def called_by_the_builder() -> set[str]:
    """The IAM actions that the builder of machine images requires. It reads consoles and
    images by functions of the provider's."""
    shared = {"ec2:DescribeImages", "ec2:GetConsoleOutput"}
    return _required({_BUILDER}) | shared


def _required(files: set[Path]) -> set[str]:
    found = {
        _ALLOWED_BY.get(action, action)
        for file in sorted(files)
        for action in _calls(file)
    }
    return found.union(*(NEEDED_BY.get(action, set()) for action in found))


def requests_and_calls() -> tuple[int, int]:
    """How many requests the source sends, and how many calls `_CLIENT` recognises."""
    sources = [_code(file) for file in sorted(_SOURCE.rglob("*.rs"))]
    sent = sum(len(_SENT.findall(source)) for source in sources)
    return sent, sum(len(_CLIENT.findall(source)) for source in sources)


def _code(file: Path) -> str:
    """The source without comments and tests."""
    return re.sub(r"//.*", "", file.read_text()).split("#[cfg(test)]")[0]


def _calls(file: Path) -> Iterator[str]:
    """The IAM actions of calls such as `self.client.describe_subnets()`."""
    source = _code(file)
    service = "sqs" if "aws_sdk_sqs::Client" in source else "ec2"
    for field, method in _CLIENT.findall(source):
        operation = "".join(word.capitalize() for word in method.split("_"))
        yield f"{'sts' if field == 'sts' else service}:{operation}"


def read(name: str) -> list[Statement]:
    """The statements of a policy of docs/aws."""
    statements: list[Statement] = json.loads((FOLDER / name).read_text())["Statement"]
    return statements


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def actions(statements: list[Statement]) -> set[str]:
    return {action for one in statements for action in listed(one["Action"])}
