#!/bin/sh
# Downloads the agent, unless it is there; waits as long as that takes, and nobody for it.
set -eu
agent=/usr/local/bin/gpu-workspace-agent new=/usr/local/bin/.gpu-workspace-agent said=''
exec >>/var/log/gpu-workspace-setup.log 2>&1
say() { [ "$said" = "$*" ] || echo "$(date -Is) agent: $*"; said=$*; }
is_right() { echo "$AGENT_SHA256  $1" | sha256sum --quiet -c - >/dev/null 2>&1; }
download() {
  if command -v curl >/dev/null; then
    curl -fsSL --connect-timeout 20 --max-time 600 -o $new "$AGENT_URL"
  else
    python3 -c 'import shutil, sys, urllib.request as r
with r.urlopen(sys.argv[1], timeout=60) as f, open(sys.argv[2], "wb") as to:
    shutil.copyfileobj(f, to)' "$AGENT_URL" $new
  fi
}

until is_right $agent; do
  if ! why=$(download 2>&1); then
    say "cannot download $AGENT_URL: $(echo "$why" | tail -n 1)"
  elif is_right $new; then
    chmod 755 $new
    mv $new $agent
    continue
  else
    say "$AGENT_URL has the SHA-256 $(sha256sum <$new | cut -c -64) instead of $AGENT_SHA256: it is not run"
  fi
  rm -f $new
  sleep "${AGENT_RETRY_SECONDS:-30}"
done
