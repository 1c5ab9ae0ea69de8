"""Whether the image has the software that the workspace promises."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Mapping

from failure import Failure

# Without what the owner installed in the home: the image is looked at, and an owner
# who broke their own packages can log in and mend them.
ISOLATED = "-I"
PROGRAM = """\
import importlib, json, sys
for module in sys.argv[1:]:
    print(json.dumps({"importing": module}), flush=True)
    try:
        version = str(importlib.import_module(module).__version__)
    except BaseException as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        sys.exit(1)
    print(json.dumps({"module": module, "version": version}), flush=True)
"""
# What people call it, the module, and the variable with what is promised.
PROMISES = [
    ("PyTorch", "torch", "WORKSPACE_PYTORCH_VERSION"),
    ("OpenCV", "cv2", "WORKSPACE_OPENCV_VERSION"),
]


def check(environment: Mapping[str, str]) -> dict[str, str]:
    """The modules' versions; fails unless they import and are as promised."""
    python = shutil.which("python3", path=environment["PATH"])
    if python is None:
        raise Failure(f"the image has no python3 on its PATH, {environment['PATH']}")
    command = [python, ISOLATED, "-c", PROGRAM, *(m for _, m, _ in PROMISES)]
    ran = subprocess.run(
        command,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
    )
    said = [json.loads(line) for line in ran.stdout.splitlines() if line[:1] == "{"]
    if ran.returncode:
        raise Failure(_broken(python, said, ran.returncode))
    versions = {s["module"]: s["version"] for s in said if "module" in s}
    for title, module, variable in PROMISES:
        promised = environment.get(variable, "")
        if promised and not fits(versions[module], promised):
            raise Failure(
                f"the image has {title} {versions[module]} ({module} of {python}), and"
                f" the workspace asks for {promised}: ask for that version in the claim,"
                " or let the flavor name an image that has the other one"
            )
    return versions


def fits(version: str, promised: str) -> bool:
    """4.8.0 fits 4.8.0.76 and 4.8.0, but neither 4.8.01 nor 4.8."""
    rest = version[len(promised) :]
    return version.startswith(promised) and not rest[:1].isdigit()


def _broken(python: str, said: list[dict[str, str]], status: int) -> str:
    importing = [s["importing"] for s in said if "importing" in s]
    module = importing[-1] if importing else "anything"
    title = next((t for t, m, _ in PROMISES if m == module), "Python")
    errors = [s["error"] for s in said if "error" in s]
    why = errors[0] if errors else _ended(status)
    return (
        f"{title} does not work in this image: {python} cannot import {module}: {why}."
        f" Let the flavor name an image in which `python3 -c 'import {module}'` works"
    )


def _ended(status: int) -> str:
    if status < 0:
        # Programs built for other processors end by SIGILL.
        return f"it was ended by {signal.Signals(-status).name}"
    return f"it ended with {status}"
