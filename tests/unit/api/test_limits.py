"""Rates, loopback and webhook addresses: who is let in, and where we go out."""

import socket

import pytest

from api.access import Rate, is_loopback
from api.errors import TooMany
from service.errors import BadInput
from service.storage.webhooks import Delivery
from service.webhooks import allowed_address, send, signature, split_url


def test_a_token_that_asks_too_often_is_told_when_to_come_again() -> None:
    rate = Rate(per_minute=3)
    for _ in range(3):
        rate.take("a")

    with pytest.raises(TooMany, match="3 times a minute") as refusal:
        rate.take("a")

    assert 0 < refusal.value.retry_after_seconds <= 20


def test_requests_that_are_refused_do_not_keep_the_bucket_empty() -> None:
    moments = iter(number * 0.3 for number in range(1_000))
    rate = Rate(per_minute=60, clock=lambda: next(moments))

    def is_let_in() -> bool:
        try:
            rate.take("a")
        except TooMany:
            return False
        return True

    let_in = [is_let_in() for _ in range(1_000)]

    # 300 seconds: a full bucket at the start, then one request in each second.
    assert sum(let_in) == pytest.approx(60 + 300, abs=2)


def test_who_waits_as_long_as_was_said_is_let_in() -> None:
    now = 0.0
    rate = Rate(per_minute=2, clock=lambda: now)
    rate.take("a")
    rate.take("a")
    with pytest.raises(TooMany) as refusal:
        rate.take("a")

    now = refusal.value.retry_after_seconds
    rate.take("a")


def test_one_token_does_not_use_up_anothers_rate() -> None:
    rate = Rate(per_minute=1)
    rate.take("a")

    rate.take("b")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "[::1]", "localhost", "127.8.8.8"])
def test_this_machine_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "10.0.0.1", "localhost.evil.example", "127.0.0.1.evil.example"])
def test_nobody_else_is_this_machine(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "10.1.2.3",
        "192.168.0.1",
        "169.254.169.254",
        "::1",
        "fd00::1",
        "0.0.0.0",
        "::ffff:10.0.0.1",
        "100.64.0.1",
        "2130706433",
        "64:ff9b::7f00:1",
        "64:ff9b::a00:1",
        "64:ff9b:1::1",
        "fec0::1",
        "::127.0.0.1",
        "2002:7f00:1::",
        "2002:a00:1::1",
        "fe80::1%lo",
        "ff02::1",
        "2001:0:7f00:1::",
    ],
)
def test_webhooks_do_not_go_to_private_addresses(host: str) -> None:
    with pytest.raises(BadInput, match="ASSAY_WEBHOOK_PRIVATE"):
        allowed_address(host, 443, private_too=False)


def test_webhooks_go_to_private_addresses_when_that_is_allowed() -> None:
    assert allowed_address("127.0.0.1", 443, private_too=True) == "127.0.0.1"


@pytest.mark.parametrize("host", ["8.8.8.8", "2001:4860:4860::8888", "64:ff9b::808:808", "2002:808:808::1"])
def test_webhooks_go_to_public_addresses(host: str) -> None:
    assert allowed_address(host, 443, private_too=False) == host


def found(*addresses: str) -> list[tuple]:
    """What a lookup gives for a name with these addresses."""
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in addresses]


@pytest.mark.parametrize("addresses", [("8.8.8.8", "10.0.0.1"), ("127.0.0.1", "8.8.8.8"), ("8.8.8.8", "::1")])
def test_a_name_with_one_private_address_is_private(monkeypatch: pytest.MonkeyPatch, addresses: tuple) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found(*addresses))

    with pytest.raises(BadInput, match="ASSAY_WEBHOOK_PRIVATE"):
        allowed_address("two-faced.example", 443, private_too=False)


def test_a_name_that_turns_private_after_it_was_looked_up_leads_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [found("8.8.8.8"), found("127.0.0.1")]
    called: list[tuple] = []

    def connect(to: tuple, **_: object) -> None:
        called.append(to)
        raise ConnectionRefusedError("nobody is there")

    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.pop(0))
    monkeypatch.setattr(socket, "create_connection", connect)
    delivery = Delivery("d", "https://rebinding.example/x", "secret", "team", "batch", 1.0, 1)
    first = send(delivery, b"{}", private_too=False)
    second = send(delivery, b"{}", private_too=False)

    assert called == [("8.8.8.8", 443)]
    assert "nobody is there" in str(first) and "ASSAY_WEBHOOK_PRIVATE" in str(second)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "https://",
        "http://user@host/",
        "https://host:99999/",
        "//host",
        "http://h\n",
        "https://a..b/",
        f"https://{'a' * 64}.example/",
        "https://-a.example/",
        "https://a_b.example/",
    ],
)
def test_what_is_no_web_address_cannot_be_a_webhook(url: str) -> None:
    with pytest.raises(BadInput):
        split_url(url)


@pytest.mark.parametrize("host", ["a..b", "a" * 64, ".", "a" * 300])
def test_a_host_that_cannot_be_looked_up_is_told_as_any_other_failure(host: str) -> None:
    with pytest.raises(BadInput, match="has no address"):
        allowed_address(host, 443, private_too=True)


def test_an_attempt_at_an_address_that_is_none_ends_with_a_reason() -> None:
    delivery = Delivery("d", "https://a..b/x", "secret", "team", "batch", 1.0, 1)

    assert "is no name of a host" in (send(delivery, b"{}", private_too=True) or "")


def test_a_signature_covers_the_time_and_the_body() -> None:
    first = signature("secret", 1, b"body")

    assert first.startswith("t=1,v1=")
    assert len({first, signature("secret", 2, b"body"), signature("secret", 1, b"b"), signature("s", 1, b"body")}) == 4
