"""What belongs to one team is not there for another: asked of every route with an id, as the description lists them."""

import json
from typing import Any

import httpx2
import pytest
from support.api import RUNNER, Served, archive, one_of_everything, suite

from api.app import create_app


def operations_with_an_id(served: Served) -> list[tuple[str, str]]:
    paths = create_app(served.parts).openapi()["paths"]
    return [(verb, path) for path, verbs in paths.items() if "{" in path for verb in verbs]


# Who fetches the schema of a document asks for nothing that belongs to a team.
PUBLIC = {("get", "/v1/schemas/{document}")}
# What a request needs besides its path to get as far as the question whose thing it is.
SENT = {
    ("put", "/v1/runs/{run_id}/reviews"): {"json": {"author": "kim", "feedback": "x"}},
    ("delete", "/v1/runs/{run_id}/reviews"): {"params": {"author": "kim"}},
}


@pytest.fixture(scope="module")
def mine(served: Served, client: httpx2.Client) -> dict[str, str]:
    return one_of_everything(served.parts, client, "mine")


def ask(client: httpx2.Client, verb: str, path: str, ids: dict[str, str]) -> httpx2.Response:
    """One request with our ids in its path; an event stream is not read."""
    filled = path.format(**ids)
    with client.stream(verb.upper(), filled, **SENT.get((verb, path), {})) as answer:
        if not path.endswith("/events") or answer.status_code != 200:
            answer.read()
        return answer


def test_every_route_with_an_id_is_asked(served: Served, mine: dict[str, str]) -> None:
    found = operations_with_an_id(served)

    assert len(found) > 20
    for _verb, path in set(found) - PUBLIC:
        path.format(**mine)  # a new kind of id must be given an example in `mine`


def test_another_team_finds_nothing_on_any_route(
    served: Served, client: httpx2.Client, stranger: httpx2.Client, mine: dict[str, str]
) -> None:
    for verb, path in sorted(set(operations_with_an_id(served)) - PUBLIC):
        answer = ask(stranger, verb, path, mine)

        assert answer.status_code == 404, f"{verb} {path} gave {answer.status_code}: {answer.text[:200]}"
        assert answer.json()["type"] == "urn:assay:problem:not-found"


def test_its_own_team_finds_it_on_every_route(served: Served, client: httpx2.Client, mine: dict[str, str]) -> None:
    # Deletes last, or they would take away what the others ask for.
    for verb, path in sorted(set(operations_with_an_id(served)) - PUBLIC, key=lambda one: (one[0] == "delete", one)):
        answer = ask(client, verb, path, mine)

        # 409: this batch has ended and is no regrade, so that it cannot be cancelled or compared; but it is there.
        assert answer.status_code in (200, 202, 204, 409), f"{verb} {path} gave {answer.status_code}"


def test_without_a_token_every_route_but_health_is_closed(served: Served, mine: dict[str, str]) -> None:
    paths = create_app(served.parts).openapi()["paths"]
    with served.client() as nobody:
        for path, verbs in paths.items():
            for verb in verbs:
                answer = nobody.request(
                    verb.upper(), path.format(document="evals", **mine), **SENT.get((verb, path), {})
                )
                open_to_all = path in ("/healthz", "/readyz")
                assert answer.status_code == (200 if open_to_all else 401), path
                assert open_to_all or "batch_id" not in answer.text


def test_nobody_compares_with_another_teams_batch(stranger: httpx2.Client, mine: dict[str, str]) -> None:
    asked = {"champion": mine["batch_id"], "challenger": f"{mine['batch_id']}:without_skill", "judge_model": "m"}

    answer = stranger.post("/v1/comparisons", json=asked)

    assert (answer.status_code, answer.json()["type"]) == (404, "urn:assay:problem:not-found")
    assert mine["comparison_id"] not in stranger.get("/v1/comparisons").text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/batches", {"skill": {"name": "tiny"}, "settings": RUNNER}),
        ("/v1/batches", {"skill": {"name": "tiny", "version": "v0"}, "suite": suite(), "settings": RUNNER}),
        ("/v1/batches?dry_run=true", {"skill": {"name": "tiny"}, "settings": RUNNER}),
        ("/v1/comparisons", {"skill": "tiny", "champion": "v0", "challenger": "v0", "judge_model": "m"}),
    ],
)
def test_nobody_names_another_teams_skill_in_a_body(
    stranger: httpx2.Client, mine: dict[str, str], path: str, body: dict[str, Any]
) -> None:
    answer = stranger.post(path, json=body)

    assert (answer.status_code, answer.json()["type"]) == (404, "urn:assay:problem:not-found")


def test_nobody_submits_against_another_teams_version(
    client: httpx2.Client, stranger: httpx2.Client, mine: dict[str, str]
) -> None:
    digest = client.get("/v1/skills/tiny/versions").json()["versions"][0]["digest"]
    options = json.dumps({"settings": RUNNER, "against": digest})
    files = {"skill": ("tiny.zip", archive(**{"other.md": "another version"}))}

    answer = stranger.post("/v1/batches", files=files, data={"options": options})

    assert (answer.status_code, answer.json()["type"]) == (404, "urn:assay:problem:not-found")
    assert digest[:7] in answer.json()["detail"] and "known versions: v0" in answer.json()["detail"]


def test_lists_show_a_teams_own_things_alone(stranger: httpx2.Client, mine: dict[str, str]) -> None:
    assert mine["batch_id"] not in stranger.get("/v1/batches?limit=200").text
    assert mine["webhook_id"] not in stranger.get("/v1/webhooks").text
