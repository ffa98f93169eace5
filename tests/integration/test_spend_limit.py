"""A provider's spend limit pauses the team's batches instead of burning attempts."""

from pathlib import Path

from support.fleet import write_skill

from schemas.states import BatchState, Stage
from service.bootstrap import Parts
from service.jobs import Job
from service.leases import Held
from service.models import SpendLimit
from service.settings import Settings
from service.stages import End
from service.storage.schema import migrate
from service.submitting import Submission


def test_a_spend_limit_pauses_the_team_and_costs_no_attempt(tmp_path: Path) -> None:
    parts = Parts(Settings(data=tmp_path / "data", database_url=None, broker_url=None, sandbox="none"))
    migrate(parts.store.engine)
    skill = write_skill(tmp_path / "skill", 2)
    accepted = parts.desk.submit(Submission(skill, settings={"command": "true", "runs_per_eval": 1}))
    parts.recovery.refill()
    run, *others = parts.desk.runs(accepted.batch_id, "default")

    def no_more_money(job: Job, _held: Held) -> End:
        raise SpendLimit(job.batch.team_id, "the provider's spend limit is reached")

    parts.stages.work(run.id, Stage.EXECUTE, no_more_money)

    row = parts.store.runs.one(run.id)
    batch = parts.store.batches.one(accepted.batch_id)
    assert row is not None and (row.stage, row.entry, row.attempts) == (Stage.WAITING, Stage.EXECUTE, 0)
    assert batch is not None and batch.state is BatchState.PAUSED
    assert len(others) == 3
    parts.desk.resume(accepted.batch_id, "default")
    parts.recovery.refill()
    again = parts.store.runs.one(run.id)
    assert again is not None and again.stage is Stage.EXECUTE
    parts.close()
