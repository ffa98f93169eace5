"""The answer of the judge: its schema for one case, and reading it without trusting it."""

import functools
import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, create_model

from service.judging.questions import Questions
from service.judging.verdict import (
    ClaimVerdict,
    ConventionVerdict,
    NotesSummary,
    Remark,
    Score,
    StatementVerdict,
    Verdict,
)

MAX_ANSWER_CHARS = 1_000_000
MAX_TEXT_CHARS = 4_000  # of one evidence or reason that is kept
MAX_ITEMS = 50  # claims, remarks and notes that are kept
MAX_COMPLAINTS = 20
JUDGED_CONVENTIONS = ("description_field", "progressive_disclosure", "type_alignment")
FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


class Strict(BaseModel):
    """A part of the answer: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class ClaimPart(Strict):
    """A claim in the answer."""

    claim: str
    type: Literal["factual", "process", "quality"]
    evidence: str
    verified: bool


class NotesPart(Strict):
    """The agent's own notes in the answer."""

    uncertainties: list[str]
    needs_review: list[str]
    workarounds: list[str]


class ConventionPart(Strict):
    """A convention in the answer."""

    details: str
    passed: bool


class Unusable(Exception):
    """An answer that cannot be used; the complaints say exactly why."""

    def __init__(self, reason: str, complaints: Iterable[str]) -> None:
        self.reason = reason
        self.complaints = tuple(complaints)
        super().__init__("; ".join(self.complaints))


class Shape(NamedTuple):
    """All that the form of an answer depends on: equal shapes share one model and one schema."""

    statements: tuple[str, ...]
    criteria: tuple[str, ...]
    dimensions: tuple[str, ...]
    about: tuple[str, ...]  # what a remark may be about
    with_conventions: bool


def shape_of(questions: Questions) -> Shape:
    """The form of the answer to these questions."""
    ids = (tuple(questions.statements), tuple(questions.criteria), tuple(questions.dimensions))
    return Shape(*ids, questions.ids, questions.with_conventions)


@functools.lru_cache(maxsize=512)
def answer_model(shape: Shape) -> type[BaseModel]:
    """The answer as a pydantic model; evidence comes before the verdict it supports."""
    score = Literal[1, 2, 3, 4, 5]
    fields: dict[str, Any] = {"statements": entries("StatementPart", shape.statements, evidence=str, passed=bool)}
    if shape.criteria:
        fields["criteria"] = entries("CriterionPart", shape.criteria, reasoning=str, score=score)
    if shape.dimensions:
        fields["dimensions"] = entries("DimensionPart", shape.dimensions, evidence=str, score=score)
    fields |= {"claims": list[ClaimPart], "user_notes": NotesPart, "eval_feedback": feedback_model(shape)}
    if shape.with_conventions:
        fields["conventions"] = strict("ConventionsPart", dict.fromkeys(JUDGED_CONVENTIONS, ConventionPart))
    return strict("Answer", fields)


def strict(name: str, fields: dict[str, Any]) -> type[BaseModel]:
    """A model whose fields are all required."""
    required: dict[str, Any] = {field: (kind, ...) for field, kind in fields.items()}
    return create_model(name, __base__=Strict, **required)


def entries(name: str, ids: tuple[str, ...], **fields: Any) -> Any:
    """A list of entries, each with one of the ids."""
    return list[strict(name, {"id": Literal[ids], **fields})]  # type: ignore[misc]


def feedback_model(shape: Shape) -> type[BaseModel]:
    """Remarks on the case; each may be about one question or about none."""
    about = Literal[shape.about] | None if shape.about else None
    suggestion: Any = strict("SuggestionPart", {"assertion": about, "reason": str})
    return strict("FeedbackPart", {"suggestions": list[suggestion], "overall": str})


@functools.lru_cache(maxsize=512)
def answer_schema(shape: Shape) -> dict[str, JsonValue]:
    """The JSON Schema for the API: only words it takes. Shared: do not change it."""
    schema: dict[str, JsonValue] = plain_schema(answer_model(shape).model_json_schema())
    return schema


