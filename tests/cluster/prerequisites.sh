#!/bin/sh
# Checks what this machine must have, before anything is compiled, and installs Debian
# packages that are missing. INSTALL=no installs nothing: what is missing is named. Arguments are
# further lists of packages, for suites that need more.
set -eu
here=$(dirname "$0")
lists="$here/prerequisites.list $*"
# Programs of administrators are not on every user's PATH.
PATH="$PATH:${SYSTEM_PATH-/usr/sbin:/sbin}"

main() {
	missing_by_hand=
	root
	version Rust rustc "$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")" \
		'install it as https://rust-lang.org/tools/install says'
	version Go go "$(sed -n 's/^go //p' "$here"/binaries/*/go.mod | sort -V | tail -n 1)" \
		'install it as https://go.dev/doc/install says, and put go on PATH'
	packages=$(missing_packages)
	if [ -n "$missing_by_hand" ] || { [ -n "$packages" ] && [ "${INSTALL-}" = no ]; }; then
		refuse
	fi
	[ -z "$packages" ] || install
}

root() {
	[ "$(id -u)" = 0 ] || by_hand \
		'root (network namespaces, mounts and containers): run the command as root, for example with sudo -E'
}

# version NAME PROGRAM OLDEST ADVICE
version() {
	# rustc and go print their versions in another place each.
	found=$(GOTOOLCHAIN=local "$2" --version 2>/dev/null || GOTOOLCHAIN=local "$2" version 2>/dev/null || true)
	found=$(printf '%s' "$found" | sed -n 's/^[^0-9]*\([0-9][0-9.]*\).*/\1/p' | head -n 1)
	if [ -z "$found" ]; then
		by_hand "$1 $3 or newer: $4"
	elif [ "$(printf '%s\n%s\n' "$3" "$found" | sort -V | head -n 1)" != "$3" ]; then
		by_hand "$1 $3 or newer (found $found): $4"
	fi
}

by_hand() {
	missing_by_hand="$missing_by_hand  - $1
"
}

missing_packages() {
	# Words on purpose: each is a file.
	grep -hv '^#' $lists | while read -r package signs; do
		for sign in $signs; do
			if ! is_there "$sign"; then
				printf '%s ' "$package"
				break
			fi
		done
	done
}

is_there() {
	case $1 in
	/*) [ -e "$1" ] ;;
	python:*) python3 -c "import ${1#python:}" 2>/dev/null ;;
	*) command -v "$1" >/dev/null ;;
	esac
}

refuse() {
	{
		echo 'this machine lacks what the local cluster and the tests need:'
		printf '%s' "$missing_by_hand"
		if [ -n "$packages" ]; then
			echo "  - Debian packages: $packages"
			echo '    apt-get update && apt-get install -y --no-install-recommends' $packages
			[ "${INSTALL-}" != no ] || echo '    Without INSTALL=no, they are installed for you.'
		fi
	} >&2
	exit 1
}

install() {
	echo "Installing Debian packages: $packages(INSTALL=no would refuse that)" >&2
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q >&2
	# Words on purpose: each is a package.
	apt-get install -y -q --no-install-recommends $packages >&2
	packages=$(missing_packages)
	[ -z "$packages" ] || refuse
}

main
