#!/usr/bin/env bash
# The main job on the embedded default: no server, no key, no root.
set -euo pipefail
cd "$(dirname "$0")/.."
data=$(mktemp -d)
agent=$(mktemp -d)
trap 'rm -rf "$data" "$agent"' EXIT
# As root the sandbox runs the agent as another user, who must be able to get to it even if this clone is private.
# It does not lie in the data folder: no agent is shown a file from there.
chmod o+x "$agent"
cp examples/scripted-agent.sh "$agent/agent.sh"

echo "demo 1: reading the example suites"
assay validate examples

echo
echo "demo 2: a batch with a program of ours as the agent, structural checks only"
assay run examples/changelog-entry --evals examples/changelog-entry/evals/structural-only.json \
  --command "/bin/bash $agent/agent.sh" --runs 2 --sandbox best --data "$data"

echo
echo "demo 3: the whole job with a simulated model (agent and judge answer from a script: the figures mean nothing)"
assay run examples/changelog-entry --model simulated --sandbox best --data "$data"
