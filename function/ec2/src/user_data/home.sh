#!/bin/sh
# Mounts the home volume, an EBS disk that may come late; safe to run again.
set -eu
home=/home/developer run=/run/gpu-workspace said=''
exec >>/var/log/gpu-workspace-home.log 2>&1
say() { [ "$said" = "$*" ] || echo "$(date -Is) $*"; said=$*; }

# Whole EBS disks: on Nitro by model, on Xen by the name they are attached as.
disks() {
  grep -ls '^Amazon Elastic Block Store' /sys/block/nvme*/device/model | cut -d/ -f4
  for d in sdf xvdf; do [ -L /dev/$d ] || [ ! -b /dev/$d ] || echo $d; done
}

if ! mountpoint -q $home; then
  while :; do
    homes='' blank='' other=''
    for d in $(disks); do
      # An encrypted volume's unwritten blocks are noise: only signatures tell.
      case $(blkid -p "/dev/$d" || echo "none $?") in
        *' LABEL="gpu-home" '*) homes="$homes $d" ;;
        'none 2' | *' LABEL="gpu-home-new" '*) blank="$blank $d" ;;
        *) other="$other $d" ;;
      esac
    done
    found=${homes:-$blank}
    case $found in '' | *' '*' '*) ;; *) break ;; esac
    say "waiting for one home or one blank disk; homes:$homes blank:$blank other:$other"
    sleep 1
  done
  disk=/dev/${found# }
  if [ -z "$homes" ]; then
    say "formatting $disk"
    mkfs.ext4 -qL gpu-home-new "$disk"
    unshare -m sh -ec "mount $disk /mnt; cp -a $home/. /mnt; umount /mnt"
    e2label "$disk" gpu-home
  fi
  e2fsck -p "$disk" || [ $? = 1 ]
  mount -o nosuid,nodev "$disk" $home
fi
resize2fs "$(findmnt -no SOURCE $home)" || say 'home stays smaller than its disk'
uid=$(id -u developer)
[ "$(stat -c %u $home)" = "$uid" ] || chown -R developer: $home
mkdir -p $run
touch $run/home-ready
say 'home is mounted'
