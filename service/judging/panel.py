"""Several judges, one verdict: majority for statements, mean for scores, and what they disagreed about."""

from collections.abc import Sequence
from statistics import fmean

from pydantic import JsonValue

from schemas.base import Number
from service.judging.answers import MAX_ITEMS
from service.judging.verdict import ConventionVerdict, Score, StatementVerdict, Verdict


def join(verdicts: Sequence[Verdict]) -> Verdict:
    """The panel's verdict; all members answered the same questions. A tie is not passed: the burden of proof."""
    first = verdicts[0]
    if len(verdicts) == 1:
        return first
    return first.model_copy(
        update={
            "statements": tuple(majority(column) for column in zip(*(v.statements for v in verdicts), strict=True)),
            "criteria": tuple(mean(column) for column in zip(*(v.criteria for v in verdicts), strict=True)),
            "dimensions": tuple(mean(column) for column in zip(*(v.dimensions for v in verdicts), strict=True)),
            "conventions": {name: convention([v.conventions[name] for v in verdicts]) for name in first.conventions},
            "remarks": tuple(dict.fromkeys(remark for v in verdicts for remark in v.remarks))[:MAX_ITEMS],
            "overall": next((v.overall for v in verdicts if v.overall), ""),
        }
    )


def majority(column: Sequence[StatementVerdict]) -> StatementVerdict:
    """What more than half say, in the words of the first who says so."""
    passed = sum(verdict.passed for verdict in column) * 2 > len(column)
    return next((verdict for verdict in column if verdict.passed is passed), column[0])


def mean(column: Sequence[Score]) -> Score:
    """The mean score, in the words of the judge nearest to it."""
    value = exact_mean([score.score for score in column])
    nearest = min(column, key=lambda score: abs(score.score - value))
    return nearest.model_copy(update={"score": value})


def exact_mean(scores: Sequence[Number]) -> Number:
    """A whole number where the mean is whole."""
    value = fmean(scores)
    return int(value) if value == int(value) else round(value, 4)


def convention(column: Sequence[ConventionVerdict]) -> ConventionVerdict:
    """What more than half say of a convention."""
    passed = sum(verdict.passed for verdict in column) * 2 > len(column)
    return next((verdict for verdict in column if verdict.passed is passed), column[0])


def disagreements(verdicts: Sequence[Verdict]) -> dict[str, JsonValue]:
    """question id or convention -> what each member said, in the panel's order, where they differ."""
    found: dict[str, JsonValue] = {}
    for statements in zip(*(v.statements for v in verdicts), strict=True):
        if len({verdict.passed for verdict in statements}) > 1:
            found[statements[0].id] = [verdict.passed for verdict in statements]
    for scored in zip(*((*v.criteria, *v.dimensions) for v in verdicts), strict=True):
        if len({score.score for score in scored}) > 1:
            found[scored[0].id] = [score.score for score in scored]
    for name in verdicts[0].conventions:
        said = [verdict.conventions[name].passed for verdict in verdicts]
        if len(set(said)) > 1:
            found[name] = [*said]
    return found
