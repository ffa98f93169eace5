"""The stage `judge`: what only a model can decide. Without a judge model nothing is decided, and the run says so."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from schemas.dialects import Dialect, write
from schemas.grading import Grading
from schemas.metrics import Metrics
from schemas.states import Outcome
from schemas.structural import Structural
from schemas.suite import Case
from schemas.timing import Timing
from service.documents import stamp, to_json
from service.jobs import Job, Jobs
from service.judging.ask import Asker, ask_with
from service.judging.judge import judge
from service.judging.judgement import Ask, JudgeFailed, Judgement, JudgementStore
from service.judging.lane import LaneRequest, LaneSettings, LaneStore
from service.judging.lane_ask import LaneAsk, uses_lane
from service.judging.material import JudgeMaterial, OutputFile, before_judging
from service.judging.request import JudgeRequest, build_request
from service.judging.scoring import counts_of
from service.judging.settings import JudgeSettings
from service.leases import Held
from service.models.port import Models
from service.run_files import RunFiles
from service.settings import Settings
from service.stages import End, settled
from service.storage.artifacts import ArtifactStore
from service.storage.rows import Blob
from service.storage.runs import Runs


class Judge:
    """Decides statements, criteria and rubric."""

    def __init__(
        self,
        settings: Settings,
        runs: Runs,
        artifacts: ArtifactStore,
        models: Callable[[], Models],
        judgements: JudgementStore,
        lane: LaneStore,
        jobs: Jobs,
    ) -> None:
        self._settings = settings
        self._runs = runs
        self._artifacts = artifacts
        self._models = models
        self._judgements = judgements
        self._lane = lane
        self._jobs = jobs

    def __call__(self, job: Job, held: Held) -> End:
        models = judge_models(job.batch.setting)
        if not models:
            words = "no judge model is set; statements, criteria and rubric were not decided"
            return settled(Outcome.UNGRADED, words)
        asker = self._asker(job, held)
        realtime = ask_with(self._models(), asker)
        in_lane = uses_lane(job.batch.setting("judging"), job.run_count, LaneSettings())
        ask: Ask = LaneAsk(self._lane, realtime, asker) if in_lane else realtime
        material, started = self._material(job), time.time()
        try:
            judgement = judge(material, self._judge_settings(job), ask, self._judgements)
        except JudgeFailed as failure:
            return settled(failure.outcome, str(failure), facts={"judge_failed": failure.reason})
        end = _end(job, judgement)
        return replace(end, files=end.files | _timing_file(material.timing, judgement.seconds, started))

    def rebuild(self, request: LaneRequest) -> JudgeRequest:
        """The body of a request that waits in the half-price lane."""
        job = self._jobs.of_run(request.run_id)
        return build_request(self._material(job), self._judge_settings(job), request.slot)

    def _judge_settings(self, job: Job) -> JudgeSettings:
        return JudgeSettings(
            models=judge_models(job.batch.setting),
            text_budget_chars=self._settings.judge_text_chars,
            transcript_budget_chars=self._settings.judge_transcript_chars,
            native_budget_bytes=self._settings.judge_native_bytes,
            effort=self._settings.judge_effort,
            rejudge_share=job.batch.setting("rejudge_share"),
        )

    def _asker(self, job: Job, held: Held) -> Asker:
        claim = job.claim
        return Asker(
            team=job.batch.team_id,
            batch_id=claim.batch_id,
            run_id=claim.run_id,
            label=f"{claim.case_label}/{claim.configuration}/{claim.run_number}",
            timeout_seconds=self._settings.judge_timeout_seconds,
            is_cancelled=held.is_lost,
        )

    def _material(self, job: Job) -> JudgeMaterial:
        files = RunFiles(self._runs.files(job.claim.run_id), self._artifacts)
        return JudgeMaterial(
            case=job.case,
            dialect=written_in(job.dialect, job.case),
            outputs=tuple(self._output(name, blob) for name, blob in files.outputs().items()),
            transcript=files.text("transcript.md"),
            user_notes=files.text("user_notes.md"),
            structural=files.document("structural.json", Structural),
            metrics=files.document("metrics.json", Metrics),
            timing=before_judging(files.document("timing.json", Timing)),
            run_number=job.claim.run_number,
            version=job.skill.number if job.skill else None,
        )

    def _output(self, name: str, blob: Blob) -> OutputFile:
        fits = blob.size <= self._settings.judge_file_max_bytes
        data = self._artifacts.get(blob.sha256) if fits else None
        return OutputFile(name, blob.size, blob.sha256, data)


def judge_models(setting: Callable[[str], Any]) -> tuple[str, ...]:
    """The panel of a batch, one model as a rule; empty when nobody judges."""
    panel = setting("judge_models")
    single = setting("judge_model")
    return tuple(panel) if panel else (single,) if single else ()


def written_in(dialect: str, case: Case) -> Dialect:
    """The dialect a grading is written in: the suite's own, or for those we only read the one that holds it all."""
    if dialect in (Dialect.SKILL_EVALUATOR, Dialect.SKILL_CREATOR, Dialect.CASES):
        return Dialect(dialect)
    if case.criteria:
        return Dialect.CASES
    return Dialect.SKILL_EVALUATOR if case.rubric else Dialect.SKILL_CREATOR


def _end(job: Job, judgement: Judgement) -> End:
    was_simulated = judgement.simulated
    dialect = written_in(job.dialect, job.case)
    files = {"grading.json": _grading_file(judgement.grading, dialect, was_simulated)}
    for again in judgement.rejudged:
        files["grading-again.json"] = _grading_file(again, dialect, was_simulated)
    counts = counts_of(judgement.grading)
    facts = {
        "passed": counts.passed,
        "total": counts.total,
        "judge_seconds": round(judgement.seconds, 3),
        "judge_tokens": judgement.tokens.total,
        "judge_cost_usd": judgement.cost_usd,
        "judge_failed": None,  # an earlier attempt may have said why
        "rejudge_failed": judgement.rejudge_failed,
        "simulated": bool(job.claim.facts.get("simulated")) or was_simulated,
    }
    return settled(Outcome.SCORED, files=files, facts=facts)


def _timing_file(timing: Timing | None, seconds: float, started: float) -> dict[str, bytes]:
    """The run's timing.json with the judge's part: when this grading was made, and how long its answers took."""
    part = {
        "grader_start": stamp(started),
        "grader_end": stamp(time.time()),
        "grader_duration_seconds": round(seconds, 3),
    }
    whole = (timing or Timing()).model_copy(update=part)
    return {"timing.json": to_json(write(whole, Dialect.SKILL_CREATOR))}


def _grading_file(grading: Grading, dialect: Dialect, was_simulated: bool) -> bytes:
    if was_simulated:
        grading = grading.model_copy(update={"extra": {**grading.extra, "simulated": True}})
    return to_json(write(grading, dialect))
