"""The root file system that every machine starts from, made once by mmdebstrap.

On Debian it is always Debian 12: later releases have Pythons for which the NumPy that
OpenCV 4.8 needs has no wheel. Elsewhere it is the distribution of the machine that runs
the tests. The packages come from that machine's own apt sources.
"""

import hashlib
import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from machines import cache
from machines.isolation import isolated

# What an image for instances has. python3-venv is left out, as Ubuntu's images do,
# so that the setup has to install it.
PACKAGES = [
    "apt",
    "ca-certificates",
    "cloud-init",
    "git",
    "locales",
    "lsb-release",
    "openssh-server",
    "rsync",
]
PACKAGES += ["sudo", "systemd"]
# What the tests themselves use.
TOOLS = ["fdisk", "iproute2", "shellcheck", "xfsprogs"]
# What the machines can install, without a network, from a repository of their own.
OFFERED = ["python3-torch", "python3-venv"]

SETTINGS = """\
# No cloud, no network, no disk: what of cloud-init would look for them.
datasource_list: [NoCloud]
network: {config: disabled}
growpart: {mode: "off"}
resize_rootfs: false
locale: C.UTF-8
apt: {preserve_sources_list: true}
"""


@dataclass(frozen=True)
class Root:
    # The entry of the cache.
    folder: Path

    @property
    def files(self) -> Path:
        return self.folder / "root"

    @property
    def mountpoint(self) -> Path:
        """An empty folder, for whoever needs to mount something in private."""
        return self.folder / "mountpoint"

    @property
    def python(self) -> str:
        """The version of its Python, such as 3.11."""
        return (self.files / "usr/bin/python3").readlink().name.removeprefix("python")


def ensure() -> Root:
    distribution = platform.freedesktop_os_release()
    suite = _suite(distribution)
    sources = _sources(distribution, suite)
    recipe = [Path(__file__).read_text(), platform.machine(), suite]
    texts = [Path(s).read_text() if s.startswith("/") else s for s in sources]
    make = lambda folder: _make(folder, suite, sources)
    entry = cache.entry("user-data-roots", suite, cache.key(*recipe, *texts), make)
    return Root(entry)


def _suite(distribution: dict[str, str]) -> str:
    if suite := os.environ.get("USER_DATA_SUITE"):
        return suite
    if distribution["ID"] == "debian":
        return "bookworm"
    return distribution["VERSION_CODENAME"]


def _sources(distribution: dict[str, str], suite: str) -> list[str]:
    """Files or lines of apt sources, as mmdebstrap takes them."""
    if source := os.environ.get("USER_DATA_SOURCES"):
        return [source]
    if suite != distribution["VERSION_CODENAME"]:
        return [f"deb {_mirror()} {suite} main"]
    apt = Path("/etc/apt")
    parts = [p for e in ("list", "sources") for p in apt.glob(f"sources.list.d/*.{e}")]
    files = [apt / "sources.list", *sorted(parts)]
    return [str(path) for path in files if path.exists()]


def _mirror() -> str:
    """The mirror from which this machine's apt gets Debian."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Origin: Debian"]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    mirrors = found.stdout.splitlines()
    if not mirrors:
        raise LookupError(
            "apt knows no mirror of Debian: run apt-get update, or set USER_DATA_SOURCES"
            " to a file with apt sources"
        )
    return mirrors[0]


def _make(folder: Path, suite: str, sources: list[str]) -> None:
    root = folder / "root"
    (folder / "mountpoint").mkdir()
    fetch = (
        'mkdir -p "$1/srv/apt/partial" && APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get'
        ' -qq --yes --download-only -o Dir::Cache::Archives="$1/srv/apt"'
        f" install {' '.join(OFFERED)}"
    )
    command = [
        *[*isolated(), "mmdebstrap", "--mode=root", "--variant=minbase"],
        f"--include={','.join(PACKAGES + TOOLS)}",
        "--dpkgopt=force-unsafe-io",
        f"--customize-hook={fetch}",
        *[suite, str(root), *sources],
    ]
    log = cache.log("user-data-root")
    # If it is killed, what it leaves goes with the unfinished entry.
    temporary = folder / "temporary"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    with log.open("wb") as output:
        made = subprocess.run(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    if made.returncode:
        end = "\n".join(log.read_text().splitlines()[-15:])
        raise RuntimeError(f"mmdebstrap failed, see {log}:\n{end}")
    shutil.rmtree(temporary)
    _offer(root / "srv/apt")
    for source in (root / "etc/apt").rglob("*sources*"):
        if source.is_file():
            source.unlink()
    (root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/srv/apt ./\n")
    (root / "etc/cloud/cloud.cfg.d/99-machine.cfg").write_text(SETTINGS)


def _offer(folder: Path) -> None:
    """Makes a folder of packages a repository, as deb-src.5's flat format has it."""
    index = ""
    for package in sorted(folder.glob("*.deb")):
        fields = ["dpkg-deb", "--field", str(package)]
        index += subprocess.run(
            fields, check=True, capture_output=True, text=True
        ).stdout
        digest = hashlib.sha256(package.read_bytes()).hexdigest()
        index += f"Filename: ./{package.name}\nSize: {package.stat().st_size}\n"
        index += f"SHA256: {digest}\n\n"
    (folder / "Packages").write_text(index)
