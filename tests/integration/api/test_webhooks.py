"""Webhooks: signed, told once per end, tried again, and never to this machine unless that is allowed."""

import contextlib
import hashlib
import hmac
import http.server
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update
from support.api import RUNNER, Served, finish, make_parts, submit, suite, work

from service.bootstrap import Parts
from service.storage.tables import deliveries, webhooks
from service.storage.webhooks import Delivery
from service.submitting import Submission
from service.webhooks import Courier, send


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


def tried(parts: Parts, webhook_id: str, state: str = "due") -> dict:
    """The webhook's one delivery once an attempt was written down, ours or that of the API's own courier."""
    for _ in range(500):
        (found,) = parts.webhooks.deliveries("default", webhook_id)
        if found["state"] == state and found["error"] is not None:
            return found
        time.sleep(0.02)
    raise AssertionError(found)


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


def test_an_address_that_breaks_the_lookup_does_not_stop_the_others(tmp_path: Path, receiver: Receiver) -> None:
    parts = make_parts(tmp_path, webhook_private=True)
    with Served(parts) as served:
        with served.client() as client:
            refused = client.post("/v1/webhooks", json={"url": "https://a..b/x"})
        poison = poisoned(parts)
        an_ended_batch(served, receiver.url)
        parts.webhooks.deliver_due()
        found = tried(parts, poison)
    parts.close()

    assert refused.status_code == 422
    assert len(receiver.told) == 1
    assert found["attempts"] == 1 and "is no name of a host" in found["error"]


def poisoned(parts: Parts) -> str:
    """A webhook written down before such addresses were refused."""
    row, _secret = parts.webhooks.add("default", "https://good.example/x")
    with parts.store.engine.begin() as connection:
        connection.execute(update(webhooks).where(webhooks.c.id == row.id).values(url="https://a..b/x"))
    return row.id


def test_a_delivery_whose_attempts_are_spent_is_given_up_unsent(tmp_path: Path, receiver: Receiver) -> None:
    parts = make_parts(tmp_path, webhook_private=True)
    with Served(parts) as served:
        receiver.refusals.append(500)
        _batch, webhook = an_ended_batch(served, receiver.url)
        parts.webhooks.deliver_due()
        with parts.store.engine.begin() as connection:
            connection.execute(update(deliveries).values(not_before=0.0, attempts=8))
        parts.webhooks.deliver_due()
        found = tried(parts, webhook["id"], "given_up")
    parts.close()

    assert found["state"] == "given_up" and "8 attempts" in found["error"]
    assert len(receiver.told) == 1


def dripping(server: socket.socket) -> None:
    """Answer 200, after many bytes that each come soon after the one before."""
    taken, _ = server.accept()
    with taken, contextlib.suppress(OSError):
        taken.recv(65_536)
        for letter in b"HTTP/1.1 200 OK\r\nX: " + b"x" * 500 + b"\r\n\r\n":
            taken.sendall(bytes([letter]))
            time.sleep(0.01)


def test_a_receiver_that_answers_a_byte_at_a_time_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=dripping, args=[server], daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        delivery = Delivery("d", url, "secret", "team", "batch", 1.0, 1)

        error = send(delivery, b"{}", private_too=True, deadline_seconds=0.3)
        thread.join()

    assert error == "the receiver had not answered after 0.3 s"


def ended_batches(parts: Parts, team: str, number: int, folder: Path) -> None:
    """So many batches of a team that ended; nobody serves the API, so nobody delivers."""
    skill = folder / team
    (skill / "evals").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: tiny\n---\n")
    (skill / "evals" / "evals.json").write_text(json.dumps(suite()))
    for _ in range(number):
        batch = parts.desk.submit(Submission(skill, team=team, settings=RUNNER)).batch_id
        parts.desk.cancel(batch, team)
        parts.stages.aggregate(batch, parts.aggregate)


def test_a_receiver_that_does_not_answer_keeps_no_other_team_waiting(tmp_path: Path, receiver: Receiver) -> None:
    parts = make_parts(tmp_path, webhook_private=True)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        slow, _ = parts.webhooks.add("slow", f"http://127.0.0.1:{silent.getsockname()[1]}/")
        parts.webhooks.add("quick", receiver.url)
        ended_batches(parts, "slow", 5, tmp_path)
        ended_batches(parts, "quick", 1, tmp_path)
        courier = Courier(parts.webhooks, every_seconds=0.01)
        courier.start()
        try:
            while not receiver.told:
                time.sleep(0.01)
            # None of the five has come to an end meanwhile, and at least two of them were not begun.
            waiting = parts.webhooks.deliveries("slow", slow.id)
        finally:
            silent.close()
            courier.stop()
    parts.close()

    assert [(one["state"], one["error"]) for one in waiting] == [("due", None)] * 5
    assert sum(one["attempts"] for one in waiting) <= 3
    assert len(receiver.told) == 1


def test_an_attempt_that_comes_to_its_end_too_late_changes_nothing(tmp_path: Path, receiver: Receiver) -> None:
    parts = make_parts(tmp_path, webhook_private=True)
    webhook, _ = parts.webhooks.add("late", receiver.url)
    ended_batches(parts, "late", 1, tmp_path)
    parts.webhooks.find()
    late = parts.webhooks.next_due()
    assert late is not None
    with parts.store.engine.begin() as connection:
        connection.execute(update(deliveries).values(not_before=0.0))
    parts.webhooks.deliver_due()

    parts.webhooks._write_down(late, "the receiver had not answered")
    (found,) = parts.webhooks.deliveries("late", webhook.id)
    parts.close()

    assert (found["state"], found["attempts"], found["error"]) == ("delivered", 2, None)


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
