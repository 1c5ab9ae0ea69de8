#!/bin/sh
# Sets up /opt/workspace as /etc/gpu-workspace asks; safe to run again.
set -eu
conf=/etc/gpu-workspace venv=/opt/workspace log=/var/log/gpu-workspace-setup.log
step='start'
exec 3>&2 >>"$log" 2>&1
finish() {
  rc=$?
  line='gpu-workspace setup done'
  [ "$rc" = 0 ] || line="gpu-workspace setup FAILED: $step (exit $rc), see $log"
  echo "$line"
  echo "$line" >&3
}
trap finish EXIT

# The owner may write to the environment, so root never runs what is in it.
as() { runuser -u developer -- "$@"; }
pip() { as "$venv/bin/python" -m pip install --no-cache-dir --no-input "$@"; }
apt() { DEBIAN_FRONTEND=noninteractive apt-get -qo DPkg::Lock::Timeout=600 "$@"; }
setting() {
  python3 -c 'import json,sys; print(json.load(open(sys.argv[1])).get(sys.argv[2], ""))' \
    "$conf/workspace.json" "$1"
}
purelib() { as "$1" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

step='read workspace.json'
opencv=$(setting opencvVersion)
torch=$(setting pytorchVersion)
image=$(setting pytorchPython)
index=$(setting pytorchIndexUrl)
python=${image:-/usr/bin/python3}

step='create the virtual environment'
"$python" -c 'import ensurepip' || { apt update; apt install -y python3-venv; }
install -d -o developer -g "$(id -gn developer)" "$venv"
as "$python" -m venv "$venv"
pth=$(purelib "$venv/bin/python")/image.pth
as rm -f "$pth"

step='install PyTorch'
[ -z "$index" ] || pip --index-url "$index" "torch==$torch"
step='install OpenCV'
pip -r "$conf/requirements.txt"
step='add the PyTorch of the image'
if [ -n "$image" ]; then
  site=$(purelib "$image")
  echo "$site" | as tee "$pth"
fi

step='verify'
as "$venv/bin/python" - "$(dirname "$pth")" "$opencv" "$torch" <<'PY'
import sys
from importlib.metadata import distributions as dists
site, opencv, torch = sys.argv[1:]
names = [d.metadata["Name"] for d in dists(path=[site])]
found = [n for n in names if n.lower().startswith("opencv")]
if len(found) != 1:
    sys.exit(f"want one OpenCV distribution, found {found}")
import cv2
if cv2.__version__.split(".")[:3] != opencv.split(".")[:3]:
    sys.exit(f"want OpenCV {opencv}, cv2 is {cv2.__version__}")
if torch:
    from torch import __version__ as v
    if v.split("+")[0] != torch:
        sys.exit(f"want PyTorch {torch}, torch is {v}")
PY

step='put it on the PATH'
cat >/etc/profile.d/gpu-workspace.sh <<EOF
PATH=$venv/bin:\$PATH
EOF
