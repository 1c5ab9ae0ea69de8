#!/bin/sh
# Becomes process 1 of a machine: a writable copy of ROOT, all of it in memory, in
# namespaces of its own. Run by machine.py; says its process id when it is up.
#
#   machine.sh ROOT MOUNTPOINT PACKAGES
set -eu
root=$1 here=$2 packages=$3
# As the host numbers processes: this /proc is still the host's.
read -r pid _ </proc/self/stat

mount -t tmpfs -o mode=755 machine "$here"
mkdir "$here/upper" "$here/work" "$here/root"
mount -t overlay -o "lowerdir=$root,upperdir=$here/upper,workdir=$here/work" machine "$here/root"
cd "$here/root"
mkdir -p srv/packages
mount --bind -o ro "$packages" srv/packages

mount -t proc proc proc
# The kernel's settings are the host's.
for part in proc/sys proc/sysrq-trigger; do
  [ -e $part ] || continue
  mount --bind $part $part
  mount -o remount,bind,ro $part
done
mount -t sysfs -o ro sysfs sys
mount -t tmpfs disks sys/block
# Of the host's devices only those that mean nothing: no disk is in reach.
mount -t tmpfs -o mode=755 dev dev
for node in null zero full random urandom tty; do
  : >"dev/$node"
  mount --bind "/dev/$node" "dev/$node"
done
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp

hostname workspace
echo '127.0.0.1 localhost workspace' >etc/hosts
pivot_root . .
umount -l .
cd /
ip link set lo up
echo "$pid"
# Ignoring SIGCHLD makes the kernel reap what is orphaned.
exec env -i --ignore-signal=CHLD PATH=/usr/sbin:/usr/bin sleep infinity >/dev/null 2>&1
