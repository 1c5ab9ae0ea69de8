#!/bin/sh
# Installs the software. systemd repeats it after a failure.
set -eu
conf=/etc/gpu-workspace venv=/opt/workspace run=/run/gpu-workspace state=/var/lib/gpu-workspace
log=/var/log/gpu-workspace-setup.log home=/home/developer step='start'
exec 3>&2 >>"$log" 2>&1
from=$(($(wc -c <"$log") + 1))
said() { tail -c "+$from" "$log" | grep -Eq "$1"; }
is_full() { [ "$(df --output=avail "$1" | tail -n 1)" -lt 20480 ]; }
cause() {
  if is_full / || is_full $home || said 'No space left'; then echo ', disk full'
  elif said 'Could not get lock'; then echo ', apt is in use'
  elif said 'NewConnectionError|(Connect|Read)Timeout|Temporary failure|Could not connect'; then
    echo ', no network'
  elif said 'THESE PACKAGES DO NOT MATCH'; then echo ', wrong digest'
  elif said 'No matching distribution'; then echo ', no such version'
  fi
}
finish() {
  rc=$?
  line='gpu-workspace setup done'
  [ "$rc" = 0 ] || line="gpu-workspace setup FAILED: $step$(cause) (exit $rc), see $log"
  echo "$line" >&3
  echo "${line#gpu-workspace setup }" >$state/setup || :
  echo "$line" || :
}
trap finish EXIT
trap 'exit 143' TERM

mkdir -p $run $state
tries=$(cat $run/setup-tries || echo 0)
echo $((tries + 1)) >$run/setup-tries
[ "$tries" = 0 ] || sleep $((${SETUP_RETRY_SECONDS:-15} << (tries > 6 ? 5 : tries - 1)))

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
image=$(setting python)
index=$(setting pytorchIndexUrl)
own=$(setting packageIndexUrl)
python=${image:-/usr/bin/python3}

step='wait for the home'
kept=''
if [ -e /etc/systemd/system/gpu-workspace-home.service ]; then
  until [ -e $run/home-ready ]; do sleep 1; done
  kept=$home/.gpu-workspace
fi

step='create the virtual environment'
"$python" -c 'import ensurepip' || {
  for _ in $(seq 60); do ! apt update || break; sleep 10; done
  apt install -y python3-venv
}
if [ -n "$kept" ]; then
  # Another image gets another environment.
  made="$("$python" -VV) $(setting imageId)"
  as mkdir -p "$kept"
  if [ "$(as cat "$kept/made-with" || :)" != "$made" ]; then
    as sh -s "$kept" <<'SH'
cd "$1"
for d in venv/lib/python*/site-packages/*.dist-info; do
  [ ! -e "$d" ] || basename "$d" .dist-info | sed 's/-/==/'
done >packages-before.txt
rm -rf venv
SH
    echo "$made" | as tee "$kept/made-with"
  fi
  as "$python" -m venv "$kept/venv"
  ln -sfn "$kept/venv" "$venv"
else
  install -d -o developer -g "$(id -gn developer)" "$venv"
  as "$python" -m venv "$venv"
fi
pth=$(purelib "$venv/bin/python")/image.pth
as rm -f "$pth" "$venv/pip.conf"
config() { as "$venv/bin/python" -m pip -q config --site set "global.$1" "$2"; }
cas=/etc/ssl/certs/ca-certificates.crt
[ ! -e $cas ] || config cert $cas
[ -z "$own" ] || config index-url "$own"

step='install PyTorch'
[ -z "$index" ] || pip --index-url "$index" "torch==$torch"
step='install OpenCV'
[ ! -s "$conf/requirements.txt" ] || pip -r "$conf/requirements.txt"
step='add the packages of the image'
if [ -n "$image" ]; then
  site=$(purelib "$image")
  echo "import site; site.addsitedir('$site')" | as tee "$pth"
fi

step='verify'
as "$venv/bin/python" - "$(dirname "$pth")" "$opencv" "$torch" <<'PY'
import sys
from importlib.metadata import distributions as dists
site, opencv, torch = sys.argv[1:]
names = [d.metadata["Name"] for d in dists(path=[site])]
found = [n for n in names if n.lower().startswith("opencv")]
if len(found) > 1:
    sys.exit(f"OpenCV more than once: {found}")
import cv2
if cv2.__version__.split(".")[:3] != opencv.split(".")[:3]:
    sys.exit(f"want OpenCV {opencv}, cv2 is {cv2.__version__}")
if torch:
    from re import match
    from torch import __version__ as v
    if match(r"[\d.]+", v)[0] != torch:
        sys.exit(f"want PyTorch {torch}, torch is {v}")
PY

step='put it on the PATH'
cat >/etc/profile.d/gpu-workspace.sh <<EOF
[ "\$(id -un)" != developer ] || PATH=$venv/bin:\$PATH
EOF
# Commands that ssh runs read no profile.
path=$(sed -n 's/^PATH="*\([^"]*\)"*$/\1/p' /etc/environment)
cat >/etc/ssh/sshd_config.d/20-gpu-workspace.conf <<EOF
Match User developer
  SetEnv PATH=$venv/bin:${path:-/usr/local/bin:/usr/bin:/bin}
EOF
systemctl reload ssh || :
touch $state/setup-done
