"""Run folders that something else produced: graded as they are, or imported with what was already decided."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.dialects import Dialect, write
from schemas.findings import Finding, Level
from schemas.states import Role
from schemas.suite import Case, Suite
from service.aggregation.benchmark import Aggregator
from service.aggregation.records import Arm, BatchPlan, RunRecord
from service.batch_settings import resolve_given
from service.checks import Tools, preflight
from service.documents import to_json
from service.errors import BadInput
from service.given_runs import GivenBatch, GivenRuns, GivenSuite, was_simulated
from service.settings import Settings
from service.skills import Snapshot, digest_of, take_snapshot
from service.storage.artifacts import ArtifactStore
from service.storage.rows import DECISIONS, Given, GivenReview, NewRun, SkillVersionRow
from service.storage.store import Submit
from service.submitting import Accepted, Refused, read_runnable, record_skill, refuse_unstorable
from service.workspaces.aggregating import skill_name_of, text_of
from service.workspaces.collecting import Collected, RunCaps, collect
from service.workspaces.given import Given as GivenBenchmark
from service.workspaces.given import mismatches, read_given
from service.workspaces.layout import CasePlace
from service.workspaces.matching import FolderCase, match_cases
from service.workspaces.reading import Workspace, case_facts
from service.workspaces.reviewed import names_of, reviews_in
from service.workspaces.roles import arms
from service.workspaces.run_facts import NOT_EXECUTED, decided_facts, executed_facts, kept_text, was_executed

WORKSPACE = "workspace"  # who said so: the folder itself
MOST_SHOWN = 5
MOST_CONFIGURATION_CHARS = 40
MOST_RUN_NUMBER = 1_000_000
UNKNOWN_FILES = "given with its runs; its files are not known"


@dataclass(frozen=True)
class TakeInRequest:
    """A folder of runs, and what it does not say itself."""

    folder: Path
    team: str = "default"
    evals: Path | None = None
    skill: Path | None = None
    treatment: str | None = None
    control: str | None = None
    executor_model: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Place:
    """One case's folder and the case it belongs to."""

    place: CasePlace
    case: Case
    position: int


@dataclass
class _Opened:
    """A workspace that was looked through, before any file of a run is kept."""

    workspace: Workspace
    arms: tuple[Arm, ...]
    suite: GivenSuite
    places: list[_Place]
    benchmark: GivenBenchmark | None
    findings: list[Finding]

    def records(self) -> Iterator[tuple[_Place, RunRecord]]:
        for place in self.places:
            for record in self.workspace.records_of(place.place, case_facts(place.case), self.arms):
                yield place, record

    def provenance(self, name: str) -> str | None:
        """What an export of ours says about where it comes from."""
        found = self.benchmark.metadata.get("provenance") if self.benchmark else None
        value = found.get(name) if isinstance(found, dict) else None
        return value if isinstance(value, str) and value else None


