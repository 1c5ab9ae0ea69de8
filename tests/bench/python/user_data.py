"""cloud-init user data of a workspace."""

import json
import pathlib

import yaml

SETUP_PATH = "/usr/local/lib/gpu-workspace/setup"
HOME_UNIT = "gpu-workspace-home.service"


def read_constant_files(folder: pathlib.Path) -> dict[str, str]:
    """Read the files that every workspace gets as they are, by name."""
    names = ("setup_v1.sh", "setup.sh", "home.sh", "home.service", "sshd.conf")
    return {name: (folder / name).read_text() for name in names}


def document(
    parameters: dict, software: dict, keys: list, policy: dict, constant: dict[str, str]
) -> str:
    """Write the document."""
    user = {"name": "developer", "lock_passwd": True, "shell": "/bin/bash"}
    if policy["instance"].get("sudo"):
        user["sudo"] = "ALL=(ALL) NOPASSWD:ALL"
    setup = "setup_v1.sh" if policy["behaviourVersion"] == "v1" else "setup.sh"
    described = json.dumps(software, separators=(",", ":")) + "\n"
    requirements = _requirements(parameters)
    files = [
        _file("/etc/gpu-workspace/workspace.json", "0644", described),
        _file("/etc/gpu-workspace/requirements.txt", "0644", requirements),
        _file(SETUP_PATH, "0755", constant[setup]),
    ]
    commands = []
    if "home" in parameters:
        sshd = "/etc/ssh/sshd_config.d/10-gpu-workspace.conf"
        own_keys = "".join(f"{key}\n" for key in keys)
        files += [
            _file("/usr/local/lib/gpu-workspace/home", "0755", constant["home.sh"]),
            _file(f"/etc/systemd/system/{HOME_UNIT}", "0644", constant["home.service"]),
            _file(sshd, "0644", constant["sshd.conf"]),
            _file("/etc/gpu-workspace/keys/developer", "0644", own_keys),
        ]
        commands.append(["systemctl", "daemon-reload"])
        commands.append(["systemctl", "enable", HOME_UNIT])
        commands.append(["systemctl", "start", "--no-block", HOME_UNIT])
    elif keys:
        user["ssh_authorized_keys"] = keys
    config = {
        "ssh_pwauth": False,
        "users": [user],
        "write_files": files,
        "runcmd": [*commands, [SETUP_PATH]],
    }
    return "#cloud-config\n" + yaml.dump(config, Dumper=yaml.CSafeDumper)


def _file(path: str, permissions: str, content: str) -> dict:
    return {"path": path, "permissions": permissions, "content": content}


def software_of(parameters: dict, image: dict) -> dict:
    """The workspace's software: the image's PyTorch, or another version."""
    software = {
        "owner": parameters["owner"],
        "opencvVersion": parameters["opencvVersion"],
    }
    own = image.get("pytorch")
    wanted = parameters.get("pytorchVersion")
    if own and wanted in (None, own["version"]):
        software["pytorchVersion"] = own["version"]
        software["pytorchPython"] = own["python"]
    elif wanted:
        software["pytorchVersion"] = wanted
        software["pytorchIndexUrl"] = image["pytorchIndexUrl"]
    return software


def _requirements(parameters: dict) -> str:
    """OpenCV releases before 4.10 are built against NumPy 1."""
    opencv = parameters["opencvVersion"]
    parts = opencv.split(".")
    lines = [f"opencv-python-headless=={opencv}" + ("" if len(parts) > 3 else ".*")]
    if (int(parts[0]), int(parts[1])) < (4, 10):
        lines.append("numpy<2")
    return "\n".join(lines) + "\n"
