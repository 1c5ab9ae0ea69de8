"""What the emulator's images add to the root that machines start from.

An image for workspaces brings PyTorch, in a Python that makes virtual environments; here
PyTorch is a stub of the version that the catalogue's example names. cloud-init asks EC2's
metadata service.
"""

import io
import shutil
import subprocess
import zipfile
from pathlib import Path

from machines import cache, wheels
from machines.isolation import isolated
from machines.root import Root

PYTORCH = "2.12.0"

SETTINGS = """\
# The metadata service alone, by its address: no name resolves.
datasource_list: [Ec2]
datasource: {Ec2: {metadata_urls: ["http://169.254.169.254"]}}
# Network and disk come with the machine.
network: {config: disabled}
growpart: {mode: "off"}
resize_rootfs: false
locale: C.UTF-8
apt: {preserve_sources_list: true}
"""
PIP = "[global]\nindex-url = file:///srv/packages\ndisable-pip-version-check = true\n"
# Timers of the distribution that would look for a network.
WITHOUT = ["apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer"]

MAKE = """\
set -eu
mount -t tmpfs made "$2"
root=$2/root
mkdir "$root"
mount -t overlay -o "lowerdir=$1,upperdir=$3,workdir=$4" made "$root"
export DEBIAN_FRONTEND=noninteractive
apt() { chroot "$root" apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
apt update
apt install -y python3-venv
apt clean
chroot "$root" python3 -m venv --without-pip /opt/pytorch
chroot "$root" systemctl --quiet mask $5
# The network is there before the first program; cloud-init would wait for an answer.
rm -f "$2/root/usr/sbin/dhclient" "$2/root/usr/sbin/dhcpcd"
"""


def ensure(root: Root) -> Path:
    """The layer above the root."""
    key = cache.key(Path(__file__).read_text(), root.folder.name)
    place = cache.entry("machine-images", "pytorch", key, lambda at: _make(at, root))
    return place / "layer"


def _make(folder: Path, root: Root) -> None:
    layer, work = folder / "layer", folder / "work"
    layer.mkdir()
    work.mkdir()
    arguments = [root.files, root.mountpoint, layer, work, " ".join(WITHOUT)]
    log = cache.log("machine-image")
    with log.open("wb") as output:
        made = subprocess.run(
            [*isolated(), "sh", "-c", MAKE, "-", *map(str, arguments)],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    if made.returncode:
        end = "\n".join(log.read_text().splitlines()[-15:])
        raise RuntimeError(f"the machines' image failed, see {log}:\n{end}")
    shutil.rmtree(work)
    site = layer / f"opt/pytorch/lib/python{root.python}/site-packages"
    _, wheel = wheels.torch(PYTORCH)
    zipfile.ZipFile(io.BytesIO(wheel)).extractall(site)
    _write(layer / "etc/cloud/cloud.cfg.d/99-machine.cfg", SETTINGS)
    _write(layer / "etc/pip.conf", PIP)
    # What no name server answers fails at once, instead of after a minute.
    _write(layer / "etc/resolv.conf", "# There is no name server.\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
