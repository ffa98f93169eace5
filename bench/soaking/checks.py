"""The promises, looked up in the database after a soak: nothing lost, nothing twice, everything readable."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from soaking.fleet import SoakFleet
from soaking.load import Batch, Load
from sqlalchemy import func, select

from service.bootstrap import Parts
from service.errors import AssayError
from service.storage.tables import artifacts, attempts, batches, runs


def broken_promises(fleet: SoakFleet, load: Load) -> tuple[list[str], dict[str, Any]]:
    """What does not hold, in words, and what was counted on the way."""
    parts = fleet.parts
    counted = _counted(parts, fleet, load)
    broken = [
        *_batches(parts, load),
        *_executed_twice(parts),
        *_unreadable(parts),
        *_calls(counted),
    ]
    return broken, counted


def _batches(parts: Parts, load: Load) -> Iterator[str]:
    known = {row.id: row for row in _rows(parts, select(batches))}
    sent = {one.batch_id for one in load.batches if one.batch_id}
    if len(known) != len(sent) or set(known) != sent:
        yield f"{len(sent)} batches were accepted, {len(known)} are in the database"
    for one in load.batches:
        if not one.batch_id or not one.is_ended:
            yield f"{one.key} ({one.kind}) has not ended"
        elif one.batch_id in known:
            yield from _one_batch(parts, one, known[one.batch_id])


def _one_batch(parts: Parts, one: Batch, row: Any) -> Iterator[str]:
    name = f"{one.key} ({one.kind}, {one.batch_id})"
    outcomes = Counter(run.outcome for run in _rows(parts, select(runs).where(runs.c.batch_id == one.batch_id)))
    if sum(outcomes.values()) != one.runs or None in outcomes:
        yield f"{name}: {one.runs} runs were planned, there are {dict(outcomes)}"
    if one.is_cancelled:
        return
    if set(outcomes) != {"scored"}:
        yield f"{name}: {dict(outcomes)}"
    if row.error or not row.aggregate:
        yield f"{name}: no aggregate: {row.error}"
        return
    benchmark = json.loads(parts.artifacts.get(row.aggregate["benchmark.json"]["sha256"]))
    if len(benchmark["runs"]) != outcomes["scored"]:
        yield f"{name}: {len(benchmark['runs'])} runs in the benchmark, {outcomes['scored']} scored"


def _executed_twice(parts: Parts) -> Iterator[str]:
    done = select(attempts.c.run_id, attempts.c.stage).where(attempts.c.result == "done")
    twice = done.group_by(attempts.c.run_id, attempts.c.stage).having(func.count() > 1)
    for row in _rows(parts, twice):
        yield f"run {row.run_id} saved its {row.stage} more than once"


def _unreadable(parts: Parts) -> Iterator[str]:
    for row in _rows(parts, select(artifacts.c.sha256, func.min(artifacts.c.name).label("name")).group_by("sha256")):
        try:
            parts.artifacts.get(row.sha256)
        except AssayError as error:
            yield f"artifact {row.name}: {error}"


def _counted(parts: Parts, fleet: SoakFleet, load: Load) -> dict[str, Any]:
    """Calls as the simulator saw them, and attempts as the database has them."""
    tried = select(attempts.c.stage, attempts.c.result, func.count().label("times"))
    found = _rows(parts, tried.group_by(attempts.c.stage, attempts.c.result))
    stats = fleet.simulator.stats()
    half = sum(one.runs for one in load.batches if one.kind == "half price")
    return {
        "runs": sum(one.runs for one in load.batches),
        "half_price_runs": half,
        "outcomes": dict(Counter(run.outcome for run in _rows(parts, select(runs.c.outcome)))),
        "attempts": {f"{row.stage} {row.result}": row.times for row in found},
        "calls": stats["by_kind"],
        "provider_batches": stats["batches"],
        "requests_refused_meanwhile": load.refused,
    }


def _calls(counted: dict[str, Any]) -> Iterator[str]:
    """A judgement costs one call; only an attempt that was lost may have cost one more."""
    judged = sum(times for name, times in counted["attempts"].items() if name.startswith("judge "))
    if counted["calls"].get("judge", 0) > judged + counted["half_price_runs"]:
        yield f"{counted['calls']['judge']} judge calls for {judged} attempts to judge"
    paid = counted["provider_batches"].get("paid_requests", 0)
    if paid > counted["half_price_runs"]:
        yield f"{paid} judgements were paid at half the price for {counted['half_price_runs']} runs"


def _rows(parts: Parts, query: Any) -> list[Any]:
    with parts.store.engine.begin() as connection:
        return list(connection.execute(query))
