"""Runs to judge, and a judge that answers from the request alone."""

import json
from collections.abc import Callable
from typing import Any

from schemas.kinds import Dialect
from schemas.metrics import Metrics
from schemas.structural import CheckedExpectation, Structural
from schemas.suite import Case, Criterion, Dimension, Rubric, Statement
from schemas.timing import Timing
from service.judging.judgement import JudgeAnswer, TokensUsed
from service.judging.material import JudgeMaterial, output_file
from service.judging.request import JudgeRequest

SKILL = (
    b"---\nname: docker-deploys\ndescription: Use when containers are deployed\n---\n# Docker\n\nBuild, then push.\n"
)


def statement_run() -> JudgeMaterial:
    """skill-creator: two statements."""
    case = Case(
        id=1,
        prompt="Extract the names",
        expected_output="A list of names",
        statements=(Statement(text="The output names John Smith"), Statement(text="The sheet has a SUM formula")),
    )
    return JudgeMaterial(
        case=case,
        dialect=Dialect.SKILL_CREATOR,
        outputs=(output_file("names.txt", b"John Smith\nSarah Johnson\n"),),
        transcript="## Eval Prompt\n\nExtract the names\n\nStep 3: extracted John Smith",
        user_notes="I was unsure about the second page",
        metrics=Metrics(total_tool_calls=3),
        timing=Timing(total_duration_seconds=12.5, total_tokens=900),
    )


def rubric_run() -> JudgeMaterial:
    """skill-evaluator: structural results and a weighted rubric."""
    dimensions = (
        Dimension(id="Q1", name="philosophy", weight=2.0, scoring={"1": "bad", "3": "fair", "5": "good"}),
        Dimension(id="Q2", name="correctness", scoring={"1": "wrong", "5": "right"}),
    )
    checks = (
        CheckedExpectation(id="S1", text="Test file created", type="file_exists", passed=True, evidence="Found: a"),
        CheckedExpectation(id="S2", text="No mocks", type="file_not_contains", passed=False, evidence="Found b"),
    )
    case = Case(id="slug", prompt="Write tests", rubric=Rubric(dimensions=dimensions))
    outputs = (output_file("a.test.ts", b"it('books')"),)
    return JudgeMaterial(
        case, Dialect.SKILL_EVALUATOR, outputs, "transcript", structural=Structural(expectations=checks)
    )


def criteria_run() -> JudgeMaterial:
    """cases: criteria scored 1-5, and a skill as output."""
    criteria = (
        Criterion(criterion="frontmatter", description="Has valid front matter", required=True),
        Criterion(criterion="token-efficiency", description="Under 500 lines"),
    )
    case = Case(id="case-01", prompt="Create a skill for Docker deployments", criteria=criteria)
    outputs = (output_file("docker-deploys/SKILL.md", SKILL),)
    return JudgeMaterial(case, Dialect.CASES, outputs, "transcript", run_number=2, version=0)


def true_controls(request: JudgeRequest) -> dict[str, bool]:
    return {id_: control.phrase == request.true_control for id_, control in request.questions.controls.items()}


def answer_to(request: JudgeRequest, passed: bool = True, score: int = 4) -> dict[str, Any]:
    """A complete answer with the controls answered truly."""
    questions = request.questions
    said = dict.fromkeys(questions.statements, passed) | true_controls(request)
    answer: dict[str, Any] = {
        "statements": [{"id": id_, "evidence": f"seen {id_}", "passed": value} for id_, value in said.items()],
        "claims": [{"claim": "All is done", "type": "process", "evidence": "nothing shows it", "verified": False}],
        "user_notes": {"uncertainties": ["second page"], "needs_review": [], "workarounds": []},
        "eval_feedback": {"suggestions": [], "overall": ""},
    }
    if questions.criteria:
        answer["criteria"] = [{"id": id_, "reasoning": "so", "score": score} for id_ in questions.criteria]
    if questions.dimensions:
        answer["dimensions"] = [{"id": id_, "evidence": "so", "score": score} for id_ in questions.dimensions]
    if questions.with_conventions:
        names = ("description_field", "progressive_disclosure", "type_alignment")
        answer["conventions"] = {name: {"details": "fine", "passed": True} for name in names}
    return answer


class ScriptedJudge:
    """Answers each request by the next of its makers; the last one goes on for ever."""

    def __init__(self, *makers: Callable[[JudgeRequest], dict[str, Any] | str], stop_reason: str = "end_turn") -> None:
        self.makers = list(makers) or [answer_to]
        self.stop_reason = stop_reason
        self.asked: list[JudgeRequest] = []

    def __call__(self, request: JudgeRequest) -> JudgeAnswer:
        maker = self.makers[min(len(self.asked), len(self.makers) - 1)]
        self.asked.append(request)
        made = maker(request)
        text = made if isinstance(made, str) else json.dumps(made)
        return JudgeAnswer(text, self.stop_reason, TokensUsed(input=100, output=20), seconds=0.5, cost_usd=0.001)


def numbered_run(number: int) -> JudgeMaterial:
    """One of many runs of a case, each with its own output."""
    run = statement_run()
    text = f"run {number}: John Smith and {number} others".encode()
    return JudgeMaterial(run.case, run.dialect, (output_file("names.txt", text),), f"transcript of run {number}")
