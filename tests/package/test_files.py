"""Package files: what is in them, and nothing of the machine that built them."""

import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ["PACKAGES"])
FILES = sorted(FOLDER.glob("*.xpkg"))
BILLS = sorted(FOLDER.glob("*.cdx.json"))
# What the function's image may weigh, as registries send it.
FUNCTION_BYTES = 15 * 1024 * 1024
# Where programs look for the certificate authorities that they trust.
AUTHORITIES = "etc/ssl/certs/ca-certificates.crt"
# Crossplane's specification names layers by labels until a package is pushed.
LABEL = "io.crossplane.xpkg:"


@dataclass
class Package:
    """A package file, unpacked."""

    config: dict[str, Any]
    layers: dict[str, bytes]

    def layer(self, annotation: str) -> bytes:
        """The uncompressed layer that a label gives an annotation."""
        labels = self.config["config"]["Labels"]
        digests = [
            key.removeprefix(LABEL)
            for key, value in labels.items()
            if key.startswith(LABEL) and value == annotation
        ]
        assert len(digests) == 1, f"layers annotated {annotation}: {labels}"
        return self.layers[digests[0]]


def read(path: Path) -> Package:
    with tarfile.open(path) as archive:

        def content(name: str) -> bytes:
            member = archive.extractfile(name)
            assert member is not None
            return member.read()

        manifest = json.loads(content("manifest.json"))[0]
        layers = {
            f"sha256:{name.removesuffix('.tar.gz').removeprefix('sha256:')}": content(
                name
            )
            for name in manifest["Layers"]
        }
        config = json.loads(content(manifest["Config"]))
    return Package(
        config, {name: gzip.decompress(layer) for name, layer in layers.items()}
    )


def documents(layer: bytes, name: str) -> list[Any]:
    with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
        member = archive.extractfile(name)
        assert member is not None
        return [one for one in yaml.safe_load_all(member.read()) if one]


def test_packages_were_built() -> None:
    assert FILES and BILLS, f"no packages in {FOLDER}: cargo xtask package build"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_crossplane_finds_one_package_with_its_kinds(path: Path) -> None:
    objects = documents(read(path).layer("base"), "package.yaml")
    meta = [one for one in objects if one["apiVersion"] == "meta.pkg.crossplane.io/v1"]
    assert len(meta) == 1
    assert path.stem.startswith(meta[0]["metadata"]["name"])
    assert len(objects) > 1, "no kind is in it"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_examples_are_those_of_the_package(path: Path) -> None:
    package = read(path)
    defined = documents(package.layer("base"), "package.yaml")[0]["kind"]
    kinds = {
        one["kind"] for one in documents(package.layer("upbound"), ".up/examples.yaml")
    }
    expected = {
        "Provider": {"SpotPool", "SpotLease", "ClusterProviderConfig"},
        "Function": {"EnvironmentConfig"},
        "Configuration": {"EnvironmentConfig"},
    }
    assert expected[defined] <= kinds
    if defined == "Provider":
        assert "GpuDevWorkspaceClaim" not in kinds


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_tells_when_a_package_was_built(path: Path) -> None:
    package = read(path)
    # Go's zero time is what the CLI writes where it is given none.
    assert package.config.get("created", "0001-01-01T00:00:00Z").startswith("0001")
    for layer in package.layers.values():
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            for member in archive:
                assert member.mtime <= 0, f"{member.name}: {member.mtime}"


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.stem[0] in "fp"], ids=lambda path: path.stem
)
def test_a_program_runs_as_the_user_that_crossplane_gives_it(path: Path) -> None:
    config = read(path).config
    assert config["os"] == "linux"
    assert config["architecture"] in ("amd64", "arm64")
    assert config["config"]["User"] == "2000:2000"
    assert config["config"]["Entrypoint"][0].startswith("/")


def test_the_function_is_small() -> None:
    sizes = {path.name: path.stat().st_size for path in FOLDER.glob("function-*.xpkg")}
    assert sizes
    assert all(size <= FUNCTION_BYTES for size in sizes.values()), sizes


@pytest.mark.parametrize("path", BILLS, ids=lambda path: path.stem)
def test_a_bill_of_materials_is_valid_and_whole(path: Path) -> None:
    text = path.read_text()
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    assert error is None, error
    bill = json.loads(text)
    listed = {one["bom-ref"] for one in bill["components"]}
    root = bill["metadata"]["component"]["bom-ref"]
    named = {one["ref"] for one in bill["dependencies"]}
    assert named == listed | {root}
    for one in bill["dependencies"]:
        assert set(one["dependsOn"]) <= listed, one["ref"]
    assert all(one.get("licenses") for one in bill["components"])


@pytest.mark.parametrize("path", BILLS, ids=lambda path: path.stem)
def test_a_program_trusts_the_authorities_that_its_bill_names(path: Path) -> None:
    """They are Mozilla's, of the release that Cargo.lock pins, whoever built the image."""
    package = read(path.with_name(path.name.removesuffix(".cdx.json") + ".xpkg"))
    found = []
    for layer in package.layers.values():
        with tarfile.open(fileobj=io.BytesIO(layer)) as archive:
            if AUTHORITIES in archive.getnames():
                member = archive.extractfile(AUTHORITIES)
                assert member is not None
                found.append(member.read())
    (authorities,) = found
    components = json.loads(path.read_text())["components"]
    (listed,) = [one for one in components if one["name"] == AUTHORITIES]
    digest = hashlib.sha256(authorities).hexdigest()
    assert listed["hashes"] == [{"alg": "SHA-256", "content": digest}]
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    pinned = {f"pkg:cargo/{one['name']}@{one['version']}" for one in lock}
    assert listed["purl"] in pinned
    certificates = re.findall(rb"-----BEGIN CERTIFICATE-----", authorities)
    assert len(certificates) > 100
