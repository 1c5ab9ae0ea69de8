"""The portal's image, and the program in it: what people run is what is measured."""

import json
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

from cluster import ROOT

# Where `cargo xtask image portal --release --layout` has written it.
LAYOUT = Path(os.environ.get("PORTAL_IMAGE", ROOT / "target/bench-portal/image"))


@dataclass(frozen=True)
class Image:
    program: Path
    # All of it, compressed, as a registry has it.
    size: int


def unpacked(folder: Path, layout: Path = LAYOUT) -> Image:
    """Writes the program of an OCI image layout into a folder."""

    def blob(of: dict[str, str]) -> Path:
        algorithm, _, digest = of["digest"].partition(":")
        return layout / "blobs" / algorithm / digest

    index = json.loads((layout / "index.json").read_text())
    (described,) = index["manifests"]
    manifest = json.loads(blob(described).read_text())
    layers = manifest["layers"]
    sizes = [described["size"], manifest["config"]["size"]]
    sizes += [layer["size"] for layer in layers]
    with tarfile.open(blob(layers[0])) as files:
        files.extract("gpu-portal", folder, filter="data")
    return Image(folder / "gpu-portal", sum(sizes))
