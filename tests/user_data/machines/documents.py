"""Reading user data, and changing in it what only a test has."""

import json
from collections.abc import Callable
from typing import Any

import yaml

HEADER = "#cloud-config\n"
FILES = "/etc/gpu-workspace"


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


def with_key(key: str) -> Callable[[dict[str, Any]], None]:
    """The owner's first key becomes one whose private half the test has."""

    def change(config: dict[str, Any]) -> None:
        keys = config["users"][0].setdefault("ssh_authorized_keys", [])
        keys[:1] = [key]

    return change


def with_pytorch_index(url: str) -> Callable[[dict[str, Any]], None]:
    def change(config: dict[str, Any]) -> None:
        settings = file(config, f"{FILES}/workspace.json")
        content = json.loads(settings["content"]) | {"pytorchIndexUrl": url}
        settings["content"] = json.dumps(content)

    return change


def without_setup(config: dict[str, Any]) -> None:
    """Only users, keys and files: what is there before the setup runs."""
    del config["runcmd"]


def with_home(
    files: dict[str, tuple[str, str]], keys: str, unit: str
) -> Callable[[dict[str, Any]], None]:
    """A home volume: its files, and the keys where an old home cannot hide them."""

    def change(config: dict[str, Any]) -> None:
        (user,) = config["users"]
        content = "".join(f"{key}\n" for key in user.pop("ssh_authorized_keys"))
        for path, (text, mode) in {**files, keys: (content, "0644")}.items():
            write = {"path": path, "permissions": mode, "content": text}
            config["write_files"].append(write)
        start = [["systemctl", verb, unit] for verb in ("enable", "start")]
        # Before the setup, which takes minutes.
        config["runcmd"] = start + config.get("runcmd", [])

    return change
