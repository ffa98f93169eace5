#!/usr/bin/env bash
# Builds the wheel, installs it into an empty environment and uses it from another directory: wheel-test.sh PYTHON
set -euo pipefail
python=$1
echo "wheel-test: building and trying the wheel"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m build --wheel --no-isolation --outdir "$work/dist" . >"$work/build.log" 2>&1 || { cat "$work/build.log"; exit 1; }
"$python" -m venv "$work/venv"
if command -v uv >/dev/null; then
  uv pip install --quiet --python "$work/venv/bin/python" -c constraints.txt "$work"/dist/*.whl
else
  "$work/venv/bin/python" -m pip install --quiet -c constraints.txt "$work"/dist/*.whl
fi
cp -r examples "$work/examples"
cd "$work"
venv/bin/assay --help >/dev/null
venv/bin/assay validate examples >/dev/null
venv/bin/assay schema evals --dialect skill_evaluator >/dev/null
