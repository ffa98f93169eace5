"""Every fault of a model during a whole batch, for the executor and for the judge: submit, settle, aggregate.

One simulator and one process: each fault has a case of its own, and one case meets none. Agents that come too late have
a batch of their own, whose time is short.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.whole_batch import WithModels

from schemas.states import Outcome
from service.runners.messages import AgentLimits
from service.storage.rows import Blob, RunRow
from simulator import Simulator, start
from simulator.faults import KINDS

TRIES = 2  # of one call
ATTEMPTS = 2  # of a stage; a busy model is tried twice too, because its time is short here
JUDGE_SECONDS = 30.0
LATE_SECONDS = 10.0  # of the batch whose agents come too late; the others have all the time they need


@dataclass(frozen=True)
class Met:
    """A fault that lasts, how its run ends, and how often the model may be asked for it."""

    kind: str
    outcome: Outcome
    most: int
    more: tuple[tuple[str, Any], ...] = ()
    name: str = ""

    @property
    def case(self) -> str:
        return self.name or self.kind


LATE = (("seconds", 3_600.0),)
LONG = (("retry_after", 0.7),)  # longer than the cap: handed back at once
EXECUTOR = [
    Met("rate_limited", Outcome.INFRA_ERROR, ATTEMPTS, LONG),
    Met("overloaded", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("server_error", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("cut", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("stream_error", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("malformed", Outcome.INFRA_ERROR, TRIES * ATTEMPTS, (("body", True),)),
    Met("slow", Outcome.TIMEOUT, 1, LATE),
    Met("hang", Outcome.TIMEOUT, 1),
    Met("refusal", Outcome.REFUSED, 1),
    Met("max_tokens", Outcome.EXECUTOR_ERROR, 4),
    Met("context_exceeded", Outcome.EXECUTOR_ERROR, 1),
    Met("prompt_too_long", Outcome.EXECUTOR_ERROR, 1),
    Met("too_large", Outcome.EXECUTOR_ERROR, 1),
    Met("unauthorized", Outcome.INFRA_ERROR, 1),
    Met("ramp_limited", Outcome.INFRA_ERROR, ATTEMPTS, LONG),
    Met("unavailable", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("forbidden", Outcome.INFRA_ERROR, 1),
    Met("not_found", Outcome.INFRA_ERROR, 1),
    Met("pause_turn", Outcome.EXECUTOR_ERROR, AgentLimits().turns),
]
JUDGE = [
    Met("rate_limited", Outcome.INFRA_ERROR, ATTEMPTS, LONG),
    Met("overloaded", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("server_error", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("cut", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("malformed", Outcome.INFRA_ERROR, TRIES * ATTEMPTS, (("body", True),), "broken_body"),
    Met("malformed", Outcome.JUDGE_ERROR, 2),  # asked, and once to repair it
    Met("slow", Outcome.TIMEOUT, 1, LATE),
    Met("refusal", Outcome.JUDGE_ERROR, 1),
    Met("max_tokens", Outcome.JUDGE_ERROR, 2),
    Met("context_exceeded", Outcome.JUDGE_ERROR, 1),
    Met("prompt_too_long", Outcome.JUDGE_ERROR, 1),
    Met("ramp_limited", Outcome.INFRA_ERROR, ATTEMPTS, LONG),
    Met("unavailable", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),
    Met("stream_error", Outcome.INFRA_ERROR, TRIES * ATTEMPTS),  # a judge does not stream: cut
    Met("hang", Outcome.TIMEOUT, 1),
    Met("too_large", Outcome.JUDGE_ERROR, 1),
    Met("unauthorized", Outcome.INFRA_ERROR, 1),
    Met("forbidden", Outcome.INFRA_ERROR, 1),
    Met("not_found", Outcome.INFRA_ERROR, 1),
]
PAUSES = "settles no run but pauses the team's batches: tests/integration/test_spend_limit.py"
NOT_HERE = {
    ("agent", "spend_limit"): PAUSES,
    ("agent", "billing"): PAUSES,
    ("judge", "spend_limit"): PAUSES,
    ("judge", "billing"): PAUSES,
    ("judge", "pause_turn"): "a judge has no tools of the provider's to pause for",
}
MET = {f"{who}-{met.case}": (who, met) for who, all_ in (("agent", EXECUTOR), ("judge", JUDGE)) for met in all_}
HEALTHY = "agent-nothing"
TOO_LATE = [name for name, (who, met) in MET.items() if who == "agent" and met.outcome is Outcome.TIMEOUT]
IN_TIME = [name for name in [*MET, HEALTHY] if name not in TOO_LATE]


SETTINGS: dict[str, Any] = {
    "runs_per_eval": 1,
    "baseline_comparison": False,
    "runner": "messages",
    "executor_model": "simulated",
    "judge_model": "simulated-judge",
    "analyst": False,  # it asks once for a whole batch
}


@dataclass(frozen=True)
class Whole:
    """What is left of the batch."""

    rows: dict[str, RunRow]
    files: dict[str, dict[str, Blob]]
    asked: Counter[tuple[str, str]]  # who, case
    benchmarks: list[dict[str, Any]]
    stats: dict[str, Any]


def fault(who: str, met: Met) -> dict[str, Any]:
    match = {"kind": who, "contains": f"task {who}-{met.case} please"}
    return {"kind": met.kind, "match": match, "retry_after": 0.01, **dict(met.more)}


def write_suite(folder: Path, names: Sequence[str]) -> Path:
    skill = folder / "example-skill"
    (skill / "evals").mkdir(parents=True, exist_ok=True)
    (skill / "SKILL.md").write_text("---\nname: example-skill\ndescription: Answers.\n---\n# Answers\n\n- Be short\n")
    cases = [{"id": name, "prompt": f"do task {name} please", "expectations": ["It is done"]} for name in names]
    (skill / "evals" / "evals.json").write_text(json.dumps({"skill_name": "example-skill", "evals": cases}))
    return skill


def counted(simulator: Simulator) -> Counter[tuple[str, str]]:
    """How often each case's agent and judge asked the model."""
    found: Counter[tuple[str, str]] = Counter()
    for request in simulator.requests():
        found[asker_of(request)] += 1
    return found


