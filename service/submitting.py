"""Accepting a batch: validate the suite, snapshot the skill, then one transaction for the batch and all its runs."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic_core import PydanticSerializationError
from sqlalchemy.exc import IntegrityError

from schemas.dialects import Dialect, read_suite
from schemas.findings import Finding, Level
from schemas.states import BatchState, Role
from schemas.suite import Suite
from service import log
from service.batch_settings import SKILL_PATH, resolve
from service.checks import Tools, preflight
from service.errors import BadInput, Conflict, NotFound
from service.files import files_below, resolve_files
from service.judging.estimate import Design, Estimate, estimate
from service.judging.lane import LaneSettings
from service.judging.lane_ask import uses_lane
from service.judging.settings import JudgeSettings
from service.models.prices import known_prices
from service.settings import Settings
from service.skills import Snapshot, Withheld, find_skill, take_snapshot
from service.storage.artifacts import ArtifactStore
from service.storage.rows import NewRun, SkillVersionRow, new_id
from service.storage.store import Store, Submit, database_errors

MAX_RUNS = 1_000_000


@dataclass(frozen=True)
class Submission:
    """What somebody wants to be evaluated."""

    skill: Path
    suite: bytes | None = None  # evals/evals.json of the skill if not given
    team: str = "default"
    settings: Mapping[str, Any] = field(default_factory=dict)
    against: str | None = None  # a version label or digest: then new_skill/old_skill
    priority: int = 0
    max_open: int | None = None
    idempotency_key: str | None = None
    is_unpacked: bool = False  # the folder is ours and its place says nothing


@dataclass(frozen=True)
class Accepted:
    """A batch that will run."""

    batch_id: str
    runs: int
    version: str
    iteration: int
    findings: tuple[Finding, ...]
    is_new: bool = True
    estimate: Estimate | None = None  # None: nothing is executed, or it was accepted before


@dataclass(frozen=True)
class Preview:
    """What a submit would come to; without an estimate it would be refused."""

    findings: tuple[Finding, ...]
    estimate: Estimate | None


class Refused(BadInput):
    """The suite cannot be run; carries every finding."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        errors = [finding for finding in findings if finding.level is Level.ERROR]
        more = f" (and {len(errors) - 1} more; see `assay validate`)" if len(errors) > 1 else ""
        super().__init__(f"the suite cannot be run: {errors[0].path or 'document'}: {errors[0].message}{more}")


