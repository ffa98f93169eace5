#!/bin/bash
# Stands in for an agent in the demo: no model, a fixed procedure. With the skill at hand it follows the skill's form,
# without it it does what is obvious. Deterministic on purpose, so that the demo shows the machinery, not a result.
set -euo pipefail
log=$(ls git-log*.txt)
release=$(grep -oE '[0-9]+\.[0-9]+\.[0-9]+' "$ASSAY_PROMPT_FILE" | head -1)
date=$(grep -oE '[0-9]{4}-[0-9]{2}-[0-9]{2}' "$ASSAY_PROMPT_FILE" | head -1)

section() { # section TITLE TYPE: the commits of a type, without hash and type, once per issue number
  lines=$(sed -nE "s/^[0-9a-f]{7} $2(\([a-z]+\))?: //p" "$log" | sort -t'#' -k2,2 -u | sed -E 's/^(.)/- \U\1/')
  [ -z "$lines" ] || printf '\n### %s\n\n%s\n' "$1" "$lines"
}

if [ -n "${ASSAY_SKILL_DIR:-}" ] && [ -f "$ASSAY_SKILL_DIR/SKILL.md" ]; then
  {
    printf '## [%s] - %s\n' "$release" "$date"
    section Added feat
    section Changed perf
    grep -E '^[0-9a-f]{7} [a-z]+!:' "$log" | sed -E 's/^[0-9a-f]{7} [a-z]+!: (.)/- **Breaking:** \U\1/' || true
    section Fixed fix
    section Security security
  } >CHANGELOG.md
  echo '{"tool_calls": {"Read": 2, "Write": 1}, "skill_used": true}'
else
  { echo "# $release"; cat "$log"; } >CHANGELOG.md
  echo '{"tool_calls": {"Read": 1, "Write": 1}, "skill_used": false}'
fi
