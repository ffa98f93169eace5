"""A large batch does not stand before another team's small one."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path, redis_url: str, postgres_url: str) -> Iterator[Fleet]:
    made = Fleet(tmp_path, postgres_url, redis_url, window=64)
    yield made
    made.stop()


def test_twenty_runs_finish_while_five_thousand_of_another_team_are_under_way(fleet: Fleet) -> None:
    large = fleet.submit(50, 50, seconds=0.01, team="large")
    fleet.start()
    fleet.wait_for_settled(large, 5, team="large")

    small = fleet.submit(5, 2, seconds=0.01, team="small")
    fleet.wait(small, team="small")

    progress = fleet.parts.desk.status(large, "large").progress
    assert progress.total == 5_000
    assert 5 <= progress.settled < 500
    fleet.parts.desk.cancel(large, "large")
    fleet.wait(large, team="large")
    assert fleet.parts.desk.status(large, "large").progress.outcomes["cancelled"] > 4_000


def test_the_broker_never_holds_more_than_the_window(fleet: Fleet) -> None:
    batch_id = fleet.submit(20, 20, seconds=0.01)
    fleet.start("executor", "checker", "aggregator")
    depths = []

    while not fleet.parts.desk.status(batch_id, "default").is_ended:
        depths.append(sum(fleet.parts.broker.depth(queue) or 0 for queue in ("execute", "check", "judge")))

    assert max(depths) > 0
    assert max(depths) <= 64
