"""A regrade is a batch of its own on the artifacts of another one."""

import json
from typing import Any

import httpx2
import pytest
from support.api import Served, finish, submit, suite, work

from service.admission import choose


@pytest.fixture(scope="module")
def old(served: Served, client: httpx2.Client) -> str:
    """A finished batch of two runs."""
    batch = str(submit(client).json()["batch_id"])
    work(served.parts, batch, "mine")
    finish(served.parts, batch)
    return batch


def run_checks(served: Served, batch: str) -> None:
    """Do the work of checkers and aggregators."""
    served.parts.store.dispatch.admit(1_000, choose)
    for run in served.parts.desk.runs(batch, "mine"):
        served.parts.stages.work(run.id, run.stage, served.parts.check)
    served.parts.stages.aggregate(batch, served.parts.aggregate)


def all_runs(client: httpx2.Client, batch: str) -> list[dict[str, Any]]:
    return list(client.get(f"/v1/batches/{batch}/runs").json()["runs"])


def test_the_old_batch_stays_as_it_was_and_the_new_one_enters_at_check(
    served: Served, client: httpx2.Client, old: str
) -> None:
    before = (client.get(f"/v1/batches/{old}").json(), all_runs(client, old))

    answer = client.post(f"/v1/batches/{old}/regrade")

    new = answer.json()["batch_id"]
    assert (answer.status_code, answer.headers["location"]) == (202, f"/v1/batches/{new}")
    served.parts.store.dispatch.admit(1_000, choose)
    assert {run["stage"] for run in all_runs(client, new)} == {"check"}
    assert client.get(f"/v1/batches/{new}").json()["regrade_of"] == old
    assert (client.get(f"/v1/batches/{old}").json(), all_runs(client, old)) == before
    kept = [client.get(f"/v1/runs/{run['id']}/artifacts").json()["artifacts"] for run in all_runs(client, new)]
    assert [[(one["name"], one["size"]) for one in files] for files in kept] == [[("outputs/a.txt", 5)]] * 2


def test_old_and_new_stand_beside_each_other_when_it_has_ended(served: Served, client: httpx2.Client, old: str) -> None:
    other = suite()
    other["evals"][0]["structural_expectations"][0]["pattern"] = "b.txt"
    new = client.post(f"/v1/batches/{old}/regrade", json={"suite": other}).json()["batch_id"]
    early = client.get(f"/v1/batches/{new}/regrade")

    run_checks(served, new)

    document = client.get(f"/v1/batches/{new}/regrade").json()
    assert (early.status_code, document["regrade_of"]) == (404, old)
    assert (document["compared_runs"], document["different_runs"]) == (2, 2)
    assert {run["new"]["outcome"] for run in document["runs"]} == {"gated"}
    refusal = client.get(f"/v1/batches/{old}/regrade")
    assert (refusal.status_code, "is no regrade" in refusal.json()["detail"]) == (409, True)


def test_a_suite_may_come_as_a_file_of_a_form(client: httpx2.Client, old: str) -> None:
    evals = ("evals.json", json.dumps(suite(2)))
    options = json.dumps({"settings": {"judge_model": "another"}})

    answer = client.post(f"/v1/batches/{old}/regrade", files={"evals": evals}, data={"options": options}).json()

    assert answer["runs"] == 2
    assert [finding["code"] for finding in answer["findings"]] == ["case_without_runs"]
    settings = client.get(f"/v1/batches/{answer['batch_id']}").json()["settings"]
    assert settings["judge_model"] == {"value": "another", "source": "submit"}
    assert settings["runner"]["value"] == "given"


def test_the_same_key_gives_the_same_regrade_and_not_another(client: httpx2.Client, old: str) -> None:
    headers = {"Idempotency-Key": "regrade-once"}

    first, second = (client.post(f"/v1/batches/{old}/regrade", headers=headers).json() for _ in range(2))
    other = client.post(f"/v1/batches/{old}/regrade", headers=headers, json={"suite": suite(2)})

    assert first["batch_id"] == second["batch_id"] and (first["is_new"], second["is_new"]) == (True, False)
    assert other.status_code == 409


@pytest.mark.parametrize(
    ("sent", "status", "words"),
    [
        ({"json": {"settings": {"runner": "command"}}}, 422, "nothing is executed again"),
        ({"json": {"suite": {"skill_name": "x", "evals": []}}}, 422, "has no case of batch"),
        ({"json": {"unknown": 1}}, 422, "unknown"),
        ({"files": {"other": ("a", b"b")}}, 422, "is no part of a regrade"),
        ({"data": {"evals": "text"}, "files": {}}, 415, "send application/json"),
        ({"content": b"{}", "headers": {"content-type": "text/plain"}}, 415, "send application/json"),
    ],
)
def test_what_a_regrade_cannot_be_is_refused(
    sent: dict[str, Any], status: int, words: str, client: httpx2.Client, old: str
) -> None:
    answer = client.post(f"/v1/batches/{old}/regrade", **sent)

    assert (answer.status_code, words in answer.text) == (status, True), answer.text


def test_a_batch_that_still_runs_and_one_of_another_team_are_not_regraded(
    client: httpx2.Client, stranger: httpx2.Client, old: str
) -> None:
    running = submit(client).json()["batch_id"]

    assert client.post(f"/v1/batches/{running}/regrade").status_code == 409
    assert stranger.post(f"/v1/batches/{old}/regrade").status_code == 404


def test_a_run_that_was_never_executed_keeps_its_outcome_in_the_regrade(served: Served, client: httpx2.Client) -> None:
    batch = submit(client).json()["batch_id"]
    work(served.parts, batch, "mine", settle=1)
    client.post(f"/v1/batches/{batch}/cancel")
    served.parts.stages.aggregate(batch, served.parts.aggregate)

    new = client.post(f"/v1/batches/{batch}/regrade").json()["batch_id"]

    found = sorted((run["stage"], run["outcome"] or "") for run in all_runs(client, new))
    assert found == [("settled", "cancelled"), ("waiting", "")]
