"""Submitting over HTTP: archives, references, keys, dry runs, and everything that is refused."""

import json
import runpy
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from support.api import RUNNER, Served, archive, make_parts, submit, suite

_UNPACKING = Path(__file__).parents[2] / "unit" / "sandbox" / "test_unpack.py"
HOSTILE: dict[str, bytes] = runpy.run_path(str(_UNPACKING))["HOSTILE"]


def test_an_archive_becomes_a_batch(client: httpx2.Client) -> None:
    answer = submit(client, archive(cases=3))

    batch = client.get(answer.headers["location"]).json()
    assert answer.status_code == 202
    assert (batch["skill"], batch["version"], batch["progress"]["total"]) == ("tiny", "v0", 6)


def test_an_uploaded_skill_is_submitted_again_by_its_name_with_its_own_suite(client: httpx2.Client) -> None:
    version = client.post("/v1/skills", files={"skill": ("known.zip", archive(cases=2, name="known"))})
    again = client.post("/v1/skills", files={"skill": ("known.zip", archive(cases=2, name="known"))})

    answer = client.post("/v1/batches", json={"skill": {"name": "known", "version": "v0"}, "settings": RUNNER})

    assert (version.status_code, again.json()["id"]) == (201, version.json()["id"])
    assert (answer.status_code, answer.json()["runs"]) == (202, 4)


def test_a_suite_may_be_sent_beside_a_known_skill(client: httpx2.Client) -> None:
    client.post("/v1/skills", files={"skill": ("known.zip", archive(name="known"))})

    body = {"skill": {"name": "known"}, "suite": suite(cases=5, name="known"), "settings": RUNNER}
    answer = client.post("/v1/batches", json=body)

    assert (answer.status_code, answer.json()["runs"]) == (202, 10)


def test_only_commands_that_the_operator_named_are_taken(client: httpx2.Client) -> None:
    dry = {"skill": {"name": "known"}, "suite": suite(name="known"), "settings": {"command": "/bin/cat /data/assay.db"}}
    client.post("/v1/skills", files={"skill": ("known.zip", archive(name="known"))})

    for answer in (submit(client, command="true /etc/passwd"), client.post("/v1/batches?dry_run=true", json=dry)):
        assert answer.status_code == 422 and "is not allowed here" in answer.text


def test_a_dry_run_writes_no_batch_and_says_what_it_would_take(client: httpx2.Client) -> None:
    before = len(client.get("/v1/batches?limit=200").json()["batches"])

    files = {"skill": ("tiny.zip", archive(cases=4))}
    answer = client.post("/v1/batches?dry_run=true", files=files, data={"options": json.dumps({"settings": RUNNER})})

    assert (answer.status_code, answer.json()["is_acceptable"]) == (200, True)
    assert answer.json()["estimate"]["runs"] == 8
    assert len(client.get("/v1/batches?limit=200").json()["batches"]) == before


def test_an_accepted_batch_says_what_it_will_take_as_its_dry_run_did(client: httpx2.Client) -> None:
    settings = {**RUNNER, "judge_model": "claude-opus-5-5", "judging": "batch"}
    files = {"skill": ("tiny.zip", archive(cases=4))}
    options = {"options": json.dumps({"settings": settings})}
    dry = client.post("/v1/batches?dry_run=true", files=files, data=options).json()

    answer = client.post("/v1/batches", files=files, data=options).json()

    assert answer["estimate"] == dry["estimate"]
    assert (answer["estimate"]["cases"], answer["estimate"]["runs"]) == (4, 8)


def test_a_dry_run_of_a_bad_suite_gives_all_findings(client: httpx2.Client) -> None:
    evals = json.dumps({"skill_name": "tiny", "evals": [{"id": 1}, {"id": 1, "prompt": "x"}]}).encode()
    files = {"skill": ("tiny.zip", archive()), "evals": ("evals.json", evals)}

    answer = client.post("/v1/batches?dry_run=true", files=files, data={"options": json.dumps({"settings": RUNNER})})

    assert answer.json()["is_acceptable"] is False
    assert {finding["level"] for finding in answer.json()["findings"]} >= {"error"}


def test_a_refused_suite_names_every_place(client: httpx2.Client) -> None:
    evals = json.dumps({"skill_name": "tiny", "evals": [{"id": 1, "expectations": ["x"]}]}).encode()

    answer = client.post("/v1/batches", files={"skill": ("tiny.zip", archive()), "evals": ("evals.json", evals)})

    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    assert problem["type"] == "urn:assay:problem:suite-refused"
    assert "evals[0]" in {error["path"] for error in problem["errors"]}


def test_the_same_key_and_content_give_the_same_batch(client: httpx2.Client) -> None:
    first, second = submit(client, key="k1"), submit(client, key="k1")

    assert (first.json()["is_new"], second.json()["is_new"]) == (True, False)
    assert first.json()["batch_id"] == second.json()["batch_id"]


def test_the_same_key_with_other_content_is_a_conflict(client: httpx2.Client) -> None:
    submit(client, key="k2")

    answer = submit(client, archive(cases=2), key="k2")

    assert (answer.status_code, answer.json()["type"]) == (409, "urn:assay:problem:conflict")


