"""cloud-init user data of a workspace."""

import json
import pathlib

import yaml

SETUP_PATH = "/usr/local/lib/gpu-workspace/setup"
HOME_UNIT = "gpu-workspace-home.service"


def read_constant_files(folder: pathlib.Path) -> dict[str, str]:
    """Read the files that every workspace gets as they are, by name."""
    names = ("setup.sh", "home.sh", "home.service", "sshd.conf")
    return {name: (folder / name).read_text() for name in names}


def document(
    parameters: dict, image: dict, keys: list, sudo: bool, constant: dict[str, str]
) -> str:
    """Write the document."""
    user = {
        "name": "developer",
        "lock_passwd": True,
        "shell": "/bin/bash",
    }
    if sudo:
        user["sudo"] = "ALL=(ALL) NOPASSWD:ALL"
    if keys:
        user["ssh_authorized_keys"] = keys
    described = _described(parameters, image)
    files = [
        _file("/etc/gpu-workspace/workspace.json", "0644", described),
        _file("/etc/gpu-workspace/requirements.txt", "0644", _requirements(parameters)),
        _file(SETUP_PATH, "0755", constant["setup.sh"]),
    ]
    commands = []
    if "home" in parameters:
        files += [
            _file("/usr/local/lib/gpu-workspace/home", "0755", constant["home.sh"]),
            _file(f"/etc/systemd/system/{HOME_UNIT}", "0644", constant["home.service"]),
            _file(
                "/etc/ssh/sshd_config.d/10-gpu-workspace.conf",
                "0644",
                constant["sshd.conf"],
            ),
        ]
        if keys:
            own = "/home/developer/.ssh/authorized_keys"
            kept = "/etc/gpu-workspace/authorized_keys"
            commands.append(["install", "-m", "0644", own, kept])
        commands.append(["systemctl", "daemon-reload"])
        commands.append(["systemctl", "enable", "--now", HOME_UNIT])
    config = {
        "ssh_pwauth": False,
        "users": [user],
        "write_files": files,
        "runcmd": [*commands, [SETUP_PATH]],
    }
    return "#cloud-config\n" + yaml.dump(config, Dumper=yaml.CSafeDumper)


def _file(path: str, permissions: str, content: str) -> dict:
    return {"path": path, "permissions": permissions, "content": content}


def _described(parameters: dict, image: dict) -> str:
    described = {
        "owner": parameters["owner"],
        "opencvVersion": parameters["opencvVersion"],
    }
    own = image.get("pytorch")
    wanted = parameters.get("pytorchVersion")
    if own and wanted in (None, own["version"]):
        described["pytorchVersion"] = own["version"]
        described["pytorchPython"] = own["python"]
    elif wanted:
        described["pytorchVersion"] = wanted
        described["pytorchIndexUrl"] = image["pytorchIndexUrl"]
    return json.dumps(described, separators=(",", ":")) + "\n"


def _requirements(parameters: dict) -> str:
    """OpenCV releases before 4.10 are built against NumPy 1."""
    opencv = parameters["opencvVersion"]
    parts = opencv.split(".")
    lines = [f"opencv-python-headless=={opencv}" + ("" if len(parts) > 3 else ".*")]
    if (int(parts[0]), int(parts[1])) < (4, 10):
        lines.append("numpy<2")
    return "\n".join(lines) + "\n"
