"""A simulator and our client in front of it."""

from collections.abc import Iterator

import pytest

from service.models import ClientSettings, ModelClient
from service.models.attempts import Patience
from service.models.port import ModelCall
from simulator import Simulator, start


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with start() as running:
        yield running


@pytest.fixture
def ledger() -> list[ModelCall]:
    return []


@pytest.fixture
def client(simulator: Simulator, ledger: list[ModelCall]) -> Iterator[ModelClient]:
    class Book:
        def record(self, call: ModelCall) -> None:
            ledger.append(call)

    settings = ClientSettings(
        "any", simulator.url, 32, Patience(max_retries=2, retry_after_cap_seconds=0.5, first_pause_seconds=0.02)
    )
    made = ModelClient(settings, ledger=Book())
    yield made
    made.close()
