#!/usr/bin/env bash
# Walks a stranger's path and prints what each step took: a fresh clone, an empty home, nothing but the system's programs;
# then the demo, a suite of one's own, and the first report, as README and quickstart say. stranger.sh [REPOSITORY]
set -euo pipefail
repository=$(cd "${1:-$(dirname "$0")/..}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# As root the sandbox runs an agent as another user, who passes through to it.
chmod 755 "$work"
mkdir "$work/home"
began=$(date +%s)
mapfile -t kept < <(env | grep -E '^(PYTHON|PIP_[A-Z_]+|https?_proxy)=' || true)

bare() { # bare WORDS...: with the environment of a new user; mirrors and proxies of the machine are kept
  env -i HOME="$work/home" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    "${kept[@]}" "$@"
}

step() { # step NAME WORDS...
  local name=$1 start log="$work/$1.log"
  shift
  start=$(date +%s)
  bare "$@" >"$log" 2>&1 || { echo "$name failed:"; tail -n 40 "$log"; exit 1; }
  printf '%-28s %4d s\n' "$name" $(($(date +%s) - start))
}

# The blocks of the quickstart that are marked `sh run`, without those about CI: what leads to the first report.
blocks() { awk '/^## 5\./ {exit} /^```sh run$/ {on = 1; next} /^```$/ {on = 0} on' "$1"; }

step clone git clone --quiet "$repository" "$work/assay"
step make-demo make -C "$work/assay" demo
blocks "$work/assay/docs/quickstart.md" >"$work/path.sh"
cd "$work/home"
step suite-to-report bash -euo pipefail -c "PATH=$work/assay/.venv/bin:\$PATH; . $work/path.sh"
test -s "$work/home/report.html"
printf '%-28s %4d s\n' "from nothing to a report" $(($(date +%s) - began))
