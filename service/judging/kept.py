"""Judgements in the database: paid for once, found for ever."""

import hashlib

from sqlalchemy import Engine, bindparam, select

from service.judging.judgement import FirstAnswer, SlotJudgement
from service.storage.clock import Now
from service.storage.engine import alone
from service.storage.store import database_errors
from service.storage.tables import judgements
from service.storage.teams import insert_or_ignore

# Asked for every judgement, so built once, and one round trip for both that it may find.
_GET = select(judgements.c.id, judgements.c.body).where(
    judgements.c.id.in_([bindparam("judgement"), bindparam("first")])
)


class KeptJudgements:
    """The JudgementStore of an installation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = alone(engine)

    def get(self, judgement_id: str) -> SlotJudgement | FirstAnswer | None:
        first = first_id(judgement_id)
        with database_errors(), self._engine.begin() as connection:
            rows = connection.execute(_GET, {"judgement": judgement_id, "first": first}).all()
        bodies = {row.id: row.body for row in rows}
        if judgement_id in bodies:
            return SlotJudgement.model_validate_json(bodies[judgement_id])
        return FirstAnswer.model_validate_json(bodies[first]) if first in bodies else None

    def put(self, judgement: SlotJudgement) -> None:
        self._put(judgement.id, judgement)

    def put_first(self, first: FirstAnswer) -> None:
        self._put(first_id(first.id), first)

    def _put(self, id_: str, kept: SlotJudgement | FirstAnswer) -> None:
        row = {"id": id_, "model": kept.model, "prompt_version": kept.prompt_version, "body": kept.model_dump_json()}
        with database_errors(), self._engine.begin() as connection:
            connection.execute(insert_or_ignore(connection, judgements).values(created_at=Now()), row)


def first_id(judgement_id: str) -> str:
    """Where the unusable first answer of a judgement is kept: beside it, under a digest of its own."""
    return hashlib.sha256(f"first:{judgement_id}".encode()).hexdigest()
