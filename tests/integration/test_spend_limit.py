"""A provider's spend limit pauses the team's batches instead of burning attempts."""

from contextlib import closing
from pathlib import Path

import pytest
from support.fleet import write_skill
from support.whole_batch import WithModels

from schemas.states import BatchState, Outcome, Stage
from service.submitting import Submission
from simulator import start

SETTINGS = {"executor_model": "simulated", "runner": "messages", "runs_per_eval": 1}


@pytest.mark.parametrize("kind", ["spend_limit", "billing"])
def test_a_spend_limit_pauses_the_team_and_costs_no_attempt(tmp_path: Path, kind: str) -> None:
    skill = write_skill(tmp_path / "skill", 2)
    with start() as simulator, closing(WithModels(tmp_path / "data", simulator.url, sandbox="none")) as parts:
        simulator.add_faults({"kind": kind})
        accepted = parts.desk.submit(Submission(skill, settings=SETTINGS))
        parts.recovery.refill()
        run, *others = parts.desk.runs(accepted.batch_id, "default")

        parts.stages.work(run.id, Stage.EXECUTE, parts.execute)

        row = parts.store.runs.one(run.id)
        batch = parts.store.batches.one(accepted.batch_id)
        assert row is not None and (row.stage, row.entry, row.attempts) == (Stage.WAITING, Stage.EXECUTE, 0)
        assert batch is not None and batch.state is BatchState.PAUSED
        assert len(others) == 3
        assert simulator.stats()["requests"] == simulator.stats()["faults"][kind] == 1

        simulator.clear_faults()
        parts.desk.resume(accepted.batch_id, "default")
        parts.recovery.refill()
        parts.stages.work(run.id, Stage.EXECUTE, parts.execute)
        again = parts.store.runs.one(run.id)
        assert again is not None and again.stage is not Stage.EXECUTE
        assert again.outcome is not Outcome.INFRA_ERROR
