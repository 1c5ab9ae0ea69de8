"""The user data that the function renders, read from its goldens."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

FUNCTION = Path(__file__).resolve().parents[3] / "function"
CASES = FUNCTION / "tests/cases"
SCRIPTS = FUNCTION / "ec2/src/user_data"
# The function inserts the script for host keys before this line of the home's script.
HOST_KEYS_BEFORE = "uid=$(id -u developer)\n"


def names() -> list[str]:
    """The cases that have user data."""
    found = [path.parent.name for path in sorted(CASES.glob("*/response.yaml"))]
    found = [name for name in found if documents(name)]
    assert found, f"no golden below {CASES} has user data"
    return found


def rendered() -> list[str]:
    """The cases for which the function renders user data. In the others it only repeats
    the user data of observed machines."""
    return [name for name in names() if set(documents(name)) - observed(name)]


@cache
def documents(case: str) -> list[str]:
    """All user data in the desired resources of a case.

    In some cases, the user data of an observed machine is only a comment. The function
    repeats it in desired resources, and it is left out here.
    """
    desired = _read(case, "response").get("desired") or {}
    found = [_with_scripts(d) for d in _user_data(desired.get("resources"))]
    return [
        d for d in found if yaml.load(d, yaml.CSafeLoader) or d not in observed(case)
    ]


def document(case: str) -> str:
    (document,) = documents(case)
    return document


@cache
def observed(case: str) -> set[str]:
    """All user data in the observed resources. Existing machines keep theirs."""
    return set(_user_data(request(case)["observed"].get("resources")))


def public_keys(case: str) -> list[str]:
    """The keys that user data must have: under v3 only those of the policy's certificate
    authorities, since the others are in tags."""
    asked = request(case)
    keys = [] if is_v3(case) else owners_keys(case)
    owner = _owner(asked)
    authorities = (asked["input"].get("ssh") or {}).get("userAuthorities", [])
    principals = f'cert-authority,principals="{owner}"'
    return [*keys, *(f"{principals} {authority}" for authority in authorities)]


def keys_in_tags(case: str) -> list[str]:
    """The keys in the tags of the case's machine, or those that its pool puts there."""
    desired = _read(case, "response")["desired"]["resources"]
    specs = [
        one["resource"].get("spec", {}).get("forProvider", {})
        for one in desired.values()
    ]
    machines = [spec for spec in specs if "userData" in spec]
    if len(machines) > 1:
        # The old machine serves until the new one does.
        machines = [one for one in machines if one["userData"] not in observed(case)]
    (spec,) = machines
    if "authorizedKeys" in spec:
        keys: list[str] = spec["authorizedKeys"]
        return keys
    tags = {tag: key for tag, key in spec["tags"].items() if "authorized-key-" in tag}
    return [key for _, key in sorted(tags.items())]


def is_v3(case: str) -> bool:
    return request(case)["input"]["behaviourVersion"] == "v3"


def may_lack_keys(case: str) -> bool:
    return request(case)["input"].get("requireAccess") is False


def _owner(asked: dict[str, Any]) -> str:
    """The owner that the claim names, or else the label of its Namespace."""
    parameters = asked["observed"]["composite"]["resource"]["spec"]["parameters"]
    if "owner" in parameters:
        return str(parameters["owner"])
    label = asked["input"]["ownerBinding"]["namespaceLabel"]
    (namespace,) = asked["requiredResources"]["namespace"]["items"]
    return str(namespace["resource"]["metadata"]["labels"][label])


def owners_keys(case: str) -> list[str]:
    """The owner's keys: those of the catalogue, then those of the claim, then under v3
    those of the owner's DevUser, without duplicates."""
    asked = request(case)
    (catalogue,) = asked["requiredResources"]["catalogue"]["items"]
    parameters = asked["observed"]["composite"]["resource"]["spec"]["parameters"]
    owners = catalogue["resource"]["data"].get("owners") or {}
    known = owners.get(_owner(asked), {}).get("publicKeys", [])
    own = parameters.get("ssh", {}).get("publicKeys", [])
    policy = asked["input"]
    counts = policy["behaviourVersion"] == "v3" and policy.get("cluster", {}).get(
        "devUsers"
    )
    users = asked["requiredResources"].get("dev-user", {}).get("items", [])
    theirs = [
        key for u in users if counts for key in u["resource"]["spec"]["publicKeys"]
    ]
    return list(dict.fromkeys(known + own + theirs))


@cache
def request(case: str) -> dict[str, Any]:
    """The request of a case. Its file is complete, or has a merge patch (RFC 7386) of
    another case's request."""
    written = _read(case, "request")
    if "extends" in written:
        written = _merged(request(written["extends"]), written["change"])
    return written


def _with_scripts(document: str) -> str:
    """Replaces the names of script files in a golden by the texts of the scripts."""

    def text(line: re.Match[str]) -> str:
        script = (SCRIPTS / line[1]).read_text()
        if line[2]:
            home, host_keys = script, (SCRIPTS / line[2]).read_text()
            script = home.replace(HOST_KEYS_BEFORE, host_keys + HOST_KEYS_BEFORE)
        return re.sub("^(?=.)", "    ", script, flags=re.MULTILINE)

    return re.sub(
        r"^    \((\S+\.(?:sh|py))(?: and (\S+\.sh))?\)\n",
        text,
        document,
        flags=re.MULTILINE,
    )


def _read(case: str, name: str) -> dict[str, Any]:
    text = (CASES / case / f"{name}.yaml").read_text()
    # libyaml is ten times as fast as the loader in Python.
    content = yaml.load(text, Loader=yaml.CSafeLoader)
    assert isinstance(content, dict)
    return content


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), change)
    return result


def _user_data(resources: Any) -> Iterator[str]:
    if isinstance(resources, dict):
        for name, value in resources.items():
            if name == "userData":
                yield value
            else:
                yield from _user_data(value)
    elif isinstance(resources, list):
        for value in resources:
            yield from _user_data(value)
