"""Whatever is asked, the API answers as its description says and never breaks: schemathesis on the real server."""

import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.api import Served, finish, make_parts, submit, work

from api import watching

# A well-formed request with bytes that are no archive, or a suite that makes no sense, is rightly refused.
CONFIG = """
[[operations]]
include-name = ["POST /v1/batches", "POST /v1/skills", "POST /v1/batches/{batch_id}/regrade"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "3xx", "401", "403", "404", "409", "415", "422"]
"""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, postgres_server) -> Iterator[Served]:
    """An API over PostgreSQL with a finished batch in it."""
    folder = tmp_path_factory.mktemp("any")
    url = postgres_server.create_database(f"any_{id(folder)}")
    parts = make_parts(folder, url, requests_per_minute=1_000_000)
    with pytest.MonkeyPatch.context() as patch, Served(parts) as served:
        # A stream of a batch that never ends would be read for minutes.
        patch.setattr(watching, "_LONGEST_SECONDS", 0.2)
        patch.setattr(watching, "_KEEP_ALIVE_SECONDS", 0.2)
        with served.client(served.token("mine")) as client:
            batch = submit(client).json()["batch_id"]
        work(parts, batch, "mine")
        finish(parts, batch)
        yield served
    parts.close()


def schemathesis(folder: Path, served: Served, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "schemathesis.toml").write_text(CONFIG)
    program = Path(sysconfig.get_path("scripts")) / "schemathesis"
    bounds = ["--checks", "all", "--max-examples", "2", "--seed", "1", "--warnings", "off", "--no-color"]
    command = [str(program), "run", f"{served.url}/v1/openapi.json", *bounds, "--continue-on-failure", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)


def test_with_a_token_every_answer_is_as_described(asked: Served, tmp_path: Path) -> None:
    done = schemathesis(tmp_path, asked, "-H", f"Authorization: Bearer {asked.token('mine')}")

    assert done.returncode == 0, done.stdout[-6000:]
    assert "Tested: 41" in done.stdout


def test_without_a_token_every_answer_is_as_described(asked: Served, tmp_path: Path) -> None:
    done = schemathesis(tmp_path, asked, "--phases", "examples,fuzzing")

    assert done.returncode == 0, done.stdout[-6000:]
