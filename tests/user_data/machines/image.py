"""What the emulator's images add to the root that machines start from.

An image for workspaces brings PyTorch, in a Python that makes virtual environments. Here it
is the distribution's own PyTorch, without CUDA. cloud-init asks EC2's metadata service.
"""

import re
import shutil
import subprocess
from pathlib import Path

from machines import cache
from machines.isolation import isolated
from machines.root import Root

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
# Byte code of what pip installs takes half of its time, and no test reads it.
PIP = """\
[global]
index-url = file:///srv/packages
disable-pip-version-check = true
[install]
compile = no
"""
# Timers of the distribution that would look for a network.
WITHOUT = ["apt-daily.timer", "apt-daily-upgrade.timer", "fstrim.timer"]

# What an update of the system does at the first boot, for so many seconds as the instance's
# tag says: it holds apt's lock. The image then makes no virtual environments, so that the
# setup needs apt.
BUSY_APT = """\
#!/usr/bin/python3
import fcntl, os, socket, subprocess, sys, time, urllib.request

METADATA = "http://169.254.169.254/latest/"
asked = urllib.request.Request(
    METADATA + "api/token",
    method="PUT",
    headers={"X-aws-ec2-metadata-token-ttl-seconds": "60"},
)
token = urllib.request.urlopen(asked).read().decode()
asked = urllib.request.Request(
    METADATA + "meta-data/tags/instance/emulator-busy-apt",
    headers={"X-aws-ec2-metadata-token": token},
)
try:
    seconds = int(urllib.request.urlopen(asked).read())
except urllib.error.HTTPError:
    seconds = 0
if seconds:
    venv = f"python3.{sys.version_info.minor}-venv"
    subprocess.run(["dpkg", "--purge", "python3-venv", venv], check=True)
lock = open("/var/lib/dpkg/lock-frontend", "a")
fcntl.lockf(lock, fcntl.LOCK_EX)
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
    systemd.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
time.sleep(seconds)
"""
BUSY_APT_UNIT = """\
[Unit]
Description=An update of the system at the first boot
After=cloud-init.service
Before=cloud-config.service cloud-final.service

[Service]
Type=notify
ExecStart=/usr/local/sbin/busy-apt
"""

MAKE = """\
set -eu
mount -t tmpfs made "$2"
root=$2/root
mkdir "$root"
mount -t overlay -o "lowerdir=$1,upperdir=$3,workdir=$4" made "$root"
export DEBIAN_FRONTEND=noninteractive
apt() { chroot "$root" apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
apt update
apt install -y python3-torch python3-venv
apt clean
chroot "$root" python3 -m venv --without-pip /opt/pytorch
# The distribution's packages beside PyTorch stay out of the environment.
for part in torch torchgen functorch typing_extensions.py; do
  ln -s "/usr/lib/python3/dist-packages/$part" "$root"/opt/pytorch/lib/python3*/site-packages/
done
chroot "$root" systemctl --quiet mask $5
# The network is there before the first program; cloud-init would wait for an answer.
rm -f "$2/root/usr/sbin/dhclient" "$2/root/usr/sbin/dhcpcd"
"""


def ensure(root: Root) -> Path:
    """The layer above the root."""
    key = cache.key(Path(__file__).read_text(), root.folder.name)
    place = cache.entry("machine-images", "pytorch", key, lambda at: _make(at, root))
    return place / "layer"


def pytorch(layer: Path) -> str:
    """The version of PyTorch in the layer, such as 1.13.0."""
    text = (layer / "usr/lib/python3/dist-packages/torch/version.py").read_text()
    found = re.search(r"__version__ = '(\d+\.\d+\.\d+)", text)
    if not found:
        raise LookupError(f"PyTorch of {layer} names no version: {text}")
    return found[1]


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
    _write(layer / "etc/cloud/cloud.cfg.d/99-machine.cfg", SETTINGS)
    _write(layer / "etc/pip.conf", PIP)
    _write(layer / "usr/local/sbin/busy-apt", BUSY_APT)
    (layer / "usr/local/sbin/busy-apt").chmod(0o755)
    unit = layer / "etc/systemd/system/busy-apt.service"
    _write(unit, BUSY_APT_UNIT)
    wants = layer / "etc/systemd/system/cloud-init.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / unit.name).symlink_to(Path("/etc/systemd/system") / unit.name)
    # What no name server answers fails at once, instead of after a minute.
    _write(layer / "etc/resolv.conf", "# There is no name server.\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