class TakeIn:
    """Brings the runs of a folder in as a batch of given runs."""

    def __init__(self, settings: Settings, artifacts: ArtifactStore, checks: Tools, given_runs: GivenRuns) -> None:
        self._settings = settings
        self._artifacts = artifacts
        self._checks = checks
        self._given_runs = given_runs

    def grade(self, request: TakeInRequest) -> Accepted:
        """A batch whose runs are to be checked and judged; what an earlier grader decided is not looked at."""
        opened = self._open(request)
        _refuse_nothing_to_grade(opened)
        opened.findings += preflight(opened.suite.suite, self._checks.engine, self._checks.open_sandbox)
        if any(finding.level is Level.ERROR for finding in opened.findings):
            raise Refused(opened.findings)
        empty: list[str] = []
        runs = [self._to_grade(place, record, opened, empty) for place, record in opened.records()]
        _refuse_empty(empty, len(runs))
        return self._accept(request, opened, runs, {})

    def take(self, request: TakeInRequest) -> Accepted:
        """A batch whose runs are settled already: gradings stay as given, only the figures are made anew."""
        opened = self._open(request)
        said = _Reviews(opened)
        aggregator = Aggregator(_plan(opened))
        runs = []
        for place, record in opened.records():
            aggregator.add(record)
            runs.append(self._settled(place, record, opened, said.about(place, record)))
        said.remark_unknown()
        found = aggregator.finish()
        for words in mismatches(opened.benchmark, found):
            opened.findings.append(_finding(words.replace("benchmark.given.json", "benchmark.json"), "summary_differs"))
        found.close()
        # Whoever judges here had no part in it.
        judges = {"judge_model": _said(opened.provenance("judge_model")), "judge_models": _said(None)}
        return self._accept(request, opened, runs, judges)

    def _open(self, request: TakeInRequest) -> _Opened:
        workspace = Workspace.open(request.folder)
        _refuse_unstorable(workspace)
        folders = [FolderCase(place.name, *workspace.case_of(place)) for place in workspace.layout.cases]
        suite, findings = _suite(request, workspace, folders)
        positions, remarks = match_cases(folders, suite.suite.cases)
        cases = suite.suite.cases
        places = [_Place(one, cases[positions[one.name]], positions[one.name]) for one in workspace.layout.cases]
        found_arms = arms(workspace.layout.configurations, request.treatment, request.control)
        return _Opened(workspace, found_arms, suite, places, read_given(workspace), [*findings, *remarks])

    def _accept(
        self, request: TakeInRequest, opened: _Opened, runs: list[NewRun], fixed: dict[str, dict[str, Any]]
    ) -> Accepted:
        snapshot = self._snapshot(request, opened)
        settings = resolve_given(
            request.settings, opened.suite.suite.config, self._settings, {**_known(request, opened), **fixed}
        )
        findings = [*opened.findings, *(_finding(remark, "folder") for remark in opened.workspace.remarks)]
        batch = GivenBatch(
            team=request.team,
            suite=opened.suite,
            settings=settings,
            version=lambda submit: _version(submit, snapshot, opened.provenance("skill_digest"), request.skill),
            runs=lambda version: [_numbered(n, run, version) for n, run in enumerate(runs)],
            findings=tuple(findings),
        )
        return self._given_runs.accept(batch)

    def _snapshot(self, request: TakeInRequest, opened: _Opened) -> Snapshot:
        """The skill under test; without its folder, only its name is known."""
        if request.skill is not None:
            return take_snapshot(request.skill, self._artifacts)
        metadata = opened.benchmark.metadata if opened.benchmark else {}
        name = text_of(metadata, "skill_name") or opened.suite.suite.skill_name or skill_name_of(opened.workspace)
        return Snapshot(kept_text(name), UNKNOWN_FILES, digest_of({}), {}, None)

    def _to_grade(self, place: _Place, record: RunRecord, opened: _Opened, empty: list[str]) -> NewRun:
        collected = self._collect(record, opened)
        files = {name: data for name, data in collected.files.items() if name not in DECISIONS}
        failed = record.outcome in NOT_EXECUTED
        outcome, reason = (record.outcome, _reason(record)) if failed else (None, None)
        # Whether an earlier judge was simulated says nothing about who executed the run.
        facts = executed_facts(record, _outputs(files)) | {
            "simulated": was_simulated(files.get("execution.json"), record.simulated)
        }
        if not failed and not collected.is_gradable:
            empty.append(record.paths["folder"])
        return _new_run(place, record, Given(self._kept(files, record), facts, outcome, reason, not failed))

    def _settled(self, place: _Place, record: RunRecord, opened: _Opened, reviews: tuple[GivenReview, ...]) -> NewRun:
        path = opened.workspace.folder.root / record.paths["folder"]
        collected = self._collect(record, opened)
        files = dict(collected.files)
        if path.is_file():  # the cases dialect: the run is its grading
            files = {"grading.json": opened.workspace.folder.bytes_of(path) or b""}
        elif "grading.json" not in files and "outputs/grading.json" in files:
            files["grading.json"] = files.pop("outputs/grading.json")
        facts = {**executed_facts(record, _outputs(files)), **decided_facts(record)}
        executed = was_executed(record.outcome, collected)
        given = Given(self._kept(files, record), facts, record.outcome, _reason(record), executed, reviews)
        return _new_run(place, record, given)

    def _collect(self, record: RunRecord, opened: _Opened) -> Collected:
        path = opened.workspace.folder.root / record.paths["folder"]
        if path.is_file():
            return Collected()
        settings = self._settings
        found = collect(path, RunCaps(settings.artifact_max_bytes, settings.run_max_files, settings.run_max_bytes))
        for name, kind in list(found.left_out.items())[:MOST_SHOWN]:
            opened.workspace.remark(f"{record.paths['folder']}/{name} is {kind} and was left out")
        return found

    def _kept(self, files: Mapping[str, bytes], record: RunRecord) -> dict[str, Any]:
        """The files in the artifact store, and beside them where the run came from."""
        came_from = {"runner": "given", "folder": record.paths["folder"], "simulated": record.simulated}
        all_files = {"execution.json": to_json(came_from), **files}
        return {name: self._artifacts.put(data) for name, data in all_files.items()}


