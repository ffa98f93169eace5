"""One line about a document: how much of what is in it."""

from schemas.benchmark import Benchmark
from schemas.dialects import Document
from schemas.feedback import FeedbackAggregate
from schemas.grading import Grading
from schemas.history import History
from schemas.structural import Structural
from schemas.suite import Suite


def counts_of(document: Document) -> str:
    """Such as "3 cases, 9 statements"; empty where there is nothing to count."""
    counts = [(count, word) for count, word in _counted(document) if count]
    return ", ".join(f"{count} {word if count == 1 else _plural(word)}" for count, word in counts)


def _plural(word: str) -> str:
    return {"criterion": "criteria"}.get(word, f"{word}s")


def _counted(document: Document) -> list[tuple[int, str]]:
    if isinstance(document, Suite):
        return _counted_suite(document)
    if isinstance(document, Grading):
        return [
            (len(document.expectations or ()), "expectation"),
            (len(document.results or ()), "criterion"),
            (len(document.rubric_scores or ()), "dimension"),
            (len(document.claims or ()), "claim"),
        ]
    if isinstance(document, Structural):
        return [(len(document.expectations), "expectation")]
    if isinstance(document, Benchmark):
        arms = document.run_summary.configurations if document.run_summary else ()
        return [(len(document.runs or ()), "run"), (len(arms), "configuration")]
    if isinstance(document, History):
        return [(len(document.versions or ()), "version")]
    if isinstance(document, FeedbackAggregate):
        return [(len(document.suggestions or ()), "suggestion")]
    return []


def _counted_suite(suite: Suite) -> list[tuple[int, str]]:
    cases = suite.cases
    return [
        (len(cases), "case"),
        (sum(len(case.structural) for case in cases), "structural expectation"),
        (sum(len(case.statements) for case in cases), "statement"),
        (sum(len(case.criteria) for case in cases), "criterion"),
        (sum(len(case.rubric.dimensions) for case in cases if case.rubric), "dimension"),
        (sum(len(case.files) for case in cases), "input file"),
    ]
