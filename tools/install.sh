#!/usr/bin/env bash
# Installs this project, editable and pinned: install.sh PYTHON TARGET. uv when present (ten times faster), else pip.
set -euo pipefail
python=$1 target=$2
if command -v uv >/dev/null; then
  uv pip install --quiet --python "$python" -c constraints.txt -e "$target"
else
  "$python" -m pip install --quiet -c constraints.txt -e "$target"
fi