class Submitting:
    """Turns a submission into rows."""

    def __init__(self, settings: Settings, store: Store, artifacts: ArtifactStore, checks: Tools) -> None:
        self._checks = checks
        self._settings = settings
        self._store = store
        self._artifacts = artifacts

    def accept(self, submission: Submission) -> Accepted:
        """Accept a batch whole or not at all; the same idempotency key and content give the same batch."""
        plan = self._plan(submission)
        self._artifacts.put(plan.raw)
        with database_errors():
            try:
                accepted = self._write(submission, plan)
            except IntegrityError:
                # The same key came twice at once, and the other one was first.
                team = self._store.teams.named(submission.team)
                if repeat := repeat_of(self._store, team.id, submission.idempotency_key, plan.digest(submission)):
                    return repeat
                raise
        return replace(accepted, estimate=self._estimate(submission, plan)) if accepted.is_new else accepted

    def preview(self, submission: Submission) -> "Preview":
        """What accepting it would find and take; no batch is written."""
        try:
            plan = self._plan(submission)
        except Refused as refusal:
            return Preview(tuple(refusal.findings), None)
        return Preview(tuple(plan.findings), self._estimate(submission, plan))

    def _estimate(self, submission: Submission, plan: "_Plan") -> Estimate:
        """What the batch will take."""
        value = {name: entry["value"] for name, entry in plan.settings.items()}
        models = tuple(value["judge_models"] or ([value["judge_model"]] if value["judge_model"] else []))
        judge = JudgeSettings(models=models, rejudge_share=value["rejudge_share"]) if models else None
        arms = 2 if submission.against or value["baseline_comparison"] else 1
        executor = None if value["runner"] == "command" else value["executor_model"]
        runs = len(plan.suite.cases) * value["runs_per_eval"] * arms
        half_price = uses_lane(value["judging"], runs, LaneSettings())
        design = Design(value["runs_per_eval"], arms, executor, judge, half_price)
        return estimate(plan.suite, Dialect(plan.dialect), design, known_prices())

    def _plan(self, submission: Submission) -> "_Plan":
        """Everything a batch is made of, checked; raises Refused with every finding."""
        find_skill(submission.skill)
        raw = submission.suite if submission.suite is not None else _own_suite(submission.skill)
        suite, dialect, findings = read_runnable(raw)
        settings = resolve(submission.settings, suite.config, self._settings)
        withheld = Withheld(submission.skill, raw)
        inputs, file_findings = self._inputs(submission.skill, suite, dialect, withheld)
        findings += [*file_findings, *preflight(suite, self._checks.engine, self._checks.open_sandbox)]
        if any(finding.level is Level.ERROR for finding in findings):
            raise Refused(findings)
        snapshot = take_snapshot(submission.skill, self._artifacts)
        return _Plan(suite, dialect, raw, settings, inputs, snapshot, findings)

    def _inputs(
        self, skill: Path, suite: Suite, dialect: str, withheld: Withheld
    ) -> tuple[dict[str, list[dict[str, Any]]], list[Finding]]:
        """Every case's input files, kept, so that later edits change nothing."""
        inputs: dict[str, list[dict[str, Any]]] = {}
        findings: list[Finding] = []
        list_name = "cases" if dialect == Dialect.CASES else "evals"
        for position, case in enumerate(suite.cases):
            resolved, found = resolve_files(case.files, skill, at=f"{list_name}[{position}].files", refuse=withheld)
            findings += found
            if staged := _staged([entry.path for entry in resolved]):
                inputs[str(position)] = [self._keep(name, path) for name, path in staged.items()]
        return inputs, findings

    def _keep(self, name: str, path: Path) -> dict[str, Any]:
        blob = self._artifacts.put(path.read_bytes())
        return {"name": name, "sha256": blob.sha256, "size": blob.size}

    def _write(self, submission: Submission, plan: "_Plan") -> Accepted:
        team = self._store.teams.named(submission.team)
        digest = plan.digest(submission)
        if repeat := repeat_of(self._store, team.id, submission.idempotency_key, digest):
            return repeat
        batch_id = new_id()
        with self._store.submit(team.id) as submit:
            version = record_skill(submit, plan.snapshot)
            control = _control(submit, submission.against, version)
            suite_id = submit.suite(*suite_rows(plan.suite, plan.dialect, plan.raw))
            runs = list(plan.runs(version, control))
            iteration = submit.next_iteration(version.skill)
            # Beside what was resolved: the same content from another folder is still the same submit.
            path = {"value": _path_to_tell(submission, version.skill), "source": "submit"}
            submit.batch(
                {
                    "id": batch_id,
                    "suite_id": suite_id,
                    "skill_version_id": version.id,
                    "control_version_id": control.id if control else None,
                    "iteration": iteration,
                    "state": BatchState.ACCEPTED,
                    "settings": {**plan.settings, SKILL_PATH: path},
                    "inputs": plan.inputs,
                    "priority": submission.priority,
                    "max_open": submission.max_open,
                    "idempotency_key": submission.idempotency_key,
                    "request_digest": digest,
                },
                runs,
            )
        log.info("batch accepted", batch=batch_id, runs=len(runs), skill=version.skill, version=version.label)
        return Accepted(batch_id, len(runs), version.label, iteration, tuple(plan.findings))


def _path_to_tell(submission: Submission, name: str) -> str:
    """The skill's folder as it was named, but nothing of the machine above it; of an archive the skill's name."""
    if submission.is_unpacked:
        return name
    folder = submission.skill
    tells = folder.parts and not folder.is_absolute() and ".." not in folder.parts
    return _without_nul(folder.as_posix() if tells else folder.resolve().name or name)


def read_runnable(raw: bytes) -> tuple[Suite, str, list[Finding]]:
    """A suite, its dialect and what is to be said about it; raises Refused when it cannot be used at all."""
    reading = read_suite(raw)
    findings = list(reading.findings)
    if not reading.ok or not isinstance(reading.document, Suite) or reading.dialect is None:
        raise Refused(findings)
    refuse_unstorable(reading.document, findings)
    return reading.document, reading.dialect.value, findings


def suite_rows(suite: Suite, dialect: str, raw: bytes) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The row of a suite and its cases'."""
    body = suite.model_copy(update={"cases": ()}).model_dump_json()
    row = {"digest": hashlib.sha256(raw).hexdigest(), "dialect": dialect, "body": body}
    return row, [(str(case.id), case.model_dump_json()) for case in suite.cases]


def repeat_of(store: Store, team_id: str, key: str | None, digest: str) -> Accepted | None:
    """The batch that was accepted for this key before; the same key for something else is a conflict."""
    known = store.batches.by_key(team_id, key) if key else None
    if known is None:
        return None
    batch, known_digest = known
    if known_digest != digest:
        raise Conflict(f"idempotency key {key!r} was used for another submit (batch {batch.id}); choose a new key")
    version = store.teams.skill_version(batch.skill_version_id)
    label = version.label if version else ""
    total = store.batches.progress(batch.id).total
    return Accepted(batch.id, total, label, batch.iteration, (), is_new=False)


