"""An installation with two finished batches of one suite, and a simulated judge."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from support.api import archive, finish, make_parts, work

import simulator
from service.bootstrap import Parts
from service.submitting import Submission

GOOD = {"outputs/a.txt": b"case 1 and case 2: an answer with everything in it, made by tiny v1 with_skill"}
POOR = {"outputs/a.txt": b"nothing"}


@pytest.fixture
def model() -> Iterator[simulator.Simulator]:
    with simulator.start() as running:
        yield running


@pytest.fixture
def make(tmp_path: Path, model: simulator.Simulator) -> Iterator[Callable[..., Parts]]:
    made: list[Parts] = []

    def build(**settings: Any) -> Parts:
        reached = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": SecretStr("test-key")}
        quick = {"lease_seconds": 3.0, "heartbeat_seconds": 0.5}
        made.append(make_parts(tmp_path, **{**quick, **reached, **settings}))
        return made[-1]

    yield build
    for parts in made:
        parts.close()


@pytest.fixture
def parts(make: Callable[..., Parts]) -> Parts:
    return make()


def batch(parts: Parts, folder: Path, text: str, files: dict[str, bytes], **settings: Any) -> str:
    """A finished batch of the skill `tiny` whose runs all left these files."""
    import io
    import zipfile

    with zipfile.ZipFile(io.BytesIO(archive(2))) as packed:
        packed.extractall(folder)
    (folder / "tiny" / "SKILL.md").write_text(f"---\nname: tiny\ndescription: for tests\n---\n{text}\n")
    said = {"runner": "command", "command": "true", "runs_per_eval": 2, "judge_model": "simulated-judge", **settings}
    accepted = parts.desk.submit(Submission(folder / "tiny", None, "default", said))
    work(parts, accepted.batch_id, "default", files)
    finish(parts, accepted.batch_id)
    return accepted.batch_id


@pytest.fixture
def both(parts: Parts, tmp_path: Path) -> tuple[str, str]:
    """v0, whose results are poor, and v1, whose results are good."""
    plain = {"baseline_comparison": False, "analyst": False}
    old = batch(parts, tmp_path, "Write a.txt.", POOR, **plain)
    return old, batch(parts, tmp_path, "Write a.txt with everything in it.", GOOD, **plain)