def asker_of(request: dict[str, Any]) -> tuple[str, str]:
    """Who asked, and in which case: the header names the case, whatever the body holds."""
    case = request["headers"].get("x-assay-run", "").split("/")[0]
    told = {key: request[key] for key in ("method", "path", "headers")}
    assert case in [*MET, HEALTHY], f"nobody knows this request: {told}, its body: {request['body'][:500]!r}"
    # Of a message that names both, the judge's model is the one that is asked.
    return ("judge" if '"model":"simulated-judge"' in request["body"].replace(" ", "") else "agent"), case


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, bubblewrap: str) -> Iterator[Whole]:
    assert bubblewrap
    folder = tmp_path_factory.mktemp("faults")
    for place in (folder, folder.parent, folder.parent.parent):
        place.chmod(0o755)
    with start(keep_requests=5_000) as simulator:
        simulator.add_faults(*(fault(who, met) for who, met in MET.values()))
        parts = WithModels(
            folder / "data",
            simulator.url,
            TRIES,
            max_attempts=ATTEMPTS,
            busy_timeout_seconds=0.5,
            judge_timeout_seconds=JUDGE_SECONDS,
            rejudge_share=0.0,
        )
        timeouts = {tuple(IN_TIME): 600.0, tuple(TOO_LATE): LATE_SECONDS}
        batches = [
            parts.run_batch(write_suite(folder, names), execute_timeout_seconds=seconds, **SETTINGS)
            for names, seconds in timeouts.items()
        ]
        rows = {row.case_label: row for batch_id in batches for row in parts.desk.runs(batch_id, "default")}
        documents = [parts.desk.aggregate_file(batch_id, "default", "benchmark.json") for batch_id in batches]
        benchmarks = [json.loads(document) for document in documents]
        files = {name: parts.store.runs.files(row.id) for name, row in rows.items()}
        yield Whole(rows, files, counted(simulator), benchmarks, simulator.stats())
        parts.close()


@pytest.mark.parametrize("who", ["agent", "judge"])
def test_every_fault_has_its_line_or_a_reason_why_it_has_none(who: str) -> None:
    lines = {met.kind for one, met in MET.values() if one == who}
    excused = {kind for one, kind in NOT_HERE if one == who}

    assert lines | excused == set(KINDS)
    assert not lines & excused


@pytest.mark.parametrize("name", MET)
def test_a_fault_that_lasts_ends_its_run_in_its_outcome_unscored_and_within_the_bound(whole: Whole, name: str) -> None:
    who, met = MET[name]
    row = whole.rows[name]

    assert row.outcome is met.outcome, (row.error, whole.asked[who, name])
    assert row.error
    assert "grading.json" not in whole.files[name]
    # What was tried until it was given up was handed back each time, and left nothing to keep.
    was_given_up = row.error.startswith("given up")
    kept = {"transcript.md", "transcript.jsonl", "metrics.json", "timing.json", "execution.json"}
    assert kept <= set(whole.files[name]) or was_given_up
    assert 1 <= whole.asked[who, name] <= met.most
    # An executed run is not executed again because its judge failed.
    assert whole.asked["judge", name] == 0 if who == "agent" else whole.files[name]["metrics.json"].size > 0


def test_the_case_without_a_fault_is_scored(whole: Whole) -> None:
    assert whole.rows[HEALTHY].outcome is Outcome.SCORED
    assert "grading.json" in whole.files[HEALTHY]


def test_the_benchmark_counts_every_outcome_and_scores_none_of_them(whole: Whole) -> None:
    expected = Counter(met.outcome.value for _, met in MET.values())

    told: Counter[str] = Counter()
    for benchmark in whole.benchmarks:
        coverage = benchmark["coverage"]
        told += Counter({name: count for name, count in coverage["outcomes"].items() if count})
        told += Counter({name: coverage[name] for name in ("planned", "settled", "counted")})
        told += Counter({"listed": len(benchmark["runs"]), "uncounted": len(benchmark["uncounted_runs"])})

    every = len(MET) + 1
    sums = {"planned": every, "settled": every, "counted": 1, "listed": 1, "uncounted": len(MET), "scored": 1}
    assert told == {**expected, **sums}


def test_no_request_was_repeated_beyond_the_configured_bound(whole: Whole) -> None:
    assert whole.stats["most_repeated"] <= TRIES * ATTEMPTS
    assert sum(whole.stats["faults"].values()) == sum(whole.asked[who, name] for name, (who, _) in MET.items())
