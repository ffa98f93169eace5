#!/usr/bin/env bash
# The main job on the embedded default: no server, no key, no root.
set -euo pipefail
cd "$(dirname "$0")/.."
echo "demo: reading the example suites"
assay validate examples
echo
echo "demo: running one of them, with and without its skill (the agent is a script of ours, no model is asked)"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
assay run examples/changelog-entry --evals examples/changelog-entry/evals/structural-only.json \
  --command "/bin/bash $PWD/examples/scripted-agent.sh" --sandbox best --data "$data"
