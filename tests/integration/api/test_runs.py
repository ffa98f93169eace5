"""Runs over HTTP: filters, the whole story, artifacts in ranges, and what people say."""

import hashlib
import io
import json
import zipfile
from xml.etree import ElementTree

import httpx2
import pytest
from support.api import Served, archive, finish, submit, work

from cli.client import Client

FILES = {"outputs/a.txt": b"0123456789", "outputs/page.html": b"<script>alert(1)</script>", "transcript.md": b"# hi\n"}


@pytest.fixture(scope="module")
def batch_id(served: Served, client: httpx2.Client) -> str:
    """A finished batch of 4 runs."""
    found = str(submit(client, archive(cases=2)).json()["batch_id"])
    work(served.parts, found, "mine", FILES)
    finish(served.parts, found)
    return found


@pytest.fixture(scope="module")
def run_id(client: httpx2.Client, batch_id: str) -> int:
    return int(client.get(f"/v1/batches/{batch_id}/runs").json()["runs"][0]["id"])


def test_runs_are_found_by_arm_case_and_outcome(client: httpx2.Client, batch_id: str) -> None:
    def count(**asked: str) -> int:
        return len(client.get(f"/v1/batches/{batch_id}/runs", params=asked).json()["runs"])

    assert (count(), count(configuration="with_skill"), count(case="2"), count(outcome="scored")) == (4, 2, 2, 4)
    assert (count(outcome="gated"), count(stage="judge"), count(case="2", configuration="with_skill")) == (0, 0, 1)


def test_pages_of_runs_and_batches_join_without_a_gap(client: httpx2.Client, batch_id: str) -> None:
    first = client.get(f"/v1/batches/{batch_id}/runs?limit=3").json()
    second = client.get(f"/v1/batches/{batch_id}/runs?limit=3&after={first['next_after']}").json()
    newer = submit(client).json()["batch_id"]
    page = client.get("/v1/batches?limit=1").json()

    assert [run["position"] for run in first["runs"] + second["runs"]] == [0, 1, 2, 3]
    assert page["batches"][0]["id"] == page["next_before"] == newer
    assert client.get(f"/v1/batches?limit=1&before={newer}").json()["batches"][0]["id"] == batch_id


def test_a_run_tells_every_stage_attempt_and_worker(client: httpx2.Client, run_id: int) -> None:
    run = client.get(f"/v1/runs/{run_id}").json()

    steps = [(step["stage"], step["worker"], step["result"]) for step in run["story"]]
    assert steps == [("execute", "tester", "done"), ("check", "tester", "done"), ("judge", "tester", "done")]
    assert {artifact["name"] for artifact in run["artifacts"]} == set(FILES)


def test_an_artifact_comes_whole_and_in_ranges(client: httpx2.Client, run_id: int) -> None:
    address = f"/v1/runs/{run_id}/artifacts/outputs/a.txt"
    whole, part = client.get(address), client.get(address, headers={"Range": "bytes=2-4"})
    outside, same = client.get(address, headers={"Range": "bytes=99-"}), {"If-None-Match": whole.headers["etag"]}

    assert (whole.status_code, whole.content) == (200, b"0123456789")
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert (outside.status_code, outside.headers["content-range"]) == (416, "bytes */10")
    assert client.get(address, headers=same).status_code == 304


def test_what_an_agent_wrote_never_runs_in_a_browser(client: httpx2.Client, run_id: int) -> None:
    answer = client.get(f"/v1/runs/{run_id}/artifacts/outputs/page.html")

    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["content-type"] == "application/octet-stream"


def test_what_people_say_is_kept_once_per_person_and_exported(
    client: httpx2.Client, batch_id: str, run_id: int
) -> None:
    for said in ("first", "second"):
        client.put(f"/v1/runs/{run_id}/reviews", json={"author": "kim", "feedback": said})
    client.put(f"/v1/runs/{run_id}/reviews", json={"author": "lee", "feedback": ""})

    feedback = client.get(f"/v1/batches/{batch_id}/reviews").json()
    with zipfile.ZipFile(io.BytesIO(client.get(f"/v1/batches/{batch_id}/export.zip").content)) as export:
        exported = json.loads(export.read("iteration-1/feedback.json"))

    assert [(one["author"], one["feedback"]) for one in feedback["reviews"]] == [("kim, lee", "kim: second")]
    assert exported == feedback


def test_an_export_is_a_workspace_with_every_file_of_every_run(client: httpx2.Client, batch_id: str) -> None:
    with zipfile.ZipFile(io.BytesIO(client.get(f"/v1/batches/{batch_id}/export.zip").content)) as export:
        names = export.namelist()

    assert sum(name.endswith("/outputs/a.txt") for name in names) == 4
    assert {"iteration-1/benchmark.json", "iteration-1/benchmark.md"} <= set(names)


def test_the_report_is_made_once_when_the_batch_ends(client: httpx2.Client, served: Served, batch_id: str) -> None:
    kept = served.parts.store.batches.one(batch_id)

    assert kept is not None and kept.aggregate is not None
    report = client.get(f"/v1/batches/{batch_id}/report").content
    assert hashlib.sha256(report).hexdigest() == kept.aggregate["report.html"]["sha256"]