def plain_schema(node: Any) -> Any:
    """Titles and descriptions gone (they are no instructions), const written as an enum of one."""
    if isinstance(node, list):
        return [plain_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {
        key: {name: plain_schema(child) for name, child in value.items()}
        if key in ("properties", "$defs")
        else plain_schema(value)
        for key, value in node.items()
        if key not in ("title", "description")
    }
    if "const" in kept:
        kept["enum"] = [kept.pop("const")]
    return kept


def read_answer(text: str, questions: Questions) -> tuple[Verdict, dict[str, bool]]:
    """The verdict, and what was said of the control statements; raises Unusable with exact complaints."""
    document = parsed(text)
    try:
        answer = answer_model(shape_of(questions)).model_validate(document).model_dump()
    except ValidationError as error:
        raise Unusable("malformed", complaints_of(error)) from error
    missing = list(missing_ids(answer, questions))
    if missing:
        raise Unusable("ids", missing[:MAX_COMPLAINTS])
    said = {entry["id"]: entry["passed"] for entry in answer["statements"] if entry["id"] in questions.controls}
    return verdict_of(answer, questions), said


def parsed(text: str) -> Any:
    """The JSON of an answer: no duplicate keys, no NaN, not too long."""
    if len(text) > MAX_ANSWER_CHARS:
        raise Unusable("malformed", [f"the answer has {len(text):,} characters; {MAX_ANSWER_CHARS:,} are allowed"])
    wrapped = FENCED.match(text)
    try:
        return json.loads(
            wrapped.group(1) if wrapped else text, object_pairs_hook=without_doubles, parse_constant=no_constant
        )
    except (ValueError, RecursionError) as error:
        raise Unusable("malformed", [f"the answer is no JSON object: {error}"[:300]]) from error


def without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys come once."""
    found = dict(pairs)
    if len(found) < len(pairs):
        doubled = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"the key {doubled!r} comes twice in one object")
    return found


def no_constant(name: str) -> Any:
    """NaN and Infinity are no JSON."""
    raise ValueError(f"{name} is no JSON value")


def complaints_of(error: ValidationError) -> list[str]:
    """What is wrong, each with its place in the answer."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    lines = [f"{'.'.join(str(step) for step in one['loc']) or 'the answer'}: {one['msg']}" for one in found]
    more = [f"and {len(lines) - MAX_COMPLAINTS} more"] if len(lines) > MAX_COMPLAINTS else []
    return lines[:MAX_COMPLAINTS] + more


def missing_ids(answer: dict[str, Any], questions: Questions) -> Iterable[str]:
    """A complaint for every id that does not come back exactly once."""
    asked: dict[str, Iterable[str]] = {
        "statements": questions.statements,
        "criteria": questions.criteria,
        "dimensions": questions.dimensions,
    }
    for name, ids in asked.items():
        counts = Counter(entry["id"] for entry in answer.get(name, []))
        for one in ids:
            if counts[one] == 0:
                yield f"{name}: {one} is missing"
            elif counts[one] > 1:
                yield f"{name}: {one} comes {counts[one]} times; it must come once"


def verdict_of(answer: dict[str, Any], questions: Questions) -> Verdict:
    """A checked answer in the order the questions were asked."""
    return Verdict(
        statements=tuple(
            StatementVerdict(id=entry["id"], passed=entry["passed"], evidence=capped(entry["evidence"]))
            for entry in in_order(answer["statements"], questions.own_statements)
        ),
        criteria=tuple(
            Score(id=entry["id"], score=entry["score"], evidence=capped(entry["reasoning"]))
            for entry in in_order(answer.get("criteria", []), questions.criteria)
        ),
        dimensions=tuple(
            Score(id=entry["id"], score=entry["score"], evidence=capped(entry["evidence"]))
            for entry in in_order(answer.get("dimensions", []), questions.dimensions)
        ),
        claims=tuple(claim_of(entry) for entry in answer["claims"][:MAX_ITEMS]),
        notes=NotesSummary(**{name: notes(texts) for name, texts in answer["user_notes"].items()}),
        remarks=tuple(
            Remark(reason=capped(entry["reason"]), about=entry["assertion"])
            for entry in answer["eval_feedback"]["suggestions"][:MAX_ITEMS]
        ),
        overall=capped(answer["eval_feedback"]["overall"]),
        conventions={
            name: ConventionVerdict(passed=entry["passed"], details=capped(entry["details"]))
            for name, entry in answer.get("conventions", {}).items()
        },
    )


def in_order(entries: list[dict[str, Any]], ids: Iterable[str]) -> list[dict[str, Any]]:
    """The entries of these ids, in the ids' order."""
    by_id = {entry["id"]: entry for entry in entries}
    return [by_id[one] for one in ids]


def claim_of(entry: dict[str, Any]) -> ClaimVerdict:
    """A claim, capped."""
    texts = {name: capped(entry[name]) for name in ("claim", "evidence")}
    return ClaimVerdict(type=entry["type"], verified=entry["verified"], **texts)


def notes(texts: list[str]) -> tuple[str, ...]:
    """A list of notes, capped."""
    return tuple(capped(text) for text in texts[:MAX_ITEMS])


def capped(text: str) -> str:
    """A text of a length that files and pages can carry."""
    return text if len(text) <= MAX_TEXT_CHARS else text[: MAX_TEXT_CHARS - 1] + "…"
