"""Judgements in the database: paid for once, found for ever."""

from sqlalchemy import Engine, bindparam, select

from service.judging.judgement import SlotJudgement
from service.storage.clock import Now
from service.storage.engine import alone
from service.storage.store import database_errors
from service.storage.tables import judgements
from service.storage.teams import insert_or_ignore

# Asked for every judgement, so built once.
_GET = select(judgements.c.body).where(judgements.c.id == bindparam("judgement"))


class KeptJudgements:
    """The JudgementStore of an installation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = alone(engine)

    def get(self, judgement_id: str) -> SlotJudgement | None:
        with database_errors(), self._engine.begin() as connection:
            body = connection.execute(_GET, {"judgement": judgement_id}).scalar_one_or_none()
        return None if body is None else SlotJudgement.model_validate_json(body)

    def put(self, judgement: SlotJudgement) -> None:
        row = {
            "id": judgement.id,
            "model": judgement.model,
            "prompt_version": judgement.prompt_version,
            "body": judgement.model_dump_json(),
        }
        with database_errors(), self._engine.begin() as connection:
            connection.execute(insert_or_ignore(connection, judgements).values(created_at=Now()), row)
