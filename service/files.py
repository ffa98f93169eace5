"""Where the input files of a case are: skill root, then evals/, then evals/files/, then the workspace."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from schemas.findings import Finding, Level

# A folder named as input is looked through for links; nobody ships more than this with a case.
_MAX_ENTRIES = 10_000


@dataclass(frozen=True)
class InputFile:
    """One entry of a case's `files` and what it stands for."""

    name: str  # as the suite writes it
    path: Path  # a regular file or a folder, inside the skill or the workspace, links resolved
    base: str  # which of the places it was found in, in words


@dataclass(frozen=True)
class _Base:
    words: str
    folder: Path
    root: Path  # what must not be left


Refuse = Callable[[Path], str | None]  # why no agent may be given a file, in words that follow its name


def resolve_files(
    files: Sequence[str], skill: Path, workspace: Path | None = None, at: str = "files", refuse: Refuse | None = None
) -> tuple[tuple[InputFile, ...], tuple[Finding, ...]]:
    """Find a case's input files; what is found elsewhere than in the skill root is noted, what is not found an error.

    `at` is the JSON path of the list, for the findings. What `refuse` objects to is an error, also inside a folder.
    """
    bases = _bases(skill, workspace)
    found: list[InputFile] = []
    findings: list[Finding] = []
    for index, name in enumerate(files):
        outcome = _resolve(name, bases, f"{at}[{index}]")
        if refuse is not None:
            outcome = _without_refused(outcome, refuse, f"{at}[{index}]")
        found.extend(one for one in outcome if isinstance(one, InputFile))
        findings.extend(one for one in outcome if isinstance(one, Finding))
    return tuple(found), tuple(findings)


def files_below(path: Path) -> list[Path]:
    """The regular files that an input stands for: itself, or everything in the folder."""
    return sorted(found for found in path.rglob("*") if found.is_file()) if path.is_dir() else [path]


def _without_refused(outcome: list[InputFile | Finding], refuse: Refuse, at: str) -> list[InputFile | Finding]:
    """The same, or the one error."""
    for found in (one for one in outcome if isinstance(one, InputFile)):
        for file in files_below(found.path):
            if words := refuse(file.resolve()):
                inside = "" if file == found.path else f" holds {file.relative_to(found.path).as_posix()}, which"
                message = f"{found.name!r}{inside} {words}"
                return [Finding(level=Level.ERROR, path=at, message=message, code="withheld_input")]
    return outcome


def _bases(skill: Path, workspace: Path | None) -> list[_Base]:
    root = skill.resolve()
    bases = [
        _Base("the skill root", root, root),
        _Base("evals/", root / "evals", root),
        _Base("evals/files/", root / "evals" / "files", root),
    ]
    if workspace is not None:
        bases.append(_Base("the workspace", workspace.resolve(), workspace.resolve()))
    return bases


def _resolve(name: str, bases: list[_Base], at: str) -> list[InputFile | Finding]:
    """The file and what is to be said about it, or the one error."""
    forbidden = _forbidden(name)
    if forbidden:
        return [Finding(level=Level.ERROR, path=at, message=f"{name!r} {forbidden}", code="forbidden_path")]
    for base in bases:
        candidate = base.folder / name
        if not os.path.lexists(candidate):
            continue
        path = _inside(candidate, base.root)
        if path is None:
            message = f"{name!r} is a link, or holds one, that leaves {base.root.name}; put a copy there instead"
            return [Finding(level=Level.ERROR, path=at, message=message, code="link_leaves")]
        found = InputFile(name, path, base.words)
        return [found] if base is bases[0] else [found, _elsewhere(found, at)]
    places = ", ".join(base.words for base in bases)
    message = f"there is no {name!r}; looked in {places}"
    return [Finding(level=Level.ERROR, path=at, message=message, code="file_missing")]


def _forbidden(name: str) -> str | None:
    """Why a path may not be used at all."""
    if not name.strip():
        return "is no path"
    if PurePosixPath(name).is_absolute() or PureWindowsPath(name).drive or PureWindowsPath(name).root:
        return "is an absolute path; make it relative to the skill"
    if ".." in PureWindowsPath(name).parts:
        return "leaves its folder with '..'; put the file into the skill"
    return None


def _elsewhere(found: InputFile, at: str) -> Finding:
    message = f"{found.name!r} was found in {found.base}, not in the skill root"
    return Finding(level=Level.NOTE, path=at, message=message, code="file_elsewhere")


def _inside(candidate: Path, root: Path) -> Path | None:
    """The real file or folder, if it and everything below it stay under the root."""
    try:
        path = candidate.resolve(strict=True)
    except (OSError, RuntimeError):  # a link to nowhere, or in a circle
        return None
    if not path.is_relative_to(root) or not (path.is_file() or path.is_dir()):
        return None
    return path if all(link.resolve().is_relative_to(root) for link in _links(path)) else None


def _links(folder: Path) -> Iterator[Path]:
    """The links below a folder; a folder too large to look through counts as a link out of everything."""
    seen = 0
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            seen += 1
            if seen > _MAX_ENTRIES:
                yield Path("/")
                return
            path = Path(parent, name)
            if path.is_symlink():
                yield path
