"""Around every request: its id, its headers and its line in the log, also when something breaks."""

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.responses import StreamingResponse
from starlette.testclient import TestClient

from api.app import create_app
from service.bootstrap import Parts
from service.log import JsonFormat, logger
from service.settings import Settings
from service.storage.schema import migrate
from service.tokens import Scope


class Lines:
    """What is logged, one JSON object a line."""

    def __init__(self) -> None:
        self.written = io.StringIO()

    def named(self, message: str) -> dict[str, Any]:
        """The last line of this message."""
        found = [json.loads(line) for line in self.written.getvalue().splitlines()]
        last: dict[str, Any] = [line for line in found if line["message"] == message][-1]
        return last


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lines]:
    made = Lines()
    handler = logging.StreamHandler(made.written)
    handler.setFormatter(JsonFormat())
    monkeypatch.setattr(logger, "handlers", [handler])
    level = logger.level
    logger.setLevel(logging.INFO)
    yield made
    logger.setLevel(level)


@pytest.fixture
def breaking(tmp_path: Path) -> Iterator[FastAPI]:
    """The API with two more pages, one that breaks at once and one that breaks in the middle."""
    parts = Parts(Settings(data=tmp_path))
    app = create_app(parts)

    def pieces() -> Iterator[bytes]:
        yield b"half"
        raise ZeroDivisionError

    @app.get("/broken")
    def broken() -> int:
        return 1 // 0

    @app.get("/half")
    def half() -> StreamingResponse:
        return StreamingResponse(pieces())

    yield app
    parts.close()


def test_an_answer_that_broke_has_its_id_and_the_careful_headers(breaking: FastAPI) -> None:
    answer = TestClient(breaking).get("/broken")

    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.json()["instance"] == f"urn:assay:request:{answer.headers['x-request-id']}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "ZeroDivisionError" not in answer.text


def test_what_broke_is_in_the_log_with_its_trace_and_the_id_of_the_request(breaking: FastAPI, lines: Lines) -> None:
    answer = TestClient(breaking).get("/broken")

    line = lines.named("request broke")
    assert (line["kind"], line["request"]) == ("ZeroDivisionError", answer.headers["x-request-id"])
    assert "return 1 // 0" in line["traceback"]
    assert lines.named("request")["status"] == 500


def test_an_answer_that_breaks_in_the_middle_is_not_ended_as_if_it_were_whole(breaking: FastAPI, lines: Lines) -> None:
    with pytest.raises(ZeroDivisionError):
        TestClient(breaking).get("/half")

    assert lines.named("request broke")["kind"] == "ZeroDivisionError"


def test_a_line_of_the_access_log_says_who_asked_what_and_how_it_went(tmp_path: Path, lines: Lines) -> None:
    parts = Parts(Settings(data=tmp_path, log_format="json"))
    migrate(parts.store.engine)
    token, _ = parts.tokens.create("mine", "test", [Scope.READ], None)
    client = TestClient(create_app(parts), client=("192.0.2.7", 4242), headers={"Authorization": f"Bearer {token}"})
    answer = client.get("/v1/skills/tiny/versions")
    parts.close()

    line = lines.named("request")
    assert line["request"] == answer.headers["x-request-id"]
    assert (line["team"], token.startswith(f"{line['token']}_"), line["client"]) == ("mine", True, "192.0.2.7")
    assert (line["method"], line["route"]) == ("GET", "/v1/skills/{skill}/versions")
    assert (line["path"], line["status"]) == ("/v1/skills/tiny/versions", answer.status_code)
    assert 0 <= line["seconds"] < 600
    assert token not in lines.written.getvalue()
