#!/bin/sh
# Runs a command in a fresh Debian, in a clone of this checkout's HEAD:
#
#     tests/fresh/run.sh SUITE FOLDER COMMAND [ARGUMENT ...]
#
# debootstrap creates a root file system of the suite in FOLDER. Beyond debootstrap's default
# packages, the script adds only make. The next run with the same FOLDER uses this root file
# system again. The script mounts this machine's Rust and Go into it, read-only. It also copies
# the certificate authorities that this machine trusts to the folder where ca-certificates
# finds them. The command shares the machine's network and kernel. The script needs root and
# debootstrap.
set -eu
suite=$1 folder=$2
shift 2
checkout=$(cd "$(dirname "$0")/../.." && pwd)

main() {
	[ -e "$folder/root/srv/ready" ] || make_root
	root=$(cd "$folder/root" && pwd)
	# The clone keeps what an earlier command compiled, so that a second run can be tested, too.
	[ -e "$root/srv/checkout" ] || git clone --quiet "$checkout" "$root/srv/checkout"
	git -C "$root/srv/checkout" fetch --quiet "$checkout" HEAD
	git -C "$root/srv/checkout" reset --quiet --hard FETCH_HEAD
	# All processes and mounts of the command end when the command ends.
	export root RUST="$(rustc --print sysroot)" GO="$(go env GOROOT)"
	exec unshare --mount --pid --fork --kill-child -- sh -eu -c '
		mount --make-rprivate /
		# The root file system becomes a mount: pivot_root requires this, and programs
		# inside can then create mount namespaces.
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
		# The shell stays the first process, as it awaits orphans. The command would leave
		# them as zombies, which a machine that booted does not have.
		exec chroot . /usr/bin/env -i HOME=/root LANG=C.UTF-8 TERM="${TERM-dumb}" \
			PATH=/opt/rust/bin:/opt/go/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			sh -c "cd /srv/checkout && \"\$@\"; exit \$?" - "$@"
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

# Prints the mirror from which this machine's apt gets Debian.
mirror() {
	apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' | head -n 1
}

# Writes each certificate authority to its own file, because ca-certificates does not accept
# bundles.
authorities() {
	mkdir -p "$1"
	awk -v folder="$1" '
		/BEGIN CERTIFICATE/ { file = folder "/of-this-machine-" ++count ".crt" }
		file { print > file }
		/END CERTIFICATE/ { close(file); file = "" }
	' /etc/ssl/certs/ca-certificates.crt
}

main "$@"
