"""Runs the commands of a page, unchanged, in one shell.

`python -m documents.suites install REGISTRY=… VERSION=…` runs the suite `install`. The
caller may set other values for the variables of a block marked `variables`.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from .markdown import ROOT, Block, blocks

_ASSIGNED = re.compile(r"^export (\w+)=", re.MULTILINE)
# A failed command fails the suite.
_HEAD = "set -euo pipefail\n"


class Failed(Exception):
    """A command of a suite failed. The message has the suite's output."""


def suite(name: str) -> list[Block]:
    """The blocks of a suite, in the order of their page. All must be of one page."""
    found = [block for block in blocks("sh") if name in block.suites()]
    if not found:
        raise ValueError(f"no block is marked <!-- test: {name} -->")
    pages = {block.file for block in found}
    if len(pages) != 1:
        raise ValueError(f"suite {name} is in several pages: {sorted(pages)}")
    return found


def script(found: list[Block], presets: Mapping[str, str]) -> str:
    """The shell script of a suite. It prints each block's place before its commands."""
    unknown = set(presets) - assigned(found)
    if unknown:
        raise ValueError(f"no block marked `variables` sets {sorted(unknown)}")
    parts = [_HEAD]
    for block in found:
        parts.append(f"echo {shlex.quote(f'### {block}')}\n{block.text}")
        if "variables" in block.marks:
            own = [n for n in _ASSIGNED.findall(block.text) if n in presets]
            parts += [f"export {n}={shlex.quote(presets[n])}\n" for n in own]
    return "".join(parts)


def assigned(found: list[Block]) -> set[str]:
    """The variables that a caller may set: those that `variables` blocks export."""
    variables = [block for block in found if "variables" in block.marks]
    return {n for block in variables for n in _ASSIGNED.findall(block.text)}


def run(
    name: str,
    presets: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float = 600,
) -> str:
    """Runs a suite in the repository's root. Returns its output."""
    ran = subprocess.run(
        ["bash", "-c", script(suite(name), presets or {})],
        cwd=ROOT,
        env=dict(environment if environment is not None else os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        check=False,
    )
    if ran.returncode != 0:
        raise Failed(f"suite {name}: exit {ran.returncode}\n{ran.stdout}")
    return ran.stdout


def emulator_platform(folder: Path, endpoint: str) -> dict[str, str]:
    """Presets for the EC2 emulator instead of an AWS account: the files of
    examples/platform, with another provider configuration and credentials."""
    for file in (ROOT / "examples/platform").glob("*.yaml"):
        (folder / file.name).write_text(file.read_text())
    (folder / "provider-config.yaml").write_text(f"""\
apiVersion: gpu.platform.acme.io/v1alpha1
kind: ClusterProviderConfig
metadata: {{name: default}}
spec:
  credentials:
    source: Secret
    secretRef: {{namespace: crossplane-system, name: aws-credentials, key: credentials}}
  endpoint: {{url: {{type: Static, static: "{endpoint}"}}}}
""")
    profile = folder / "credentials"
    profile.write_text(
        "[default]\naws_access_key_id = test\naws_secret_access_key = test\n"
    )
    return {"PLATFORM": str(folder), "CREDENTIALS": str(profile)}


if __name__ == "__main__":
    try:
        print(run(sys.argv[1], dict(one.split("=", 1) for one in sys.argv[2:])))
    except (Failed, ValueError, IndexError) as error:
        sys.exit(f"error: {error}")
