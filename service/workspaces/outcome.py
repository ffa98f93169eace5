"""How a run ended, told from its files; and run.json, in which Assay's exports say it outright."""

from collections.abc import Sequence
from dataclasses import field

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from schemas.states import Outcome
from service.aggregation.records import RunRecord, Tokens
from service.aggregation.scores import Decision, dimension_scores


@dataclass(frozen=True, config=ConfigDict(extra="ignore"))
class RunFile:
    """run.json: what the other files of a run have no place for."""

    outcome: Outcome | None = None
    reason: str | None = None
    skill_used: bool | None = None
    simulated: bool = False
    cost_usd: float | None = None
    tokens: Tokens | None = None
    copies: tuple[str, ...] = field(default=())  # output files that repeat a nested one at the top level


def outcome_of(
    run: RunRecord, kept: RunFile, problem: str | None, decisions: Sequence[Decision]
) -> tuple[Outcome, str | None]:
    """The outcome and, unless the run counts, the reason."""
    if kept.outcome is not None:
        return kept.outcome, kept.reason
    if problem:
        return Outcome.JUDGE_ERROR, problem
    if run.structural is not None and run.structural.gate_passed is False and run.grading is None:
        return Outcome.GATED, None
    if run.grading is None and (run.structural is None or run.case.statements or run.case.weights):
        return Outcome.JUDGE_ERROR, "grading.json is missing"
    undecided = sum(decision.passed is None for decision in decisions)
    if undecided:
        return Outcome.JUDGE_ERROR, f"{undecided} of {len(decisions)} expectations were not decided"
    if decisions or dimension_scores(run.grading) or _has_summary(run):
        return Outcome.SCORED, None
    return Outcome.UNGRADED, "the grading decides nothing"


def _has_summary(run: RunRecord) -> bool:
    grading = run.grading
    if grading is None:
        return False
    counted = grading.summary is not None and bool(grading.summary.total)
    return counted or (grading.rubric_summary is not None and grading.rubric_summary.normalized is not None)
