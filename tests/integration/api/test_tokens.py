"""Tokens: who is let in, for what, until when; and nobody else."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text, update
from support.api import Served, make_parts, submit

from service.storage.tables import tokens
from service.tokens import Scope


@pytest.fixture
def open_api(tmp_path: Path) -> Iterator[Served]:
    """An API for which no token was ever made."""
    parts = make_parts(tmp_path)
    with Served(parts) as running:
        yield running
    parts.close()


def test_without_tokens_this_machine_is_let_in(open_api: Served) -> None:
    with open_api.client() as client:
        assert client.get("/v1/batches").status_code == 200


@pytest.mark.parametrize("headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}])
def test_without_tokens_no_web_page_is_let_in(open_api: Served, headers: dict[str, str]) -> None:
    with open_api.client() as client:
        assert client.get("/v1/batches", headers=headers).status_code == 401


def test_the_first_token_closes_the_door(open_api: Served) -> None:
    token = open_api.token("mine")

    # A moment of memory is allowed; the desk is asked again.
    open_api.parts.tokens._looked_at = float("-inf")
    with open_api.client() as nobody, open_api.client(token) as somebody:
        refusal = nobody.get("/v1/batches")
        assert (refusal.status_code, refusal.headers["www-authenticate"]) == (401, 'Bearer realm="assay"')
        assert somebody.get("/v1/batches").status_code == 200


def test_revoking_the_last_token_opens_nothing(open_api: Served) -> None:
    token = open_api.token("mine")
    open_api.parts.tokens.revoke(token[: token.rindex("_", 0, 16)])
    open_api.parts.tokens._looked_at = float("-inf")

    with open_api.client() as nobody, open_api.client(token) as revoked:
        assert nobody.get("/v1/batches").status_code == 401
        assert revoked.get("/v1/batches").status_code == 401


def test_the_token_itself_is_kept_nowhere(served: Served) -> None:
    token = served.token("mine")

    with served.parts.store.engine.begin() as connection:
        rows = connection.execute(text("SELECT * FROM tokens")).all()
    assert token not in str(rows) and token.rsplit("_", 1)[1] not in str(rows)


@pytest.mark.parametrize(
    ("scope", "reads", "submits", "administers"),
    [(Scope.READ, 200, 403, 403), (Scope.SUBMIT, 403, 202, 403), (Scope.ADMIN, 403, 403, 200)],
)
def test_a_token_is_good_for_its_scope_alone(
    served: Served, scope: Scope, reads: int, submits: int, administers: int
) -> None:
    with served.client(served.token("scoped", [scope])) as client:
        assert client.get("/v1/batches").status_code == reads
        assert submit(client).status_code == submits
        assert client.get("/v1/webhooks").status_code == administers


def test_nothing_is_read_from_those_who_may_not_submit(served: Served) -> None:
    with served.client(served.token("scoped", [Scope.READ])) as client:
        answer = client.post("/v1/batches", content=b"no form at all", headers={"content-type": "multipart/form-data"})

    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("POST", "/v1/comparisons"),
        ("POST", "/v1/webhooks"),
        ("PUT", "/v1/runs/1/reviews"),
        ("POST", "/v1/batches/01k3mz8w5tq4x7c9y2b6n0p1rs/retry"),
        ("POST", "/v1/batches/01k3mz8w5tq4x7c9y2b6n0p1rs/regrade"),
        ("POST", "/v1/batches"),
        ("POST", "/v1/skills"),
    ],
)
@pytest.mark.parametrize(("scope", "status"), [(None, b"401"), (Scope.READ, b"403")])
def test_no_body_is_waited_for_from_those_who_may_not_ask(
    served: Served, verb: str, path: str, scope: Scope | None, status: bytes
) -> None:
    shown = f"Authorization: Bearer {served.token('scoped', [scope])}\r\n" if scope else ""
    host, port = served.url.removeprefix("http://").split(":")
    head = f"{verb} {path} HTTP/1.1\r\nHost: {host}\r\n{shown}"
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 500000\r\n\r\n{{".encode())

        assert connection.recv(4096).startswith(b"HTTP/1.1 " + status)


def test_bad_tokens_are_slowed_down_by_address_and_good_ones_are_not(tmp_path: Path) -> None:
    parts = make_parts(tmp_path, requests_per_minute=2)
    with Served(parts) as running, running.client("assay_no_such") as bad:
        token = running.token("mine")
        refused = [bad.get("/v1/batches") for _ in range(3)]
        with running.client(token) as good:
            assert good.get("/v1/batches").status_code == 200
    parts.close()

    assert [answer.status_code for answer in refused] == [401, 401, 429]
    assert "an address without a good token" in refused[2].json()["detail"]


def test_an_expired_token_lets_nobody_in(served: Served) -> None:
    token, token_id = served.parts.tokens.create("mine", "short", [Scope.READ], 1.0)
    with served.parts.store.engine.begin() as connection:
        connection.execute(update(tokens).where(tokens.c.id == token_id).values(expires_at=1.0))

    with served.client(token) as client:
        assert client.get("/v1/batches").status_code == 401


def test_the_last_use_of_a_token_is_written_down(served: Served) -> None:
    token, token_id = served.parts.tokens.create("mine", "used", [Scope.READ], None)
    with served.client(token) as client:
        client.get("/v1/batches")

    used = {row.id: row.last_used_at for row in served.parts.tokens.list("mine")}
    assert used[token_id] is not None


def test_a_token_that_asks_too_often_is_slowed_down(tmp_path: Path) -> None:
    parts = make_parts(tmp_path, requests_per_minute=2)
    with Served(parts) as running, running.client() as client:
        answers = [client.get("/v1/batches") for _ in range(3)]
    parts.close()

    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) >= 1
