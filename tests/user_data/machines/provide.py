"""Provides an EC2 emulator with machines: `python -m machines.provide [URL]`.

Makes what they need, once: a root file system, an image, and wheels for what the
function's goldens install. Without a URL, that is all. Prints the version of the PyTorch
that the image has.
"""

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path

from machines import documents, goldens, image, prerequisites, root, wheels


def folders() -> dict[str, str]:
    """The folders of which machines consist, for the emulator's control API."""
    prerequisites.ensure()
    base = root.ensure()
    rendered = [d for name in goldens.names() for d in goldens.documents(name)]
    wanted = {documents.requirements(d) for d in rendered}
    return {
        "root": str(base.files),
        "image": str(image.ensure(base)),
        "mountpoint": str(base.mountpoint),
        "packages": str(wheels.ensure(base.python, wanted)),
    }


def provide(url: str, made: dict[str, str]) -> None:
    request = urllib.request.Request(
        f"{url}/_emulator/machines", data=json.dumps(made).encode()
    )
    try:
        urllib.request.urlopen(request, timeout=20).close()
    except urllib.error.HTTPError as error:
        raise LookupError(f"{url} refuses machines: {error.read().decode()}") from error


if __name__ == "__main__":
    try:
        made = folders()
        if sys.argv[1:]:
            provide(sys.argv[1], made)
        print(image.pytorch(Path(made["image"])))
    except (LookupError, RuntimeError, OSError) as problem:
        sys.exit(f"error: {problem}")
