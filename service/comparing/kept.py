"""Answers in the database, beside the judgements: paid for once, found for ever."""

from sqlalchemy import Engine, select

from service.comparing.asking import KeptAnswer
from service.storage.clock import Now
from service.storage.store import database_errors
from service.storage.tables import judgements
from service.storage.teams import insert_or_ignore


class KeptAnswers:
    """The AnswerStore of an installation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def get(self, answer_id: str) -> KeptAnswer | None:
        query = select(judgements.c.body).where(judgements.c.id == answer_id)
        with database_errors(), self._engine.begin() as connection:
            body = connection.execute(query).scalar_one_or_none()
        return None if body is None else KeptAnswer.model_validate_json(body)

    def put(self, answer_id: str, model: str, prompt_version: str, answer: KeptAnswer) -> None:
        row = {"id": answer_id, "model": model, "prompt_version": prompt_version, "created_at": Now()}
        with database_errors(), self._engine.begin() as connection:
            new = insert_or_ignore(connection, judgements)
            connection.execute(new.values(**row, body=answer.model_dump_json()))
