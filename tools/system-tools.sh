#!/usr/bin/env bash
# Installs what no wheel carries. Where that is not possible, the tests that need a tool say so themselves.
set -euo pipefail
missing=()
command -v bwrap >/dev/null || missing+=(bubblewrap)
command -v chromium >/dev/null || missing+=(chromium)
command -v rabbitmq-server >/dev/null || missing+=(rabbitmq-server)
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "system-tools: missing ${missing[*]}; install with your package manager (tests that need them are skipped)"
  exit 0
fi
echo "system-tools: installing ${missing[*]}"
apt-get update -qq >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