class _Reviews:
    """feedback.json, entry by entry given to the run it is about."""

    def __init__(self, opened: _Opened) -> None:
        self._opened = opened
        self._left: dict[str, list[GivenReview]] = {}
        for said in reviews_in(opened.workspace):
            self._left.setdefault(said.run_id, []).append(said.review)
        self._root = _relative_root(opened.workspace)

    def about(self, place: _Place, record: RunRecord) -> tuple[GivenReview, ...]:
        """What was said about a run; of two entries by one person the later counts."""
        run = (record.paths["folder"], self._root, str(place.case.id), record.configuration, record.run_number)
        mine = [review for name in sorted(names_of(*run)) for review in self._left.pop(name, ())]
        return tuple({review.author: review for review in mine}.values())

    def remark_unknown(self) -> None:
        """Say which reviews are about no run of this folder."""
        if self._left:
            names = ", ".join(list(self._left)[:MOST_SHOWN])
            self._opened.workspace.remark(f"feedback.json speaks of runs that are not here: {names}")


def _relative_root(workspace: Workspace) -> str:
    return str(workspace.layout.root.relative_to(workspace.folder.root))


def _suite(request: TakeInRequest, workspace: Workspace, folders: list[FolderCase]) -> tuple[GivenSuite, list[Finding]]:
    """The suite that was named, the workspace's own, the skill's, or the one its eval_metadata.json files make."""
    if request.evals is not None:
        return _read_suite(_bytes(request.evals))
    roots = dict.fromkeys((workspace.layout.root, workspace.folder.root))
    own = [root / name for root in roots for name in ("evals.json", "evals/evals.json")]
    if found := workspace.folder.first(*own):
        return _read_suite(workspace.folder.bytes_of(found) or b"")
    if request.skill is not None and (request.skill / "evals" / "evals.json").is_file():
        return _read_suite(_bytes(request.skill / "evals" / "evals.json"))
    suite = Suite(cases=tuple(_told_case(folder) for folder in folders))
    refuse_unstorable(suite)
    return GivenSuite(suite, Dialect.SKILL_CREATOR, to_json(write(suite, Dialect.SKILL_CREATOR))), []


def _read_suite(raw: bytes) -> tuple[GivenSuite, list[Finding]]:
    suite, dialect, findings = read_runnable(raw)
    return GivenSuite(suite, dialect, raw), findings


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error


