"""Old beside new."""

from schemas.grading import CriterionResult, DimensionScore, GradedExpectation, Grading
from service.judging.regrading import Change, changes


def graded(passed: bool, score: int) -> Grading:
    return Grading(
        expectations=(GradedExpectation(text="s", passed=passed), GradedExpectation(text="same", passed=True)),
        results=(CriterionResult(criterion="c", score=score),),
        rubric_scores=(DimensionScore(name="d", score=score),),
    )


def test_only_what_is_decided_differently_is_shown() -> None:
    assert changes(graded(True, 3), graded(False, 4)) == [
        Change("s", True, False),
        Change("c", 3, 4),
        Change("d", 3, 4),
    ]
    assert changes(graded(True, 3), graded(True, 3)) == []


def test_new_and_dropped_questions_are_shown_too() -> None:
    old, new = graded(True, 3), graded(True, 3).model_copy(update={"rubric_scores": None})

    assert changes(old, new) == [Change("d", 3, None)]
    assert changes(None, new)[0] == Change("s", None, True)
