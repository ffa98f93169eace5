"""A skill on disk and its snapshot: what it is called, which files it has, and their digest."""

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.errors import BadInput
from service.runners.port import SkillFolder
from service.storage.artifacts import ArtifactStore

# Agents must not see what they are asked or how they are judged, nor what other tools left behind.
LEFT_OUT = frozenset({"evals", ".git", "__pycache__", "node_modules", ".venv", ".assay"})
MAX_FILES = 2_000
MAX_BYTES = 100 * 2**20
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)


@dataclass(frozen=True)
class Snapshot:
    """A skill as it was at one moment; its files are in the artifact store."""

    name: str
    description: str
    digest: str
    files: dict[str, dict[str, Any]]  # path -> {sha256, size, executable}
    git_hash: str | None


def front_matter(text: str) -> dict[str, str]:
    """The plain `key: value` lines between the two --- lines on top of SKILL.md; folded values are joined."""
    found = _FRONT_MATTER.match(text)
    fields: dict[str, str] = {}
    last = ""
    for line in found.group(1).splitlines() if found else ():
        if line[:1].isspace() and last:
            fields[last] = f"{fields[last]} {line.strip()}".strip()
        elif ":" in line and not line.startswith("#"):
            last, value = (part.strip() for part in line.split(":", 1))
            fields[last] = "" if value in (">", "|", ">-", "|-") else value.strip("\"'")
    return fields


def find_skill(folder: Path) -> Path:
    """The folder that holds SKILL.md; a clear refusal if there is none."""
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder; give the folder that holds SKILL.md")
    if not (folder / "SKILL.md").is_file():
        raise BadInput(f"{folder} has no SKILL.md; a skill is a folder with that file")
    return folder


def take_snapshot(folder: Path, artifacts: ArtifactStore) -> Snapshot:
    """Keep every file of the skill, so that later edits change nothing."""
    root = find_skill(folder)
    files: dict[str, dict[str, Any]] = {}
    total = 0
    for path in _skill_files(root):
        data = path.read_bytes()
        total += len(data)
        if len(files) >= MAX_FILES or total > MAX_BYTES:
            raise BadInput(
                f"{folder} is larger than {MAX_FILES} files or {MAX_BYTES >> 20} MB; leave out what agents do not need"
            )
        blob = artifacts.put(data)
        executable = os.access(path, os.X_OK)
        files[path.relative_to(root).as_posix()] = {"sha256": blob.sha256, "size": blob.size, "executable": executable}
    fields = front_matter((root / "SKILL.md").read_text(encoding="utf-8", errors="replace"))
    name = fields.get("name") or root.resolve().name
    return Snapshot(name, fields.get("description", ""), digest_of(files), files, git_head(root))


def digest_of(files: dict[str, dict[str, Any]]) -> str:
    """One digest over paths, contents and the right to execute, in sorted order."""
    lines = [[path, files[path]["sha256"], files[path]["executable"]] for path in sorted(files)]
    return hashlib.sha256(json.dumps(lines).encode()).hexdigest()


def lay_out(files: dict[str, dict[str, Any]], folder: Path, artifacts: ArtifactStore) -> None:
    """Write a snapshot's files below a folder, readable by anybody."""
    for path, entry in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(artifacts.get(entry["sha256"]))
        target.chmod(0o755 if entry["executable"] else 0o644)


def skill_folder(folder: Path, digest: str) -> SkillFolder:
    """The skill in a folder, in the words a runner wants."""
    fields = front_matter((folder / "SKILL.md").read_text(encoding="utf-8", errors="replace"))
    return SkillFolder(folder, fields.get("name") or folder.name, fields.get("description", ""), digest)


def git_head(folder: Path) -> str | None:
    """The commit the skill's repository is at, if it is in one."""
    try:
        command = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _skill_files(root: Path) -> Iterator[Path]:
    real_root = root.resolve()
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in LEFT_OUT)
        for name in [*names, *sorted(files)]:
            path = Path(folder) / name
            if path.is_symlink() and real_root not in path.resolve().parents:
                raise BadInput(f"{path} is a link that leaves the skill; copy the file instead")
        yield from (Path(folder) / name for name in sorted(files) if (Path(folder) / name).is_file())
