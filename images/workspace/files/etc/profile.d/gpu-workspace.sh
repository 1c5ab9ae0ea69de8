# /etc/profile has set PATH anew; sshd was told the workspace's.
if [ -n "${WORKSPACE_PATH:-}" ]; then
  PATH=$WORKSPACE_PATH
  export PATH
fi
