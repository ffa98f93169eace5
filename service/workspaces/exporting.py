"""A batch written as a skill-creator workspace that its aggregator and its viewer read as they are.

<target>/iteration-N/
  benchmark.json  benchmark.md  eval_feedback_aggregate.json  feedback.json
  eval-<id>-<slug>/eval_metadata.json                     for the aggregator
    <configuration>/eval_metadata.json                    for the viewer, which looks no further up
      run-<n>/grading.json  structural.json  timing.json  run.json  transcript.md
        outputs/…                                         nested files also at the top, where the viewer looks
"""

import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath

from pydantic import JsonValue

from schemas.base import CaseId
from schemas.dialects import Dialect, write
from schemas.states import Outcome
from service.aggregation.benchmark import Aggregates, encoded
from service.aggregation.markdown import benchmark_markdown
from service.aggregation.records import COUNTED, CaseFacts, Options, RunRecord
from service.aggregation.scores import score, time_seconds, total_tokens
from service.errors import Conflict
from service.workspaces.artifacts import Artifacts
from service.workspaces.exported_grading import exported_grading

Json = dict[str, JsonValue]
LONGEST_NAME = 60


class Export:
    """Writes one iteration of a workspace, run by run."""

    def __init__(self, target: Path, iteration: int, artifacts: Artifacts, options: Options) -> None:
        self.root = target / f"iteration-{iteration}"
        if self.root.exists() and any(self.root.iterdir()):
            raise Conflict(f"{self.root} is not empty; choose another folder or remove it")
        self.root.mkdir(parents=True, exist_ok=True)
        self._artifacts = artifacts
        self._options = options
        self._names: dict[CaseId, str] = {}
        self._folders: dict[CaseId, Path] = {}
        self._ids_as_text = False

    def use_cases(self, cases: Sequence[CaseFacts]) -> None:
        """Name the folders, and where ids are numbers and texts mixed write all as text: readers sort them."""
        self._names = case_folders(cases)
        kinds = {type(case.id) for case in cases}
        self._ids_as_text = len(kinds) > 1

    def add(self, run: RunRecord) -> Path:
        """Write one run."""
        case = self._case_folder(run.case)
        folder = case / run_folder(run.configuration, run.run_number)
        if not folder.parent.exists():
            folder.parent.mkdir()
            _put(folder.parent / "eval_metadata.json", self._metadata(run.case))
        (folder / "outputs").mkdir(parents=True)
        copies = self._copy_artifacts(run, folder)
        if run.outcome in COUNTED:
            _put(folder / "grading.json", exported_grading(run, score(run, self._options)))
        if run.structural is not None:
            _put(folder / "structural.json", write(run.structural, Dialect.SKILL_EVALUATOR))
        _put(folder / "timing.json", _timing(run))
        _put(folder / "run.json", _run_file(run, copies))
        return folder

    def finish(self, aggregates: Aggregates) -> Path:
        """Write what belongs to the whole iteration."""
        with (self.root / "benchmark.json").open("wb") as out:
            aggregates.write_benchmark(out)
        with (self.root / "eval_feedback_aggregate.json").open("wb") as out:
            aggregates.write_feedback(out)
        markdown = benchmark_markdown(aggregates)
        (self.root / "benchmark.md").write_text(markdown, encoding="utf-8", errors="replace")
        _put(self.root / "feedback.json", {"reviews": [], "status": "in_progress"})
        return self.root

    def _case_folder(self, case: CaseFacts) -> Path:
        if case.id not in self._folders:
            if case.id not in self._names:
                self._names = case_folders([case], self._names)
            self._folders[case.id] = self.root / self._names[case.id]
            self._folders[case.id].mkdir()
            _put(self._folders[case.id] / "eval_metadata.json", self._metadata(case))
        return self._folders[case.id]

    def _metadata(self, case: CaseFacts) -> Json:
        case_id = str(case.id) if self._ids_as_text else case.id
        assertions: list[JsonValue] = list(case.statements)
        return {"eval_id": case_id, "eval_name": case.label, "prompt": case.prompt or "", "assertions": assertions}

    def _copy_artifacts(self, run: RunRecord, folder: Path) -> list[str]:
        """Copy files to their places; returns the names that were copied a second time to the top of outputs/."""
        copies: list[str] = []
        names = [name for name in self._artifacts.names(run) if _is_plain(name) and name not in _WRITTEN]
        taken = {PurePosixPath(name).name for name in names if name.count("/") == 1}
        for name in names:
            self._copy(run, name, folder / name)
            parts = PurePosixPath(name).parts
            if parts[0] == "outputs" and len(parts) > 2:
                flat = "__".join(parts[1:])
                if flat not in taken:
                    taken.add(flat)
                    copies.append(flat)
                    shutil.copyfile(folder / name, folder / "outputs" / flat)
        return copies

    def _copy(self, run: RunRecord, name: str, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        with self._artifacts.open(run, name) as source, target.open("wb") as out:
            shutil.copyfileobj(source, out)


_WRITTEN = frozenset({"grading.json", "structural.json", "timing.json", "run.json", "eval_metadata.json"})


def _is_plain(name: str) -> bool:
    """Whether a name stays inside the folder it is written to."""
    path = PurePosixPath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def case_folders(cases: Iterable[CaseFacts], taken: Mapping[CaseId, str] | None = None) -> dict[CaseId, str]:
    """The folder of every case, each its own even where the names come to the same."""
    found = dict(taken or {})
    # A file system may not tell Case from case.
    used = {name.lower() for name in found.values()}
    for case in {case.id: case for case in cases}.values():
        name = case_folder(case)
        while name.lower() in used:
            name += "-again"
        used.add(name.lower())
        found[case.id] = name
    return found


def run_folder(configuration: str, number: int) -> PurePosixPath:
    """The folder of a run inside that of its case."""
    return PurePosixPath(safe_name(configuration), f"run-{number}")


def viewer_id(case: str, configuration: str, number: int) -> str:
    """What skill-creator's viewer calls the run in this folder: its path with dashes."""
    return str(case / run_folder(configuration, number)).replace("/", "-")


def case_folder(case: CaseFacts) -> str:
    """eval-<id>-<slug>: readers look for folders called eval-*, people for the name."""
    slug = safe_name(case.name or "").lower()
    if isinstance(case.id, int):
        return f"eval-{case.id}-{slug}" if case.name else f"eval-{case.id}"
    return f"eval-{safe_name(case.id)}"


def safe_name(text: str) -> str:
    """A folder name on any file system."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:LONGEST_NAME].strip("-.")
    return name or "x"


def _timing(run: RunRecord) -> Json:
    """timing.json whose total is the executor's time: readers take the total as the run's."""
    found: Json = {}
    seconds, tokens = time_seconds(run), total_tokens(run)
    if tokens is not None:
        found["total_tokens"] = tokens
    if seconds is not None:
        found |= {"duration_ms": round(seconds * 1000), "total_duration_seconds": seconds}
        found["executor_duration_seconds"] = seconds
    if run.timing is not None:
        given = write(run.timing, Dialect.SKILL_CREATOR)
        stamps = given if isinstance(given, dict) else {}
        found |= {key: value for key, value in stamps.items() if key not in found and value is not None}
    return found


def _run_file(run: RunRecord, copies: list[str]) -> Json:
    tokens = run.tokens
    kinds = ("total", "input", "output", "cache_read", "cache_write")
    return {
        "outcome": run.outcome.value,
        "reason": run.reason if run.outcome is not Outcome.SCORED else None,
        "skill_used": run.skill_used,
        "simulated": run.simulated,
        "cost_usd": run.cost_usd,
        "tokens": None if tokens is None else {kind: getattr(tokens, kind) for kind in kinds},
        "copies": list(copies),
    }


def _put(path: Path, value: JsonValue) -> None:
    path.write_bytes(encoded(value, indent=2) + b"\n")
