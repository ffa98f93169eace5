"""The stage `check`: structural expectations, decided by code; the gate decides whether a judge is asked."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from schemas.dialects import Dialect, write
from schemas.metrics import Metrics
from schemas.states import Outcome, Stage
from schemas.structural import Structural, Summary
from service.checks import Tools, check
from service.documents import to_json
from service.jobs import Job
from service.judging.questions import needs_judge
from service.leases import Held
from service.run_files import RunFiles
from service.sandbox.reader import Caps, Reader
from service.sandbox.scratch import scratch
from service.settings import Settings
from service.stages import End, settled
from service.storage.artifacts import ArtifactStore
from service.storage.runs import Runs


class Check:
    """Looks at the files that came out."""

    def __init__(self, settings: Settings, runs: Runs, artifacts: ArtifactStore, tools: Tools) -> None:
        self._settings = settings
        self._runs = runs
        self._artifacts = artifacts
        self._tools = tools

    def __call__(self, job: Job, _held: Held) -> End:
        files = RunFiles(self._runs.files(job.claim.run_id) if job.case.structural else {}, self._artifacts)
        with self._laid_out(files) as outputs:
            structural = check(
                job.case,
                Reader(outputs, Caps(file_bytes=self._settings.artifact_max_bytes)),
                files.text("transcript.md"),
                files.document("metrics.json", Metrics),
                self._tools,
                self._settings.check_timeout_seconds,
            )
        return _end(job, structural)

    @contextmanager
    def _laid_out(self, files: RunFiles) -> Iterator[Path]:
        """The run's outputs in a folder of their own: scripts and readers want files."""
        with scratch() as folder:
            (folder / "outputs").mkdir()
            for name, blob in files.outputs().items():
                path = folder / "outputs" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(self._artifacts.get(blob.sha256))
            yield folder / "outputs"


def _end(job: Job, structural: Structural) -> End:
    files = {"structural.json": to_json(write(structural, Dialect.SKILL_EVALUATOR))}
    summary = structural.summary or Summary()
    facts = {"gate": structural.gate_passed, "structural_passed": summary.passed, "structural_total": summary.total}
    undecided = [checked.id or checked.text for checked in structural.expectations if checked.passed is None]
    if undecided:
        words = f"{len(undecided)} structural expectations could not be decided: {', '.join(undecided[:5])}"
        return settled(Outcome.INFRA_ERROR, words, files=files, facts=facts)
    if structural.gate_passed is False and job.batch.setting("structural_gate"):
        return settled(Outcome.GATED, files=files, facts=facts)
    if needs_judge(job.case):
        return End(Stage.JUDGE, files=files, facts=facts)
    outcome = Outcome.SCORED if structural.expectations else Outcome.UNGRADED
    return settled(outcome, None if structural.expectations else "the case asks for nothing", files=files, facts=facts)
