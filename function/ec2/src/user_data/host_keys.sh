# The SSH host keys outlive their machine, in a folder of root's on the volume. The owner
# may rename it, so it is asked whose it is after it was entered.
keys=$home/.gpu-workspace-host-keys ssh=/etc/ssh
if [ "$(stat -c %u $home)" != "$(id -u developer)" ]; then
  find $home -mindepth 1 -path $keys -prune -o -exec chown -h developer: {} +
  chown developer: $home
fi
mkdir -m 700 $keys 2>/dev/null || [ -d $keys ]
if cd $keys && [ "$(stat -c '%u %a' .)" = '0 700' ]; then
  restored=''
  for key in ssh_host_*_key; do
    [ -f "$key" ] || continue
    ! cmp -s "$key" "$ssh/$key" || continue
    ssh-keygen -yf "$key" >"$ssh/$key.pub"
    install -m 600 "$key" "$ssh/$key"
    restored=yes
  done
  for key in "$ssh"/ssh_host_*_key; do
    if [ -f "$key" ] && [ ! -f "${key##*/}" ]; then
      cp "$key" new
      mv new "${key##*/}"
    fi
  done
  [ -z "$restored" ] || systemctl try-restart ssh || systemctl try-restart sshd ||
    say 'sshd must be restarted for the host keys of home'
else
  say "the host keys are not kept: $keys is not root's alone"
fi
cd /
