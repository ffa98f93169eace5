"""Webhooks: signed, told once per end, tried again, and never to this machine unless that is allowed."""

import hashlib
import hmac
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update
from support.api import Served, finish, make_parts, submit, work

from service.storage.tables import deliveries


class Receiver(http.server.ThreadingHTTPServer):
    """Writes down what it is told; answers with the status it was given, then with 200."""

    def __init__(self) -> None:
        self.told: list[tuple[dict[str, str], bytes]] = []
        self.refusals: list[int] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/told?by=assay"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.told.append((dict(self.headers), body))
        self.send_response(self.server.refusals.pop() if self.server.refusals else 200)
        self.send_header("Location", self.server.url)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Tests are quiet."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def an_ended_batch(served: Served, url: str) -> tuple[str, dict]:
    """A batch that ended after a webhook was made."""
    with served.client() as client:
        webhook = client.post("/v1/webhooks", json={"url": url}).json()
        batch = submit(client).json()["batch_id"]
    work(served.parts, batch, "default")
    finish(served.parts, batch)
    return batch, webhook


def test_the_end_of_a_batch_is_told_once_and_signed(tmp_path: Path, receiver: Receiver) -> None:
    parts = make_parts(tmp_path, webhook_private=True)
    with Served(parts) as served:
        batch, webhook = an_ended_batch(served, receiver.url)
        parts.webhooks.deliver_due()
        parts.webhooks.deliver_due()
    parts.close()

    ((headers, body),) = receiver.told
    when, mac = (part.partition("=")[2] for part in headers["Assay-Signature"].split(","))
    expected = hmac.new(webhook["secret"].encode(), f"{when}.".encode() + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(mac, expected)
    told = json.loads(body)
    assert (told["event"], told["batch"]["id"], told["batch"]["outcomes"]) == ("batch.ended", batch, {"scored": 2})


@pytest.mark.parametrize("refusal", [500, 302])
def test_what_a_receiver_did_not_take_is_told_again(tmp_path: Path, receiver: Receiver, refusal: int) -> None:
    receiver.refusals.append(refusal)
    parts = make_parts(tmp_path, webhook_private=True)
    with Served(parts) as served:
        _batch, webhook = an_ended_batch(served, receiver.url)
        parts.webhooks.deliver_due()
        with parts.store.engine.begin() as connection:
            connection.execute(update(deliveries).where(deliveries.c.state == "due").values(not_before=0.0))
        parts.webhooks.deliver_due()
        with served.client() as client:
            found = client.get(f"/v1/webhooks/{webhook['id']}/deliveries").json()["deliveries"]
    parts.close()

    assert len({headers["Assay-Delivery"] for headers, _ in receiver.told}) == 1 and len(receiver.told) == 2
    assert [(one["state"], one["attempts"]) for one in found] == [("delivered", 2)]


def test_private_addresses_are_not_told(tmp_path: Path, receiver: Receiver) -> None:
    parts = make_parts(tmp_path)
    with Served(parts) as served:
        _batch, webhook = an_ended_batch(served, receiver.url)
        parts.webhooks.deliver_due()
        with served.client() as client:
            found = client.get(f"/v1/webhooks/{webhook['id']}/deliveries").json()["deliveries"]
    parts.close()

    assert receiver.told == []
    assert found[0]["state"] == "due" and "ASSAY_WEBHOOK_PRIVATE" in found[0]["error"]


def test_a_webhook_that_was_taken_back_is_told_nothing(tmp_path: Path, receiver: Receiver) -> None:
    parts = make_parts(tmp_path, webhook_private=True)
    with Served(parts) as served, served.client() as client:
        webhook = client.post("/v1/webhooks", json={"url": receiver.url}).json()
        assert client.delete(f"/v1/webhooks/{webhook['id']}").status_code == 204
        batch = submit(client).json()["batch_id"]
        work(parts, batch, "default")
        finish(parts, batch)
        parts.webhooks.deliver_due()
    parts.close()

    assert receiver.told == []
