"""The stage `execute`: stage inputs and skill, let the agent work, keep what came out."""

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from schemas.metrics import Metrics
from schemas.states import Outcome, Stage
from schemas.suite import Case
from service.documents import to_json
from service.errors import StageFailed
from service.jobs import Job
from service.judging.questions import needs_judge
from service.leases import Held
from service.runners.arms import SKILL_AT, Arm, canary_of, plant, telling_files, without_canary
from service.runners.command import CommandRunner, named_files
from service.runners.port import Assignment, Execution, Runner, SkillFolder
from service.runners.record import failed, metrics_file, run_facts, said, timing_file, told
from service.sandbox.reader import CannotRead, Caps, Reader, shown
from service.sandbox.scratch import scratch
from service.settings import Settings
from service.skills import lay_out, skill_folder
from service.stages import End
from service.storage.artifacts import ArtifactStore
from service.storage.rows import SkillVersionRow


class Execute:
    """Runs one case in one configuration."""

    def __init__(self, settings: Settings, artifacts: ArtifactStore, runner: Callable[[str], Runner]) -> None:
        self._settings = settings
        self._artifacts = artifacts
        self._runner = runner

    def __call__(self, job: Job, held: Held) -> End:
        with scratch() as folder:
            (folder / "workspace").mkdir()
            assignment = self._stage(job, folder, held)
            staged = _digests(assignment)
            arm = _arm(job, staged)
            runner = self._runner(job.batch.setting("runner"))
            programs = named_files(assignment.command) if runner.name == CommandRunner.name else {}
            arm.check_before(folder, programs.values())
            started = time.time()
            execution = runner.run(assignment)
            try:
                arm.check_after(folder, *said(execution).values())
                outputs = self._collect(assignment.workspace, staged)
            except StageFailed as failure:
                raise failed(failure, runner.name, assignment, execution) from failure
        return _end(job, execution, outputs, started)

    def _stage(self, job: Job, folder: Path, held: Held) -> Assignment:
        workspace = folder / "workspace"
        for entry in job.inputs:
            target = workspace / entry["name"]
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self._artifacts.get(entry["sha256"]))
        return Assignment(
            run_id=job.claim.run_id,
            batch_id=job.claim.batch_id,
            case_id=job.case.id,
            configuration=job.claim.configuration,
            run_number=job.claim.run_number,
            prompt=job.case.prompt,
            workspace=workspace,
            inputs=tuple(entry["name"] for entry in job.inputs),
            skill=self._lay_out_skill(job, folder / SKILL_AT),
            canary=_canary(job, job.skill),
            other_canary=_canary(job, job.other_skill),
            model=job.batch.setting("executor_model"),
            timeout_seconds=job.batch.setting("execute_timeout_seconds"),
            command=tuple(job.batch.setting("command") or ()),
            team=job.batch.team_id,
            is_cancelled=held.is_lost,
        )

    def _lay_out_skill(self, job: Job, folder: Path) -> SkillFolder | None:
        if job.skill is None:
            return None
        folder = folder / job.skill.skill
        lay_out(job.skill.files, folder, self._artifacts)
        plant(folder, str(_canary(job, job.skill)))
        return skill_folder(folder, job.skill.digest)

    def _collect(self, workspace: Path, staged: dict[str, str]) -> dict[str, bytes]:
        """Every file that is new or changed, within the caps; too much is an executor's error, not a silent cut."""
        outputs: dict[str, bytes] = {}
        total = 0
        for name, data in _new_files(workspace, staged, self._settings.artifact_max_bytes):
            total += len(data)
            if len(outputs) >= self._settings.run_max_files or total > self._settings.run_max_bytes:
                caps = f"{self._settings.run_max_files} files or {self._settings.run_max_bytes >> 20} MB"
                raise StageFailed(Outcome.EXECUTOR_ERROR, f"the run left more than {caps} behind")
            outputs[f"outputs/{name}"] = data
        return outputs


def _arm(job: Job, staged: dict[str, str]) -> Arm:
    """What this arm must not hold: the other arm's skill, as far as it does not have the same files itself."""
    other = job.other_skill.files if job.other_skill else {}
    own = {entry["sha256"] for entry in job.skill.files.values()} if job.skill else set()
    # Between two versions an input may be what the other one once brought along itself: both arms are given it.
    # Without a skill there is no such excuse.
    allowed = own | set(staged.values()) if job.skill else ()
    absent = telling_files(other, allowed)
    return Arm(_canary(job, job.other_skill), has_skill=job.skill is not None, absent=absent)


def _canary(job: Job, version: SkillVersionRow | None) -> str | None:
    """The word in a version's staged skill; the suite's id is 80 bits of chance that never leave the database."""
    if version is None:
        return None
    return canary_of(job.batch.suite_id, job.claim.batch_id, version.digest)


def _unmarked(data: bytes) -> bytes:
    """An output that quotes the skill, without the mark that is ours."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return data
    return without_canary(text).encode()


def _digests(assignment: Assignment) -> dict[str, str]:
    names = {name: (assignment.workspace / name).read_bytes() for name in assignment.inputs}
    return {name: hashlib.sha256(data).hexdigest() for name, data in names.items()}


def _new_files(workspace: Path, staged: dict[str, str], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    reader = Reader(workspace, Caps(file_bytes=max_bytes))
    try:
        for path in reader.listing.files:
            data = reader.read_bytes(path)
            if staged.get(path) != hashlib.sha256(data).hexdigest():
                yield shown(path), _unmarked(data)
    except CannotRead as error:
        raise StageFailed(Outcome.EXECUTOR_ERROR, f"an output cannot be kept: {error}") from error


def _end(job: Job, execution: Execution, outputs: dict[str, bytes], started: float) -> End:
    names = sorted(name.removeprefix("outputs/") for name in outputs)
    metrics = replace_counts(execution.metrics, names, outputs, execution.transcript)
    files = {
        **said(execution),
        "metrics.json": metrics_file(metrics, execution),
        "timing.json": timing_file(execution, started),
        "execution.json": to_json(_facts_of(job, execution)),
        **outputs,
    }
    return End(_next_stage(job.case), files=files, facts={**run_facts(execution), "outputs": len(outputs)})


def _next_stage(case: Case) -> Stage:
    """A run with nothing to check goes straight to its judge: a message and two round trips less."""
    return Stage.JUDGE if not case.structural and needs_judge(case) else Stage.CHECK


def replace_counts(metrics: Metrics, names: list[str], outputs: dict[str, bytes], transcript: str) -> Metrics:
    """The three counts that only the stage knows."""
    chars = sum(len(data) for data in outputs.values())
    counted = {"files_created": tuple(names), "output_chars": chars, "transcript_chars": len(transcript)}
    return metrics.model_copy(update=counted)


def _facts_of(job: Job, execution: Execution) -> dict[str, Any]:
    """Where the run came from: kept beside it, so that a result can be traced."""
    return {
        "runner": job.batch.setting("runner"),
        "model": execution.model or job.batch.setting("executor_model"),
        "configuration": job.claim.configuration,
        "skill_digest": job.skill.digest if job.skill else None,
        "skill_version": job.skill.number if job.skill else None,
        "inputs": job.inputs,
        **told(execution),
    }
