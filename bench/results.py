"""Where figures are kept: bench/results/<name>.json, each with its date, its machine and the command that made it."""

import json
import os
import platform
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"


def save(name: str, figures: dict[str, Any], folder: Path = FOLDER) -> Path:
    """Write one bench's figures over those of its last run; says where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    told = {"name": name, "date": _now(), "command": _command(), "machine": machine(), **figures}
    # A reader never finds half a file, and a run that is stopped leaves the old one.
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    beside.replace(path)
    print(f"figures: {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}", flush=True)
    return path


def load(name: str, folder: Path = FOLDER) -> dict[str, Any] | None:
    """The last figures of a bench; None when it never ran."""
    path = folder / f"{name}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def machine() -> dict[str, Any]:
    """What the figures were made on, and how busy it was with other work when they were written."""
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "load_1_minute": round(os.getloadavg()[0], 1),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _command() -> str:
    script = Path(sys.argv[0])
    if script.name == "__main__.py":
        script = script.parent
    shown = script.resolve()
    root = Path(__file__).parents[1]
    name = shown.relative_to(root) if shown.is_relative_to(root) else Path(shown.name)
    return shlex.join(["python", str(name), *sys.argv[1:]])
