"""Results to compare, and answers of a comparator."""

import json
from typing import Any

from schemas.kinds import Dialect
from schemas.suite import Case, Criterion, Statement
from service.comparing.blind import CONTENT, DIMENSIONS, STRUCTURE, Asked
from service.comparing.blinding import Blinding
from service.comparing.sides import Result
from service.judging.material import output_file

CASE = Case(
    id=1,
    prompt="Summarise orders.csv by region",
    expected_output="A table of regions",
    statements=tuple(Statement(text=text) for text in ("Output includes name", "Regions stand in a table")),
)
CASES_CASE = Case(
    id="case-01",
    prompt="Create a skill for managing Docker deployments",
    criteria=(Criterion(criterion="frontmatter", description="Has valid YAML", required=True),),
)


def result(text: str, name: str = "summary.md") -> Result:
    return Result((output_file(name, text.encode()),))


def asked(a: Result, b: Result, case: Case = CASE, form: Dialect = Dialect.SKILL_CREATOR) -> Asked:
    blinding = Blinding(["csv-summary"], ["v0", "v1"], case.prompt)
    return Asked(case, {"A": a, "B": b}, blinding, form, "some-judge")


def sheet(content: tuple[int, int, int], structure: tuple[int, int, int]) -> dict[str, Any]:
    """One result's part of an answer."""
    return {
        "content": dict(zip(CONTENT, content, strict=True)),
        "structure": dict(zip(STRUCTURE, structure, strict=True)),
        "strengths": ["Complete solution"],
        "weaknesses": ["Minor style inconsistency in header"],
    }


def creator_answer(winner: str = "A", ids: tuple[str, ...] = ("E1", "E2")) -> str:
    """The figures of the sample."""
    return json.dumps(
        {
            "reasoning": "Output A is complete.",
            "A": sheet((5, 5, 4), (4, 5, 4)),
            "B": sheet((3, 2, 3), (3, 2, 3)),
            "expectations": [{"id": one, "A": True, "B": one == "E1"} for one in ids],
            "winner": winner,
        }
    )


def cases_answer(winner: str = "A") -> str:
    """The figures of the sample."""
    scores = dict(zip(DIMENSIONS, [(8, 6), (9, 5), (8, 4), (7, 7), (8, 6)], strict=True))
    return json.dumps(
        {
            "reasoning": "Output A has a clearer description",
            "scores": {name: {"A": a, "B": b} for name, (a, b) in scores.items()},
            "winner": winner,
        }
    )
