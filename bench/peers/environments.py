"""Throw-away environments for the peers: a virtual environment and an npm prefix, made on first use."""

import os
import subprocess
import sys
from pathlib import Path

INSTALL_SECONDS = 1_200


def inspect_programs(folder: Path) -> Path:
    """The bin folder of an environment with Inspect AI."""
    programs = folder / "inspect" / "bin"
    if not (programs / "inspect").exists():
        print("installing Inspect AI", flush=True)
        _run([sys.executable, "-m", "venv", str(folder / "inspect")])
        _run([str(programs / "python"), "-m", "pip", "install", "--quiet", "inspect-ai", "anthropic"])
    return programs


def promptfoo_program(folder: Path) -> Path:
    """The program promptfoo in a prefix of its own."""
    prefix = folder / "promptfoo"
    program = prefix / "node_modules" / ".bin" / "promptfoo"
    if not program.exists():
        print("installing promptfoo", flush=True)
        prefix.mkdir(parents=True, exist_ok=True)
        _run(["npm", "install", "--no-fund", "--no-audit", "--prefix", str(prefix), "promptfoo"])
    return program


def versions(folder: Path) -> dict[str, str]:
    """What was measured, as the tools say themselves."""
    python = folder / "inspect" / "bin" / "python"
    asked = "import importlib.metadata as m; print(m.version('inspect-ai'), m.version('anthropic'))"
    inspect, sdk = _run([str(python), "-c", asked]).split()
    package = folder / "promptfoo" / "node_modules" / "promptfoo" / "package.json"
    promptfoo = _run(["node", "-p", f"require({str(package)!r}).version"]).strip()
    node = _run(["node", "--version"]).strip()
    return {"inspect-ai": inspect, "its anthropic SDK": sdk, "promptfoo": promptfoo, "node": node}


def _run(argv: list[str]) -> str:
    # Our own pins are not theirs.
    own = {name: value for name, value in os.environ.items() if name not in ("PIP_CONSTRAINT", "PYTHONPATH")}
    done = subprocess.run(argv, env=own, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv[:4])} failed: {done.stderr[-1000:]}")
    return done.stdout