def test_results_come_in_every_form(client: httpx2.Client, batch_id: str) -> None:
    benchmark = client.get(f"/v1/batches/{batch_id}/benchmark")
    report = client.get(f"/v1/batches/{batch_id}/report")
    junit = client.get(f"/v1/batches/{batch_id}/junit?fail_under=0.5")

    assert benchmark.json()["metadata"]["provenance"]["batch_id"] == batch_id
    assert client.get(f"/v1/batches/{batch_id}/benchmark.md").text.startswith("# ")
    assert "suggestions" in client.get(f"/v1/batches/{batch_id}/feedback").json()
    assert report.headers["content-type"].startswith("text/html") and "</html>" in report.text
    assert ElementTree.fromstring(junit.content).tag == "testsuites"


def test_a_batch_that_runs_has_an_interim_benchmark_and_report(client: httpx2.Client) -> None:
    running = submit(client).json()["batch_id"]

    benchmark = client.get(f"/v1/batches/{running}/benchmark").json()
    report = client.get(f"/v1/batches/{running}/report").text
    gates = client.get(f"/v1/batches/{running}/gates?fail_under=0").json()

    assert benchmark["statistics"]["interim"] is True
    assert "<strong>Interim.</strong>" in report
    assert (gates["is_interim"], gates["exit_code"]) == (True, 2)


def test_gates_of_a_batch_that_ended_give_the_exit_code(client: httpx2.Client, batch_id: str) -> None:
    codes = [client.get(f"/v1/batches/{batch_id}/gates?{asked}").json()["exit_code"] for asked in ("", "min_delta=1")]

    assert codes[0] == 0 and codes[1] in (1, 2)
    assert client.get(f"/v1/batches/{batch_id}/gates?require_verdict=perhaps").status_code == 422


def test_a_batch_is_paused_resumed_cancelled_and_not_twice(client: httpx2.Client) -> None:
    batch = submit(client).json()["batch_id"]

    states = [client.post(f"/v1/batches/{batch}/{what}").json()["state"] for what in ("pause", "resume")]
    again = client.post(f"/v1/batches/{batch}/resume")
    cancelled = client.post(f"/v1/batches/{batch}/cancel").json()

    assert states == ["paused", "running"]
    assert (again.status_code, again.json()["type"]) == (409, "urn:assay:problem:conflict")
    assert cancelled["progress"]["outcomes"] == {"cancelled": 2}


def test_runs_without_a_score_go_on_when_asked(served: Served, client: httpx2.Client) -> None:
    batch = submit(client).json()["batch_id"]
    client.post(f"/v1/batches/{batch}/cancel")
    served.parts.stages.aggregate(batch, served.parts.aggregate)

    assert client.post(f"/v1/batches/{batch}/retry", json={"outcomes": ["timeout"]}).json() == {"runs": 0}
    richer = {"max_cost_usd": 7.5, "max_tokens": 1_000}
    assert client.post(f"/v1/batches/{batch}/retry", json=richer).json() == {"runs": 2}
    settings = client.get(f"/v1/batches/{batch}").json()["settings"]
    assert {name: settings[name]["value"] for name in richer} == richer
    assert client.post(f"/v1/batches/{batch}/retry", json={"max_cost_usd": 0}).status_code == 422
    assert client.get(f"/v1/batches/{batch}").json()["state"] == "running"


def test_a_skill_has_versions_and_a_history(served: Served, client: httpx2.Client) -> None:
    for text in ("one", "two"):
        client.post("/v1/skills", files={"skill": ("s.zip", archive(name="grown", notes=text))})

    versions = client.get("/v1/skills/grown/versions").json()["versions"]
    history = client.get("/v1/skills/grown/history").json()

    assert [version["version"] for version in versions] == ["v0", "v1"]
    assert history["skill_name"] == "grown" and len(history["iterations"]) == 2
    assert "grown" in {skill["name"] for skill in client.get("/v1/skills").json()["skills"]}


def test_a_skill_whose_name_no_address_can_hold_is_refused(client: httpx2.Client) -> None:
    bad = archive(**{"SKILL.md": "---\nname: a/b\ndescription: d\n---\n"})

    kept = client.post("/v1/skills", files={"skill": ("tiny.zip", bad)})
    submitted = submit(client, bad)

    assert (kept.status_code, submitted.status_code) == (422, 422)
    assert kept.json()["type"] == "urn:assay:problem:bad-input" and "no control characters" in kept.json()["detail"]


def test_the_client_fetches_an_artifact_whatever_it_is_called(served: Served, client: httpx2.Client) -> None:
    files = {f"outputs/{name}": name.encode() for name in ("a#b.txt", "a?b=c.txt", "100%25.txt", "ä ö/x+y&z;.txt")}
    batch = submit(client).json()["batch_id"]
    work(served.parts, batch, "mine", files)

    with Client(served.url, served.token("mine")) as assay:
        run = next(assay.runs(batch))["id"]
        fetched = {name: assay.artifact(run, name) for name in files}

    assert fetched == files
