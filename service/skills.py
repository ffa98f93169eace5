"""A skill on disk and its snapshot: what it is called, which files it has, and their digest."""

import functools
import hashlib
import json
import os
import re
import subprocess
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.dialects import Kind, read
from service.errors import BadInput
from service.runners.arms import telling_files
from service.runners.port import SkillFolder
from service.storage.artifacts import ArtifactStore

# Agents must not see what they are asked or how they are judged, nor what other tools left behind.
LEFT_OUT = frozenset({"evals", ".git", "__pycache__", "node_modules", ".venv", ".assay"})
MAX_FILES = 2_000
MAX_BYTES = 100 * 2**20
# Beside the suite: the simulator's script, which holds answers. On top of a skill: what was committed or run before.
_SCRIPT = "simulation.json"
_HISTORIES = frozenset({".git", ".assay"})
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
    fields = front_matter((root / "SKILL.md").read_text(encoding="utf-8", errors="replace"))
    name = _addressable(fields.get("name") or root.resolve().name)
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
    return Snapshot(name, fields.get("description", ""), digest_of(files), files, git_head(root))


class Withheld:
    """Why a file may be no case's input: with it an agent would hold the skill, or what it is judged by."""

    def __init__(self, skill: Path, suite: bytes) -> None:
        self._root = skill.resolve()
        self._suite = suite

    def __call__(self, path: Path) -> str | None:
        """The reason in words that follow the file's name; `path` has no links in it."""
        parts = path.relative_to(self._root).parts if path.is_relative_to(self._root) else ()
        if self._tells_what_is_asked(path, parts):
            return "tells what the suite asks for, which no agent may see; name the input files themselves"
        remedy = "which an arm without it must not have; give the case a file of its own in evals/files/"
        if parts and LEFT_OUT.isdisjoint(parts[:-1]):
            return f"is part of the skill, {remedy}"
        twin = self._twin(path)
        return f"is a copy of the skill's {twin}, {remedy}" if twin else None

    def _tells_what_is_asked(self, path: Path, parts: tuple[str, ...]) -> bool:
        if parts and parts[0] in _HISTORIES:
            return True
        if len(parts) == 1 or parts[:-1] == ("evals",):
            return path.name.lower() == _SCRIPT or self._is_suite(path)
        return self._is_this_suite(path)

    def _is_suite(self, path: Path) -> bool:
        is_json = path.suffix.lower() == ".json"
        return self._is_this_suite(path) or (is_json and read(path.read_bytes()).kind is Kind.EVALS)

    def _is_this_suite(self, path: Path) -> bool:
        return path.stat().st_size == len(self._suite) and path.read_bytes() == self._suite

    def _twin(self, path: Path) -> str | None:
        """The file of the skill that has the same content and is not so by chance."""
        size = path.stat().st_size
        twins = {twin.relative_to(self._root).as_posix(): twin for twin in self._by_size.get(size, ())}
        telling = telling_files({name: {"sha256": _digest(twin), "size": size} for name, twin in twins.items()})
        return telling.get(_digest(path)) if telling else None

    @functools.cached_property
    def _by_size(self) -> dict[int, list[Path]]:
        sizes: dict[int, list[Path]] = {}
        for path in filter(Path.is_file, _walk(self._root)):
            sizes.setdefault(path.stat().st_size, []).append(path)
        return sizes


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _addressable(name: str) -> str:
    """A name that can stand in the path of an address; a clear refusal otherwise."""
    if name in (".", "..") or any(letter == "/" or unicodedata.category(letter) == "Cc" for letter in name):
        raise BadInput(f"the skill is called {name[:200]!r}; a name in SKILL.md has no / and no control characters")
    return name


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
    for path in _walk(root):
        if path.is_symlink() and real_root not in path.resolve().parents:
            raise BadInput(f"{path} is a link that leaves the skill; copy the file instead")
        if path.is_file():
            yield path


def _walk(root: Path) -> Iterator[Path]:
    """Every file and folder that a snapshot looks at, links too."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in LEFT_OUT)
        yield from (Path(folder) / name for name in [*names, *sorted(files)])