def _told_case(folder: FolderCase) -> Case:
    """A case as its runs tell it."""
    told = folder.metadata
    if told is None:
        return Case(id=folder.id, prompt="", name=folder.folder)
    return Case(
        id=folder.id, prompt=told.prompt or "", name=told.eval_name or folder.folder, statements=told.assertions or ()
    )


def _refuse_unstorable(workspace: Workspace) -> None:
    for place in workspace.layout.cases:
        for run in place.runs:
            if len(run.configuration) > MOST_CONFIGURATION_CHARS or not run.configuration.isprintable():
                raise BadInput(
                    f"the folder name {run.configuration[:60]!r} cannot be a configuration; "
                    f"use at most {MOST_CONFIGURATION_CHARS} printable characters"
                )
            if run.number > MOST_RUN_NUMBER:
                raise BadInput(f"{run.path.name} of {place.name} is no run number; use run-1, run-2, ...")


def _refuse_nothing_to_grade(opened: _Opened) -> None:
    """A suite made of eval_metadata.json may ask for nothing; grading against it would say nothing."""
    if any(c.structural or c.statements or c.criteria or c.rubric for c in opened.suite.suite.cases):
        return
    raise BadInput(
        f"there is nothing to grade {opened.workspace.folder.root} against: no expectations in an evals.json or "
        "eval_metadata.json of the folder; name the suite with --evals"
    )


def _refuse_empty(empty: list[str], runs: int) -> None:
    if empty:
        more = f" and {len(empty) - MOST_SHOWN} more" if len(empty) > MOST_SHOWN else ""
        raise BadInput(
            f"{len(empty)} of {runs} runs have neither outputs/ nor transcript.md: {', '.join(empty[:MOST_SHOWN])}"
            f"{more}; add the files or move these folders away (gradings alone are for `assay import`)"
        )


def _plan(opened: _Opened) -> BatchPlan:
    return BatchPlan(skill_name="", timestamp="", arms=opened.arms)


def _known(request: TakeInRequest, opened: _Opened) -> dict[str, dict[str, Any]]:
    """What the folder tells about how its runs were made."""
    layout = opened.workspace.layout
    metadata = opened.benchmark.metadata if opened.benchmark else {}
    counts: dict[tuple[str, str], int] = {}
    for place in layout.cases:
        for run in place.runs:
            counts[place.name, run.configuration] = counts.get((place.name, run.configuration), 0) + 1
    told = _said(text_of(metadata, "executor_model"))
    return {
        "executor_model": {"value": request.executor_model, "source": "submit"} if request.executor_model else told,
        "runs_per_eval": _said(max(counts.values())),
        "baseline_comparison": _said(any(arm.role is Role.CONTROL for arm in opened.arms)),
    }


def _said(value: Any) -> dict[str, Any]:
    return {"value": value, "source": WORKSPACE}


def _version(submit: Submit, snapshot: Snapshot, digest: str | None, skill: Path | None) -> SkillVersionRow:
    """The skill's version: the one an export names if it is here, else what was snapshot."""
    if skill is None and digest is not None:
        for known in submit.versions(snapshot.name):
            if known.digest == digest:
                return known
    return record_skill(submit, snapshot)


def _new_run(place: _Place, record: RunRecord, given: Given) -> NewRun:
    arm = (record.configuration, record.role, record.run_number)
    return NewRun(0, place.position, str(place.case.id), *arm, None, given)


def _numbered(position: int, run: NewRun, version: SkillVersionRow) -> NewRun:
    skill = version.id if run.role is Role.TREATMENT else None
    arm = (run.case_label, run.configuration, run.role, run.run_number)
    return NewRun(position, run.case_position, *arm, skill, run.given)


def _outputs(files: Mapping[str, bytes]) -> int:
    return sum(name.startswith("outputs/") for name in files)


def _reason(record: RunRecord) -> str | None:
    return None if record.reason is None else kept_text(record.reason)


def _finding(message: str, code: str) -> Finding:
    return Finding(level=Level.WARNING, path="", message=message, code=code)
