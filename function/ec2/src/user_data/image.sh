#!/bin/sh
# Makes the machine an image, after the setup: machines that start from the image find the packages
# below /opt/workspace-image, and nothing of this machine is left.
set -eu
[ -e /var/lib/gpu-workspace/setup-done ]
mv /opt/workspace /opt/workspace-image
chown -R root:root /opt/workspace-image
rm -rf /etc/gpu-workspace /var/lib/gpu-workspace /usr/local/lib/gpu-workspace
rm -f /etc/profile.d/gpu-workspace.sh /etc/ssh/sshd_config.d/?0-gpu-workspace.conf
rm -f /etc/systemd/system/gpu-workspace-setup.service /var/log/gpu-workspace-setup.log
userdel --remove developer
rm -f /etc/sudoers.d/90-cloud-init-users /etc/ssh/ssh_host_*
cloud-init clean --logs
: >/etc/machine-id
sync
echo 'gpu-workspace image ready' >/dev/console
