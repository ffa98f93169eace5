"""A case may have any number of runs: they are read a page at a time, on both databases."""

import gc
from collections.abc import Sequence
from pathlib import Path

from support.api import make_parts
from support.rows import add_batch

from schemas.states import Outcome, Role
from service.aggregation.records import CaseFacts
from service.storage.rows import Given, NewRun, RunRow
from service.storage.store import Store

ARMS: Sequence[tuple[str, Role | None]] = (
    ("zeta", None),
    ("without_skill", Role.CONTROL),
    ("with_skill", Role.TREATMENT),
    ("alpha", None),
)


def settled_runs(cases: int, rounds: int) -> list[NewRun]:
    """In the order of admission: every case once before any twice."""
    order = [(number, case, arm) for number in range(1, rounds + 1) for case in range(cases) for arm in ARMS]
    given = Given({}, {}, Outcome.TIMEOUT, "too slow")
    return [
        NewRun(place, case, str(case), name, role, number, None, given)
        for place, (number, case, (name, role)) in enumerate(order)
    ]


def test_pages_of_cases_join_to_the_whole_in_its_order(store: Store) -> None:
    batch_id = add_batch(store, planned=settled_runs(cases=4, rounds=3))
    whole = store.runs.of_cases(batch_id, 1, 2)

    pages, after = [], None
    while page := store.runs.of_cases(batch_id, 1, 2, after, 5):
        pages.append(page)
        after = page[-1]

    assert [len(page) for page in pages] == [5, 5, 5, 5, 4]
    assert [run for page in pages for run in page] == whole
    roles = [Role.TREATMENT] * 3 + [Role.CONTROL] * 3 + [None] * 6
    assert [run.role for run in whole] == roles * 2


def test_as_many_rows_are_held_of_a_thousand_runs_as_of_a_page(tmp_path: Path) -> None:
    parts = make_parts(tmp_path)
    batch_id = add_batch(parts.store, planned=settled_runs(cases=2, rounds=130))
    batch = parts.store.batches.one(batch_id)
    assert batch is not None

    seen, most = 0, 0
    for seen, _ in enumerate(parts.aggregate.records(batch, [CaseFacts(0), CaseFacts(1)]), 1):
        if seen % 50 == 0:
            most = max(most, sum(isinstance(one, RunRow) for one in gc.get_objects()))

    assert seen == 1_040
    # A page, its settled runs are the same objects, and the page before it that is being let go.
    assert 0 < most <= 401
    parts.close()
