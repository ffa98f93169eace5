"""Where the runs of a workspace are.

<workspace>/iteration-N/<case>/<configuration>/run-K/    grading.json, timing.json, outputs/, transcript.md
<workspace>/iteration-N/<case>/<configuration>/          the same, one run
<benchmark>/runs/<case>/<configuration>/run-K/           older
<workspace>/grading/<case>_v<version>_run<run>.json      the cases dialect
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from service.errors import BadInput
from service.workspaces.folder import Folder, counted

_ITERATION = re.compile(r"^iteration[-_](\d+)$")
_RUN = re.compile(r"^run[-_]?(\d+)$")
_SCORED_FILE = re.compile(r"^(?P<case>.+)_v(?P<version>\d+)_run(?P<run>\d+)\.json$")
_NOT_CONFIGURATIONS = frozenset({"inputs", "outputs", "skill", "node_modules", "files"})
_SIGNS_OF_A_RUN = ("grading.json", "structural.json", "timing.json", "run.json", "transcript.md")


@dataclass(frozen=True, slots=True)
class RunPlace:
    """One run: its folder, or in the cases dialect its grading file."""

    configuration: str
    number: int
    path: Path


@dataclass(frozen=True, slots=True)
class CasePlace:
    """One case and its runs; configurations in the order of their names."""

    name: str
    path: Path
    runs: tuple[RunPlace, ...]


@dataclass(slots=True)
class Layout:
    """What a folder holds, before any file of a run is opened."""

    root: Path  # where benchmark.json belongs
    cases: list[CasePlace]
    iteration: int = 1
    remarks: list[str] = field(default_factory=list)

    @property
    def configurations(self) -> list[str]:
        """All configurations, sorted by name."""
        return sorted({run.configuration for case in self.cases for run in case.runs}, key=counted)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return sum(len(case.runs) for case in self.cases)


def find_layout(folder: Folder) -> Layout:
    """The runs of a folder; raises BadInput when there is none."""
    layout = _in_iterations(folder) or _in(folder, folder.root) or _in_grading_files(folder)
    if layout is None or not layout.runs:
        raise BadInput(
            f"no runs in {folder.root}: expected <case>/<configuration>/[run-K/]grading.json, "
            "inside it, in its newest iteration-N or in runs/"
        )
    return layout


def _in_iterations(folder: Folder) -> Layout | None:
    """The newest iteration of a workspace that has runs."""
    found = [(int(m.group(1)), path) for path in folder.subfolders(folder.root) if (m := _ITERATION.match(path.name))]
    for number, path in sorted(found, reverse=True):
        layout = _in(folder, path)
        if layout is not None:
            layout.iteration = number
            if len(found) > 1:
                layout.remarks.append(f"{path.name} of {len(found)} iterations was read; name another one to read it")
            return layout
    return None


def _in(folder: Folder, root: Path) -> Layout | None:
    """Cases directly in a folder or, as older workspaces have it, in its runs/."""
    for place in (root / "runs", root):
        cases = [_case(folder, path) for path in folder.subfolders(place)] if place.is_dir() else []
        found = [case for case in cases if case.runs]
        if found:
            match = _ITERATION.match(root.name)
            layout = Layout(root, found, int(match.group(1)) if match else 1)
            return _only_named_evals(layout)
    return None


def _only_named_evals(layout: Layout) -> Layout:
    """Where some folders are called eval-*, the others are copies or something else."""
    named = [case for case in layout.cases if case.name.startswith("eval-")]
    if named and len(named) < len(layout.cases):
        others = ", ".join(case.name for case in layout.cases if case not in named)
        layout.remarks.append(f"only folders called eval-* were read, not {others}")
        layout.cases = named
    return layout


def _case(folder: Folder, path: Path) -> CasePlace:
    runs = [
        run
        for configuration in folder.subfolders(path)
        if configuration.name not in _NOT_CONFIGURATIONS
        for run in _runs(folder, configuration)
    ]
    return CasePlace(path.name, path, tuple(runs))


def _runs(folder: Folder, configuration: Path) -> Iterator[RunPlace]:
    numbered = [(m, child) for child in folder.subfolders(configuration) if (m := _RUN.match(child.name))]
    for match, child in numbered:
        yield RunPlace(configuration.name, int(match.group(1)), child)
    if not numbered and _looks_like_a_run(configuration):
        yield RunPlace(configuration.name, 1, configuration)


def _looks_like_a_run(path: Path) -> bool:
    return (path / "outputs").is_dir() or any((path / name).is_file() for name in _SIGNS_OF_A_RUN)


def _in_grading_files(folder: Folder) -> Layout | None:
    """The cases dialect keeps all gradings in one folder and everything else in their names."""
    place = folder.root / "grading"
    by_case: dict[str, list[RunPlace]] = {}
    for path in sorted(place.glob("*.json"), key=lambda p: counted(p.name)) if place.is_dir() else ():
        match = _SCORED_FILE.match(path.name)
        if match and folder.holds(path):
            run = RunPlace(f"v{match['version']}", int(match["run"]), path)
            by_case.setdefault(match["case"], []).append(run)
    cases = [CasePlace(name, place, tuple(runs)) for name, runs in by_case.items()]
    return Layout(folder.root, cases) if cases else None
