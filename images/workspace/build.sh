#!/bin/sh
# Builds the image's two layers: Debian, and what is below /opt/workspace.
#
#   build.sh VARIANT OUTPUT SUITE SOURCES...
#
# OUTPUT is an empty folder; afterwards it has debian.tar.gz and workspace.tar.gz, for
# each the digest of what is compressed (debian.digest, workspace.digest), and
# packages.txt. SOURCES are apt's lists of sources. Runs as root, in mount and PID
# namespaces of its own (cargo xtask image does that). The same packages and wheels
# give the same bytes.
set -eu
variant=$1 output=$2 suite=$3
shift 3
recipe=$(dirname "$(realpath "$0")")
root=$output/root venv=/opt/workspace/venv

# Every file's time, and what programs that honour it take for the current one.
export SOURCE_DATE_EPOCH=1700000000 LC_ALL=C TZ=UTC
# Sets of strings keep their order in byte code.
export PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1
export TMPDIR=$output/temporary
mkdir "$TMPDIR"

packages=$(sed '/^#/d' "$recipe/packages-base.txt" "$recipe/packages-$variant.txt" | paste -sd,)

# What is left out of Debian's packages: documentation but for the licences, other
# languages, tests, and what draws on a screen (Debian's PyTorch is linked against
# all of OpenCV, which brings Mesa and LLVM and opens them at run time).
set -- --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='path-exclude=/usr/share/info/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/iso-codes/*' \
  --dpkgopt='path-exclude=/usr/share/proj/*' \
  --dpkgopt='path-exclude=/usr/lib/libtorch-test/*' \
  --dpkgopt='path-exclude=/usr/lib/*-linux-gnu/dri/*' \
  --dpkgopt='path-exclude=/usr/lib/*-linux-gnu/libLLVM-*' \
  --dpkgopt='path-exclude=/usr/lib/*-linux-gnu/*.a' \
  "$suite" "$root" "$@"

mmdebstrap --mode=root --variant=minbase --format=directory \
  --include="$packages" \
  --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt=force-unsafe-io \
  "$@"

wheels=$output/wheels
python=$(readlink "$root/usr/bin/python3")
python3 -m pip download --quiet --no-input --no-deps --require-hashes \
  --only-binary=:all: --python-version="${python#python}" \
  --platform=manylinux_2_28_"$(uname -m)" --platform=manylinux_2_27_"$(uname -m)" \
  --platform=manylinux_2_17_"$(uname -m)" --platform=manylinux2014_"$(uname -m)" \
  --dest "$wheels" --requirement "$recipe/wheels/$variant.txt"

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  SOURCE_DATE_EPOCH="$SOURCE_DATE_EPOCH" PYTHONHASHSEED=0 PYTHONDONTWRITEBYTECODE=1 "$@"; }

inside groupadd --gid 1000 developer
inside useradd --uid 1000 --gid 1000 --create-home --shell /bin/bash developer
cp -R "$recipe/files/." "$root/"

# torch is Debian's in one variant, and a wheel in the other.
[ "$variant" != cpu ] || system=--system-site-packages
inside python3 -m venv ${system:-} "$venv"
mkdir "$root/wheels"
mount --bind "$wheels" "$root/wheels"
cp "$recipe/wheels/$variant.txt" "$root/opt/workspace/requirements.txt"
inside "$venv/bin/python" -m pip install --quiet --no-input --no-cache-dir \
  --no-compile --no-index --no-deps --require-hashes --find-links=/wheels \
  --requirement /opt/workspace/requirements.txt
umount "$root/wheels"
rmdir "$root/wheels"
[ -e "$root$venv/bin/torchrun" ] || cat >"$root$venv/bin/torchrun" <<EOF
#!$venv/bin/python
# Debian's own would run the workers without this environment.
import sys
from torch.distributed.run import main
sys.exit(main())
EOF
chmod 0755 "$root$venv/bin/torchrun"

# Two faults of torchrun in PyTorch 1.13 that later ones do not have. It looks for the
# default of --redirects, 0, among an enum's members, and since 3.11 Python does not
# count a flag's zero among them. And where a worker failed, it waits five minutes for
# the other nodes, which wait for the worker.
if [ "$variant" = cpu ]; then
  elastic=$root/usr/lib/python3/dist-packages/torch/distributed/elastic
  sed -i 's/for s in Std:/for s in Std.__members__.values():/' "$elastic/multiprocessing/api.py"
  sed -i '/self._worker_group.state = WorkerState.FAILED/{n;/self._exit_barrier()/d}' \
    "$elastic/agent/server/api.py"
  grep -q 'for s in Std.__members__.values():' "$elastic/multiprocessing/api.py"
  [ "$(grep -c 'self._exit_barrier()' "$elastic/agent/server/api.py")" = 1 ]
fi

# Neither keys nor anything else that is of one build or one machine.
cd "$root"
rm -rf etc/ssh/ssh_host_* etc/machine-id etc/hostname etc/resolv.conf etc/.pwd.lock \
  etc/*- etc/apt/sources.list etc/apt/sources.list.d/* \
  var/lib/apt/lists/* var/cache/* var/log/* var/lib/dpkg/*-old var/lib/systemd \
  run/* tmp/* root/.cache
mkdir -p var/cache/apt/archives/partial var/lib/apt/lists/partial

# Byte code that does not ask for the source's time: layers have one time for all.
find . -name __pycache__ -prune -exec rm -rf {} +
# What does not compile are examples of other Pythons' syntax, in tests.
inside "$venv/bin/python" -m compileall -qq --invalidation-mode unchecked-hash \
  -x '/tests?/|/bad_' /usr/lib/python3 "/usr/lib/$python" "$venv"

inside dpkg-query -W -f '${Package} ${Version} ${Architecture}\n' >"$output/debian.txt"
inside "$venv/bin/python" -m pip list --format=freeze >"$output/python.txt"
{
  echo "# Debian $suite"
  cat "$output/debian.txt"
  echo "# Python, as seen from $venv"
  cat "$output/python.txt"
} >"$root/opt/workspace/packages.txt"
cp "$root/opt/workspace/packages.txt" "$output/packages.txt"

layer() {
  to=$output/$1
  shift
  tar --create --file "$to.tar" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --clamp-mtime \
    --numeric-owner --one-file-system --format=gnu --directory "$root" "$@"
  sha256sum "$to.tar" | cut -d' ' -f1 >"$to.digest"
  gzip --no-name "$to.tar"
}
layer workspace ./opt/workspace &
layer debian --exclude=./opt/workspace .
wait $!
rm -rf "$root" "$wheels" "$TMPDIR" "$output/debian.txt" "$output/python.txt"
