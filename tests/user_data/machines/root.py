"""The root file system that every machine starts from, made once by mmdebstrap.

It is the distribution of the machine that runs the tests, from that machine's own
apt sources.
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
PACKAGES = ["apt", "cloud-init", "locales", "lsb-release", "openssh-server"]
PACKAGES += ["sudo", "systemd"]
# What the tests themselves use.
TOOLS = ["fdisk", "iproute2", "shellcheck", "xfsprogs"]
# What the machines can install, without a network, from a repository of their own.
OFFERED = ["python3-venv"]

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
    suite, sources = _suite(), _sources()
    recipe = [Path(__file__).read_text(), platform.machine(), suite]
    key = cache.key(*recipe, *(path.read_text() for path in sources))
    make = lambda folder: _make(folder, suite, sources)
    return Root(cache.entry("user-data-roots", suite, key, make))


def _suite() -> str:
    if suite := os.environ.get("USER_DATA_SUITE"):
        return suite
    return platform.freedesktop_os_release()["VERSION_CODENAME"]


def _sources() -> list[Path]:
    if source := os.environ.get("USER_DATA_SOURCES"):
        return [Path(source)]
    apt = Path("/etc/apt")
    parts = [p for e in ("list", "sources") for p in apt.glob(f"sources.list.d/*.{e}")]
    return [p for p in [apt / "sources.list", *sorted(parts)] if p.exists()]


def _make(folder: Path, suite: str, sources: list[Path]) -> None:
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
        *[suite, str(root), *map(str, sources)],
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
