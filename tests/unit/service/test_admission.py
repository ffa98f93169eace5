"""Who starts next is decided by shares, priorities and caps alone."""

from collections import Counter

from service.admission import choose
from service.storage.dispatch import Contender


def contender(batch: str, team: str = "t", **what: float) -> Contender:
    given = {
        "weight": 1.0,
        "team_open": 0,
        "team_max_open": None,
        "priority": 0,
        "batch_open": 0,
        "batch_max_open": None,
    }
    return Contender(batch_id=batch, team_id=team, **{**given, **what})  # type: ignore[arg-type]


def test_two_teams_take_turns() -> None:
    order = choose([contender("a1", "a"), contender("b1", "b")], 4)

    assert order == ["a1", "b1", "a1", "b1"]


def test_a_team_with_many_open_runs_waits_until_others_have_as_many() -> None:
    order = choose([contender("a1", "a", team_open=3, batch_open=3), contender("b1", "b")], 4)

    assert order == ["b1", "b1", "b1", "a1"]


def test_a_team_of_twice_the_weight_gets_twice_the_slots() -> None:
    order = choose([contender("a1", "a", weight=2.0), contender("b1", "b")], 9)

    assert Counter(order) == {"a1": 6, "b1": 3}


def test_inside_a_team_the_higher_priority_goes_first() -> None:
    order = choose([contender("low"), contender("high", priority=5)], 3)

    assert order == ["high", "high", "high"]


def test_batches_of_one_team_and_priority_share() -> None:
    order = choose([contender("x"), contender("y")], 4)

    assert Counter(order) == {"x": 2, "y": 2}


def test_caps_of_batch_and_team_are_kept() -> None:
    capped = contender("a1", "a", batch_max_open=1)
    full = contender("b1", "b", team_open=2, team_max_open=2)

    assert choose([capped, full], 5) == ["a1"]


def test_nothing_is_chosen_without_room_or_contenders() -> None:
    assert choose([], 5) == []
    assert choose([contender("a")], 0) == []
    assert choose([contender("a")], -3) == []
