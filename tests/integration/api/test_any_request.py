"""Whatever is asked, the API answers as its description says and never breaks: schemathesis on the real server."""

import json
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.api import Served, make_parts, one_of_everything

from api import watching
from api.app import create_app

# A well-formed request with bytes that are no archive, or a suite that makes no sense, is rightly refused.
CONFIG = """
[phases.stateful]
generation.max-examples = 5

[[operations]]
include-name = ["POST /v1/batches", "POST /v1/skills", "POST /v1/batches/{batch_id}/regrade"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "415", "422"]
"""
# How often a path names what is there: always would leave out the ids that are not.
SHARE = 0.8
# What says that a thing was found; 409 is said of a batch that has ended and so cannot be paused.
FOUND = {"200", "202", "204", "206", "409"}


@dataclass(frozen=True)
class Asked:
    """A served API, and what is there by the parameter that asks for it."""

    served: Served
    there: dict[str, str | int]

    def operations(self) -> list[tuple[str, str]]:
        """Method and path of all that the description lists."""
        paths = create_app(self.served.parts).openapi()["paths"]
        return [(verb.upper(), path) for path, verbs in paths.items() for verb in verbs]

    def statuses(self) -> dict[tuple[str, str], set[str]]:
        """How each operation was answered until now."""
        with self.served.client(self.served.token("mine")) as client:
            families = text_string_to_metric_families(client.get("/metrics").text)
        found: dict[tuple[str, str], set[str]] = {}
        for one in (one for family in families if family.name == "assay_http_requests" for one in family.samples):
            path = one.labels["route"].replace(":path}", "}")
            found.setdefault((one.labels["method"], path), set()).add(one.labels["status"])
        return found

    def config(self) -> str:
        """Names what is there: left alone, schemathesis makes up ids, and nothing but 404 comes of them."""
        values = [f'"{name}" = {{ values = [{json.dumps(value)}] }}' for name, value in self.there.items()]
        bound = [f'"{name}" = {{ dictionary = "{name}", probability = {SHARE} }}' for name in self.there]
        return "\n".join(["[dictionaries]", *values, "[parameters]", *bound, CONFIG])


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, postgres_server) -> Iterator[Asked]:
    """An API over PostgreSQL with a finished batch, a comparison and a webhook in it."""
    folder = tmp_path_factory.mktemp("any")
    url = postgres_server.create_database(f"any_{id(folder)}")
    parts = make_parts(folder, url, requests_per_minute=1_000_000)
    with pytest.MonkeyPatch.context() as patch, Served(parts) as served:
        # A stream of a batch that never ends would be read for minutes.
        patch.setattr(watching, "_LONGEST_SECONDS", 0.2)
        patch.setattr(watching, "_KEEP_ALIVE_SECONDS", 0.2)
        with served.client(served.token("mine")) as client:
            there = one_of_everything(parts, client, "mine")
        # No value that schemathesis puts in a path has a slash in it, so the artifact is one without.
        named = {**there, "run_id": int(there["run_id"]), "name": "transcript.md"}
        yield Asked(served, {**{f"path.{name}": value for name, value in named.items()}, "query.author": "kim"})
    parts.close()


def schemathesis(folder: Path, asked: Asked, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "schemathesis.toml").write_text(asked.config())
    program = Path(sysconfig.get_path("scripts")) / "schemathesis"
    bounds = ["--checks", "all", "--seed", "1", "--warnings", "off", "--no-color", "--continue-on-failure"]
    command = [str(program), "run", f"{asked.served.url}/v1/openapi.json", *bounds, *options]
    # A busy machine makes it slow, never wrong: the limit is there for what hangs.
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)


@pytest.mark.timeout(700)
def test_with_a_token_every_answer_is_as_described(asked: Asked, tmp_path: Path) -> None:
    token = asked.served.token("mine")

    # All four phases; most of the time goes to coverage, which asks as often whatever the number here.
    done = schemathesis(tmp_path, asked, "-H", f"Authorization: Bearer {token}", "--max-examples", "10")

    assert done.returncode == 0, done.stdout[-6000:]
    assert f"Tested: {len(asked.operations())}" in done.stdout
    answers = asked.statuses()
    assert [one for one in answers.items() if max(one[1]) >= "500"] == []
    # A new kind of id must be among what is there, or its routes are never asked for more than their 404.
    assert [one for one in asked.operations() if "{" in one[1] and not answers[one] & FOUND] == []


@pytest.mark.timeout(700)
def test_without_a_token_every_answer_is_as_described(asked: Asked, tmp_path: Path) -> None:
    # Whatever is asked, the answer is 401: coverage of odd values and stateful sequences are left to the run above.
    done = schemathesis(tmp_path, asked, "--phases", "examples,fuzzing", "--max-examples", "3")

    assert done.returncode == 0, done.stdout[-6000:]
    assert f"Tested: {len(asked.operations())}" in done.stdout
    assert [one for one in asked.statuses().items() if max(one[1]) >= "500"] == []
