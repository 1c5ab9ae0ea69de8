#!/bin/sh
# Becomes process 1 of a machine in namespaces of its own: a writable copy of ROOT,
# which is one folder or more, as overlayfs separates them. Says its process id when it
# is there.
#
#   machine.sh ROOT MOUNTPOINT PACKAGES
#
# What is written stays in memory, and process 1 sleeps.
#
#   machine.sh ROOT MOUNTPOINT PACKAGES DISK CONSOLE
#
# What is written stays in the folder DISK, and process 1 is systemd, as soon as
# standard input says so. CONSOLE is a terminal. It has a cgroup namespace, too.
set -eu
root=$1 here=$2 packages=$3 disk=${4-} console=${5-}
# As the host numbers processes: this /proc is still the host's.
read -r pid _ </proc/self/stat

mount -t tmpfs -o mode=755 machine "$here"
mkdir "$here/root"
[ -n "$disk" ] || disk=$here
mkdir -p "$disk/upper" "$disk/work"
layers="lowerdir=$root,upperdir=$disk/upper,workdir=$disk/work"
mount -t overlay -o "$layers" machine "$here/root"
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
# Of the kernel's view of devices all but the disks. EC2 says by this file that it is EC2.
mkdir "$here/sys"
mount -t sysfs -o ro sysfs "$here/sys"
mount -t tmpfs -o mode=755 sys sys
for part in "$here"/sys/*; do
  mkdir "sys/${part##*/}"
  [ "${part##*/}" = block ] || mount --bind "$part" "sys/${part##*/}"
done
[ -d sys/hypervisor ] || mkdir sys/hypervisor
mount -t tmpfs hypervisor sys/hypervisor
echo ec2e1916-9099-7caf-fd21-012345abcdef >sys/hypervisor/uuid
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
if [ -n "$console" ]; then
  : >dev/console
  mount --bind "$console" dev/console
  # systemd wants one hierarchy, and sees its own part of it.
  mount -t cgroup2 cgroup2 sys/fs/cgroup
fi

hostname workspace
echo '127.0.0.1 localhost workspace' >etc/hosts
pivot_root . .
umount -l .
cd /
ip link set lo up
echo "$pid"
if [ -n "$console" ]; then
  read -r _
  exec >/dev/null 2>&1 </dev/null
  # A service with a mount namespace of its own sees the mounts that are made later.
  # systemd does this on a real machine, and leaves it to others in a container.
  mount --make-rshared /
  # What concerns the whole host. It may reboot: in a PID namespace, that is its own.
  bounds=-sys_module,-sys_rawio,-sys_time,-syslog,-mknod
  exec env -i container=machine PATH=/usr/sbin:/usr/bin \
    setpriv --bounding-set=$bounds -- /lib/systemd/systemd
fi
# Ignoring SIGCHLD makes the kernel reap what is orphaned.
exec env -i --ignore-signal=CHLD PATH=/usr/sbin:/usr/bin sleep infinity >/dev/null 2>&1
