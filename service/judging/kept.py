"""Judgements in the database: paid for once, found for ever."""

from sqlalchemy import Engine, select

from service.judging.judgement import SlotJudgement
from service.storage.clock import Now
from service.storage.store import database_errors
from service.storage.tables import judgements
from service.storage.teams import insert_or_ignore


class KeptJudgements:
    """The JudgementStore of an installation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, judgement_id: str) -> SlotJudgement | None:
        query = select(judgements.c.body).where(judgements.c.id == judgement_id)
        with database_errors(), self._engine.begin() as connection:
            body = connection.execute(query).scalar_one_or_none()
        return None if body is None else SlotJudgement.model_validate_json(body)

    def put(self, judgement: SlotJudgement) -> None:
        row = {
            "id": judgement.id,
            "model": judgement.model,
            "prompt_version": judgement.prompt_version,
            "body": judgement.model_dump_json(),
            "created_at": Now(),
        }
        with database_errors(), self._engine.begin() as connection:
            connection.execute(insert_or_ignore(connection, judgements).values(**row))
