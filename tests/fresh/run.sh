#!/bin/sh
# Runs a command as on a fresh Debian, in a clone of this checkout's HEAD:
#
#     tests/fresh/run.sh SUITE FOLDER COMMAND [ARGUMENT ...]
#
# debootstrap makes a root file system of the suite in FOLDER, with make and nothing else
# beyond its own; the next run takes what is there. This machine's Rust and Go are mounted
# read-only, the certificate authorities that it trusts are trusted there, too. Network and
# kernel are shared. Needs root and debootstrap.
set -eu
suite=$1 folder=$2
shift 2
checkout=$(cd "$(dirname "$0")/../.." && pwd)

main() {
	[ -e "$folder/root/srv/ready" ] || make_root
	root=$(cd "$folder/root" && pwd)
	# What an earlier command compiled is kept: a second run is one of the things to see.
	[ -e "$root/srv/checkout" ] || git clone --quiet "$checkout" "$root/srv/checkout"
	git -C "$root/srv/checkout" fetch --quiet "$checkout" HEAD
	git -C "$root/srv/checkout" reset --quiet --hard FETCH_HEAD
	# The command's processes and mounts end with it.
	export root RUST="$(rustc --print sysroot)" GO="$(go env GOROOT)"
	exec unshare --mount --pid --fork --kill-child -- sh -eu -c '
		mount --make-rprivate /
		# Of its own, so that what runs in it can make namespaces of mounts.
		mount --bind "$root" "$root"
		for part in dev sys; do mount --rbind "/$part" "$root/$part"; done
		mount -t proc proc "$root/proc"
		mount -t tmpfs run "$root/run"
		for tool in "$RUST:rust" "$GO:go"; do
			mount --bind "${tool%:*}" "$root/opt/${tool##*:}"
			mount -o remount,bind,ro "$root/opt/${tool##*:}"
		done
		cp --dereference /etc/resolv.conf "$root/etc/resolv.conf"
		cd "$root"
		pivot_root . mnt
		umount --lazy mnt
		exec chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM-dumb}" \
			PATH=/opt/rust/bin:/opt/go/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			sh -c "cd /srv/checkout && exec \"\$@\"" - "$@"
	' - "$@"
}

make_root() {
	mkdir -p "$folder"
	rm -rf "$folder/root"
	debootstrap --include=make "$suite" "$folder/root" "$(mirror)" >&2
	mkdir -p "$folder/root/opt/rust" "$folder/root/opt/go"
	authorities "$folder/root/usr/local/share/ca-certificates"
	touch "$folder/root/srv/ready"
}

# Where this machine's apt takes Debian from.
mirror() {
	apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' | head -n 1
}

# One file for each: ca-certificates takes no bundles.
authorities() {
	mkdir -p "$1"
	awk -v folder="$1" '
		/BEGIN CERTIFICATE/ { file = folder "/of-this-machine-" ++count ".crt" }
		file { print > file }
		/END CERTIFICATE/ { close(file); file = "" }
	' /etc/ssl/certs/ca-certificates.crt
}

main "$@"