@dataclass(frozen=True)
class _Plan:
    suite: Suite
    dialect: str
    raw: bytes
    settings: dict[str, dict[str, Any]]
    inputs: dict[str, list[dict[str, Any]]]
    snapshot: Snapshot
    findings: list[Finding]

    def digest(self, submission: Submission) -> str:
        """What a repeat of this submit has in common with it."""
        said = {name: entry["value"] for name, entry in self.settings.items() if entry["source"] == "submit"}
        # The snapshot leaves evals/ out, so the cases' input files count by themselves.
        suite = [hashlib.sha256(self.raw).hexdigest(), self.inputs]
        order = [submission.priority, submission.max_open]
        parts = [*suite, self.snapshot.digest, said, submission.against, *order]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def runs(self, version: SkillVersionRow, control: SkillVersionRow | None) -> Iterator[NewRun]:
        """All runs in the order of admission: every case once before any twice, both arms side by side."""
        arms = _arms(version, control, bool(self.settings["baseline_comparison"]["value"]))
        rounds = int(self.settings["runs_per_eval"]["value"])
        if rounds * len(arms) * len(self.suite.cases) > MAX_RUNS:
            raise BadInput(f"this batch would have more than {MAX_RUNS:,} runs; submit it in parts")
        position = 0
        for number in range(1, rounds + 1):
            for place, case in enumerate(self.suite.cases):
                # Which arm goes first alternates, so that neither always finds a warm machine.
                for name, role, skill in arms if (place + number) % 2 else arms[::-1]:
                    yield NewRun(position, place, str(case.id), name, role, number, skill)
                    position += 1


def _arms(
    version: SkillVersionRow, control: SkillVersionRow | None, baseline: bool
) -> list[tuple[str, Role, str | None]]:
    if control is not None:
        return [("new_skill", Role.TREATMENT, version.id), ("old_skill", Role.CONTROL, control.id)]
    treatment = ("with_skill", Role.TREATMENT, version.id)
    return [treatment, ("without_skill", Role.CONTROL, None)] if baseline else [treatment]


def _control(submit: Submit, against: str | None, version: SkillVersionRow) -> SkillVersionRow | None:
    """The earlier version to compare with, asked for inside the submit's own transaction."""
    if against is None:
        return None
    versions = submit.versions(version.skill)
    for candidate in versions:
        if against == candidate.label or (len(against) >= 7 and candidate.digest.startswith(against)):
            return candidate
    known = ", ".join(candidate.label for candidate in versions) or "none yet"
    raise NotFound(f"{version.skill} has no version {against!r}; known versions: {known}")


def record_skill(submit: Submit, snapshot: Snapshot) -> SkillVersionRow:
    """Write a snapshot down as a version of its skill, or find it by its digest."""
    return submit.skill_version(
        skill=_without_nul(snapshot.name)[:200],
        digest=snapshot.digest,
        description=_without_nul(snapshot.description),
        files=snapshot.files,
        git_hash=snapshot.git_hash,
    )


def _without_nul(text: str) -> str:
    """PostgreSQL keeps no NUL in a text."""
    return text.replace("\0", "\ufffd")


def refuse_unstorable(suite: Suite, findings: Sequence[Finding] = ()) -> None:
    """Text that no database keeps: half a surrogate pair anywhere, NUL in an id."""
    message = "the suite contains half a surrogate pair or NUL in an id, which is no text; remove it"
    finding = Finding(level=Level.ERROR, path="", message=message, code="no_text")
    try:
        suite.model_dump_json()
    except (PydanticSerializationError, UnicodeError) as error:
        raise Refused([*findings, finding]) from error
    if any("\0" in str(case.id) for case in suite.cases):
        raise Refused([*findings, finding])


def _own_suite(skill: Path) -> bytes:
    path = skill / "evals" / "evals.json"
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}; name the suite with --evals") from error


def _staged(paths: list[Path]) -> dict[str, Path]:
    """Name in the workspace -> file: inputs lie at its top under their own names, clashing ones get a number."""
    staged: dict[str, Path] = {}
    tops: set[str] = set()
    for path in paths:
        top, count = path.name, 1
        while top in tops:
            count += 1
            top = f"{path.stem}-{count}{path.suffix}"
        tops.add(top)
        for file in files_below(path):
            inside = "" if file == path else f"/{file.relative_to(path).as_posix()}"
            staged[top + inside] = file
    return staged
