"""A simulator and the real SDK in front of it."""

from collections.abc import Iterator

import anthropic
import pytest

from simulator import Simulator, start


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with start(cache_minimum_tokens=50) as running:
        yield running


@pytest.fixture
def client(simulator: Simulator) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=simulator.url, api_key="any", max_retries=0, open_telemetry=False) as made:
        yield made
