#!/usr/bin/env bash
# The main job on the embedded default: no server, no key, no root.
set -euo pipefail
cd "$(dirname "$0")/.."
data=$(mktemp -d)
# As root the sandbox runs the agent as another user, who must be able to get to it even if this clone is private.
chmod o+x "$data"
cp examples/scripted-agent.sh "$data/agent.sh"
trap 'rm -rf "$data"' EXIT

echo "demo 1: reading the example suites"
assay validate examples

echo
echo "demo 2: a batch with a program of ours as the agent, structural checks only"
assay run examples/changelog-entry --evals examples/changelog-entry/evals/structural-only.json \
  --command "/bin/bash $data/agent.sh" --runs 2 --sandbox best --data "$data"

echo
echo "demo 3: the whole job with a simulated model (agent and judge answer from a script: the figures mean nothing)"
assay run examples/changelog-entry --model simulated --sandbox best --data "$data"
