"""Reads user data, and replaces parts for tests, such as keys."""

import json
import re
from collections.abc import Callable
from typing import Any

import yaml

HEADER = "#cloud-config\n"
FILES = "/etc/gpu-workspace"
KEYS = f"{FILES}/keys/developer"
SETUP = "/usr/local/lib/gpu-workspace/setup"


def parsed(document: str) -> dict[str, Any]:
    config = yaml.safe_load(document)
    assert isinstance(config, dict)
    return config


def changed(document: str, *changes: Callable[[dict[str, Any]], None]) -> str:
    config = parsed(document)
    for change in changes:
        change(config)
    text: str = yaml.safe_dump(config, sort_keys=False)
    return HEADER + text


def file(config: dict[str, Any], path: str) -> dict[str, str]:
    (file,) = [file for file in config["write_files"] if file["path"] == path]
    assert isinstance(file, dict)
    return file


def requirements(document: str) -> str:
    return file(parsed(document), f"{FILES}/requirements.txt")["content"]


def workspace(document: str) -> dict[str, str]:
    content = file(parsed(document), f"{FILES}/workspace.json")["content"]
    settings = json.loads(content)
    assert isinstance(settings, dict)
    return settings


def keys(document: str) -> list[str]:
    """All public keys that give access to the workspace."""
    config = parsed(document)
    (user,) = config["users"]
    files = [f for f in config["write_files"] if f["path"] == KEYS]
    written = [key for f in files for key in f["content"].splitlines()]
    return [*user.get("ssh_authorized_keys", []), *written]


def with_key(key: str) -> Callable[[dict[str, Any]], None]:
    """Replaces the owner's first key by one whose private key the test has."""

    def change(config: dict[str, Any]) -> None:
        for written in config["write_files"]:
            if written["path"] == KEYS:
                _, *others = written["content"].splitlines()
                written["content"] = "".join(f"{k}\n" for k in [key, *others])
                return
        authorized = config["users"][0].setdefault("ssh_authorized_keys", [])
        authorized[:1] = [key]

    return change


def with_authority(key: str) -> Callable[[dict[str, Any]], None]:
    """Replaces the key of the policy's certificate authority."""

    def change(config: dict[str, Any]) -> None:
        written = file(config, KEYS)
        options, *_ = written["content"].split(" ", 1)
        assert options.startswith("cert-authority,")
        written["content"] = f"{options} {key}\n"

    return change


def with_pytorch_index(url: str) -> Callable[[dict[str, Any]], None]:
    return with_settings(pytorchIndexUrl=url)


def with_settings(**settings: str) -> Callable[[dict[str, Any]], None]:
    """Changes fields of workspace.json."""

    def change(config: dict[str, Any]) -> None:
        written = file(config, f"{FILES}/workspace.json")
        written["content"] = json.dumps(json.loads(written["content"]) | settings)

    return change


def with_packages_from(*options: str) -> Callable[[dict[str, Any]], None]:
    """Replaces the index in requirements.txt by these options of pip."""

    def change(config: dict[str, Any]) -> None:
        written = file(config, f"{FILES}/requirements.txt")
        lines = written["content"].splitlines()
        kept = [line for line in lines if not line.startswith("--index-url")]
        written["content"] = "".join(f"{line}\n" for line in [*options, *kept])

    return change


def with_another_digest(config: dict[str, Any]) -> None:
    """Makes the index serve files that differ from the known ones, as seen from the
    machine."""
    requirements = file(config, f"{FILES}/requirements.txt")
    changed = re.sub(r"sha256:[0-9a-f]", "sha256:x", requirements["content"])
    assert changed != requirements["content"]
    requirements["content"] = changed.replace("sha256:x", "sha256:0")


def without_setup(config: dict[str, Any]) -> None:
    """Removes the installation of software, which takes long and which many tests do
    not need."""
    file(config, SETUP)["content"] = "#!/bin/sh\n"
