"""Which judgements are made twice."""

import pytest

from service.judging.noise import is_sampled


def test_the_sample_has_its_share_and_a_larger_one_contains_it() -> None:
    ids = [f"{number:064x}" for number in range(20_000)]

    tenth = {one for one in ids if is_sampled(one, 0.1)}
    fifth = {one for one in ids if is_sampled(one, 0.2)}

    assert len(tenth) == pytest.approx(2_000, rel=0.1)
    assert tenth < fifth
    assert not any(is_sampled(one, 0.0) for one in ids)
    assert all(is_sampled(one, 1.0) for one in ids)