def test_the_same_key_with_another_input_file_is_a_conflict(client: httpx2.Client) -> None:
    asked = suite(name="tiny")
    asked["evals"][0]["files"] = ["evals/files/i.txt"]
    evals = {"evals/evals.json": json.dumps(asked)}
    first = submit(client, archive(**evals, **{"evals/files/i.txt": "one"}), key="k-file")

    answer = submit(client, archive(**evals, **{"evals/files/i.txt": "two"}), key="k-file")

    assert (first.status_code, answer.status_code) == (202, 409), first.text


@pytest.mark.parametrize("other", [{"priority": 5}, {"max_open": 1}])
def test_the_same_key_with_another_place_in_the_queue_is_a_conflict(client: httpx2.Client, other: dict) -> None:
    def once(**options: object) -> int:
        sent = {"options": json.dumps({"settings": RUNNER, **options})}
        headers = {"Idempotency-Key": f"k-{next(iter(other))}"}
        files = {"skill": ("tiny.zip", archive())}
        return client.post("/v1/batches", files=files, data=sent, headers=headers).status_code

    assert (once(), once(), once(**other)) == (202, 202, 409)


def test_the_same_key_of_another_team_is_another_batch(client: httpx2.Client, stranger: httpx2.Client) -> None:
    assert submit(client, key="k3").json()["batch_id"] != submit(stranger, key="k3").json()["batch_id"]


def test_the_same_key_sent_many_times_at_once_is_one_batch(served: Served) -> None:
    token = served.token("crowd")

    def once(_number: int) -> httpx2.Response:
        with served.client(token) as one:
            return submit(one, key="crowd")

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(once, range(16)))

    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.json()["batch_id"] for answer in answers}) == 1


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_archives_are_refused_with_a_clear_problem(client: httpx2.Client, name: str) -> None:
    answer = submit(client, HOSTILE[name])

    assert answer.status_code in (413, 422), answer.text
    assert answer.json()["type"] in (
        "urn:assay:problem:bad-archive",
        "urn:assay:problem:bad-input",
        "urn:assay:problem:too-large",
    )
    assert "/tmp" not in answer.text


def test_a_body_that_says_it_is_too_large_is_refused_before_any_of_it_is_sent(served: Served) -> None:
    token = served.token("mine")
    host, port = served.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        lines = [
            "POST /v1/batches HTTP/1.1",
            f"Host: {host}",
            f"Authorization: Bearer {token}",
            "Content-Type: multipart/form-data; boundary=x",
            "Content-Length: 10000000000",
            "",
            "",
        ]
        connection.sendall("\r\n".join(lines).encode())
        assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_body_that_does_not_say_how_large_it_is_is_refused_while_it_comes(tmp_path: Path) -> None:
    sent = 0

    def endless():
        nonlocal sent
        yield b'--x\r\nContent-Disposition: form-data; name="skill"; filename="s.zip"\r\n\r\n'
        while sent < 200_000_000:
            sent += 65_536
            yield bytes(65_536)

    parts = make_parts(tmp_path, upload_max_bytes=2_000_000, body_max_bytes=1_000_000)
    with Served(parts) as small, small.client() as client:
        # Or the kernel takes up to 32 MB that the server never sees.
        small.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        try:
            form = {"content-type": "multipart/form-data; boundary=x"}
            refused = client.post("/v1/batches", content=endless(), headers=form).status_code == 413
        except httpx2.TransportError:
            refused = True  # the server hung up on us while we were still sending
    parts.close()

    assert refused
    # The cap of 3 MB, and up to 4 MB in the buffer of our own socket.
    assert sent < 8_000_000


def test_an_archive_over_its_own_cap_is_refused(client: httpx2.Client) -> None:
    answer = submit(client, b"PK\x03\x04" + bytes(2_100_000))

    assert (answer.status_code, answer.json()["type"]) == (413, "urn:assay:problem:too-large")


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ('{"settings": {"runs_per_eval": 0}}', "settings.runs_per_eval"),
        ('{"settings": {"nonsense": 1}}', "settings.nonsense"),
        ('{"priority": "x"}', "priority"),
        ("{", ""),
    ],
)
def test_a_wrong_option_is_named_by_its_path(client: httpx2.Client, options: str, path: str) -> None:
    answer = client.post("/v1/batches", files={"skill": ("t.zip", archive())}, data={"options": options})

    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (422, path)


def test_text_that_no_database_keeps_is_refused(client: httpx2.Client) -> None:
    client.post("/v1/skills", files={"skill": ("known.zip", archive(name="known"))})
    for bad in ("nul \x00", "half \ud800"):
        body = {"skill": {"name": "known"}, "suite": {"evals": [{"id": bad, "prompt": bad, "expectations": ["x"]}]}}
        answer = client.post(
            "/v1/batches",
            content=json.dumps({**body, "settings": RUNNER}),
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == 422, answer.text


def test_another_form_of_content_is_refused(client: httpx2.Client) -> None:
    answer = client.post("/v1/batches", content=b"x", headers={"content-type": "text/plain"})

    assert (answer.status_code, answer.json()["type"]) == (415, "urn:assay:problem:media-type")
