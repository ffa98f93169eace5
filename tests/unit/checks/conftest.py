"""The checker on files of this test, with a sandbox that must not be asked for."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from schemas.metrics import Metrics
from schemas.structural import CheckedExpectation
from schemas.suite import Case, StructuralExpectation
from service.checks import Tools, check
from service.checks.engine import Engine
from service.errors import Unavailable
from service.sandbox import Sandbox
from service.sandbox.reader import Caps, Reader


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    with Engine(seconds=5) as made:
        yield made


def no_sandbox() -> Sandbox:
    raise Unavailable("there is no sandbox in this test")


@pytest.fixture
def decide(tmp_path: Path, engine: Engine) -> Callable[..., CheckedExpectation]:
    """Decide one expectation: its type and fields, the files of the run by path."""

    def decide_one(
        type_: str,
        files: dict[str, str | bytes] | None = None,
        transcript: str | None = None,
        metrics: Metrics | None = None,
        **params: object,
    ) -> CheckedExpectation:
        outputs = tmp_path / "outputs"
        outputs.mkdir(exist_ok=True)
        for path, content in (files or {}).items():
            (outputs / path).parent.mkdir(parents=True, exist_ok=True)
            (outputs / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        expectation = StructuralExpectation(id="S1", type=type_, params=params)  # type: ignore[arg-type]
        case = Case(id=1, prompt="p", structural=(expectation,))
        reader = Reader(outputs, Caps(file_bytes=100_000))
        return check(case, reader, transcript, metrics, Tools(engine, no_sandbox)).expectations[0]

    return decide_one
