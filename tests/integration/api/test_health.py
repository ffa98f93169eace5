"""Health, readiness and figures."""

from pathlib import Path

import httpx2
from prometheus_client.parser import text_string_to_metric_families
from support.api import Served, make_parts, submit, work

from service.limits.gate import Gate
from service.limits.memory import MemoryLimiter
from service.limits.port import Demand, Policy, Purpose, Rate
from service.model_access import StoredLedger
from service.models import ModelCall


class Time:
    """A clock that only sleeping moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_process_that_answers_is_alive_and_says_no_more(served: Served) -> None:
    with served.client() as nobody:
        answer = nobody.get("/healthz")

    assert (answer.status_code, set(answer.json())) == (200, {"status", "version"})


def test_readiness_names_the_part_that_is_away_and_no_address(tmp_path: Path) -> None:
    parts = make_parts(tmp_path, broker_url="redis://:secret@127.0.0.1:1/0")
    with Served(parts) as running, running.client() as client:
        answer = client.get("/readyz")
    parts.close()

    assert (answer.status_code, answer.json()["database"]) == (503, "ok")
    assert "does not answer" in answer.json()["broker"] or answer.json()["broker"] == "the broker"
    assert "secret" not in answer.text and "127.0.0.1" not in answer.text


def test_figures_count_runs_attempts_and_requests(served: Served, client: httpx2.Client) -> None:
    batch = submit(client).json()["batch_id"]
    work(served.parts, batch, "mine")
    served.parts.monitoring._kept = None

    found = {family.name: family for family in text_string_to_metric_families(client.get("/metrics").text)}

    def value(name: str, **labels: str) -> float:
        return next(one.value for one in found[name].samples if one.labels == labels)

    assert value("assay_runs", stage="settled") == value("assay_runs_settled", outcome="scored") >= 2
    assert value("assay_attempts", stage="judge", result="done") >= 2
    assert "assay_queue_depth" in found and "assay_model_calls" in found and "assay_lease_recoveries" in found
    routes = {sample.labels["route"] for sample in found["assay_http_requests"].samples}
    assert "/v1/batches" in routes


def test_the_waiting_for_the_limiter_is_counted_by_model(served: Served, client: httpx2.Client) -> None:
    time = Time()
    limiter = MemoryLimiter(Policy(default_rate=Rate(requests=60), burst_seconds=0.0), time)
    gate = Gate(limiter, sleep=time.sleep, clock=time)
    ledger = StoredLedger(served.parts.store, gate.take_waited)
    for purpose in (Purpose.EXECUTE, Purpose.JUDGE, Purpose.JUDGE):
        gate.enter(Demand("m", "t", purpose))
        ledger.record(ModelCall("t", None, None, purpose, "m", "m", None, None, 1.0, None, False, 1))
    served.parts.monitoring._kept = None

    families = text_string_to_metric_families(client.get("/metrics").text)

    waits = next(family for family in families if family.name == "assay_limiter_wait_seconds")
    (total,) = (one for one in waits.samples if one.name == "assay_limiter_wait_seconds_total")
    assert (total.labels, round(total.value)) == ({"model": "m"}, 2)


def test_every_answer_carries_its_request_id_and_careful_headers(client: httpx2.Client) -> None:
    answer = client.get("/v1/nowhere")

    assert answer.json()["instance"] == f"urn:assay:request:{answer.headers['x-request-id']}"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
