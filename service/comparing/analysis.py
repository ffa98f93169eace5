"""After unblinding: why one side won, and what to change in the other."""

import functools
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, JsonValue, ValidationError

from schemas.analysis import Analysis, ComparisonSummary, Improvement, InstructionFollowing, TranscriptInsights
from schemas.kinds import Dialect
from service.comparing.asking import Question
from service.comparing.contest import CaseResult
from service.judging.answers import Unusable, capped, complaints_of, parsed, plain_schema, strict
from service.judging.evidence import text_block
from service.judging.fences import CODE_CHARS, Fence, quoted
from service.judging.inlining import shares, shortened
from service.judging.prompts import prompt
from service.judging.request import flat

CATEGORIES = ("instructions", "tools", "examples", "error_handling", "structure", "references")
AREAS = ("loopholes", "description", "examples", "token_budget", "structure", "content_value")
SKILL_CHARS = 80_000  # of one skill
TRANSCRIPT_CHARS = 30_000  # of one transcript
MOST_TRANSCRIPTS = 3  # cases whose transcripts are shown
MOST_CASES = 60  # whose results are told
MAX_TOKENS = 8_000
MOST = 20  # phrases or suggestions that are kept


@dataclass(frozen=True)
class Known:
    """One side, unblinded."""

    label: str  # what people call it
    version: str  # v1, or the configuration where there is no skill
    skill_files: Mapping[str, str]  # path -> text; empty without a skill
    transcripts: Mapping[int, str]  # case position -> transcript


@dataclass(frozen=True)
class Unblinded:
    """Everything the analysis sees."""

    winner: Known
    loser: Known
    winning_side: str
    cases: Sequence[CaseResult]
    form: Dialect
    model: str

    @property
    def telling(self) -> CaseResult:
        """The first case that the winner won: its comparison is the one cited."""
        return next(one for one in self.cases if one.winner == self.winning_side)


def analysis_question(known: Unblinded) -> Question[Analysis]:
    """The one question after a comparison."""
    told = prompt("analyze_cases" if known.form is Dialect.CASES else "analyze")
    schema: dict[str, JsonValue] = plain_schema(_answer_model(known.form).model_json_schema())
    fence = _fence(known)
    params: dict[str, JsonValue] = {
        "model": known.model,
        "max_tokens": MAX_TOKENS,
        "system": [{"type": "text", "text": told.text}],
        "messages": [{"role": "user", "content": [text_block("\n\n".join(_material(known, fence)))]}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }
    read = functools.partial(read_cases if known.form is Dialect.CASES else read_creator, known)
    return Question(params, f"{told.version}+{prompt('repair').version}", read, "analysis")


def _material(known: Unblinded, fence: Fence) -> Iterator[str]:
    yield f"# What is known\n\nThe code of the fences is {fence.code}."
    yield f"The winner is {flat(known.winner.label)}, the loser is {flat(known.loser.label)}."
    yield fence.around("what the blind comparison said, case by case", "\n".join(_verdicts(known)))
    for word, side in (("winner", known.winner), ("loser", known.loser)):
        yield from _skill(word, side, fence)
        for position, transcript in list(side.transcripts.items())[:MOST_TRANSCRIPTS]:
            what = f"transcript of the {word} in case {position + 1}"
            yield fence.around(what, shortened(transcript, TRANSCRIPT_CHARS))
    yield "# End of what is known"


def _verdicts(known: Unblinded) -> Iterator[str]:
    words = {known.winning_side: "the winner's result was better", None: "a tie"}
    for one in known.cases[:MOST_CASES]:
        said = words.get(one.winner, "the loser's result was better")
        named = {label: "the winner" if side == known.winning_side else "the loser" for label, side in _labels(one)}
        who = f"A is {named['A']}, B is {named['B']}"
        reasoning = flat(one.comparison.reasoning or "")
        yield f"case {one.position + 1} ({flat(one.case.prompt)[:200]}): {said} ({who}): {reasoning}"
    if len(known.cases) > MOST_CASES:
        yield f"and {len(known.cases) - MOST_CASES} more cases"


def _labels(one: CaseResult) -> list[tuple[str, str]]:
    return list(one.shown.order.labels.items())


def _skill(word: str, side: Known, fence: Fence) -> Iterator[str]:
    if not side.skill_files:
        yield f"The {word} worked without a skill."
        return
    most = shares([len(text) for text in side.skill_files.values()], SKILL_CHARS)
    for (path, text), chars in zip(side.skill_files.items(), most, strict=True):
        if chars:
            yield fence.around(f"skill of the {word}: file {quoted(path)}", shortened(text, chars))


def _fence(known: Unblinded) -> Fence:
    texts = [text for side in (known.winner, known.loser) for text in _texts(side)]
    texts += [one.comparison.reasoning or "" for one in known.cases]
    for attempt in range(1_000):
        seed = json.dumps([attempt, texts], ensure_ascii=True)
        code = hashlib.sha256(seed.encode()).hexdigest()[:CODE_CHARS]
        if not any(code in text for text in texts):
            return Fence(code)
    raise AssertionError("a thousand codes all occur in the material")


def _texts(side: Known) -> list[str]:
    return [*side.skill_files.values(), *side.transcripts.values()]


@functools.cache
def _answer_model(form: Dialect) -> type[BaseModel]:
    fields: dict[str, Any] = {"strengths": list[str], "weaknesses": list[str]}
    if form is Dialect.CASES:
        part: Any = strict("ChangePart", {"area": Literal[AREAS], "before": str, "after": str, "reasoning": str})
        return strict("CasesAnalysis", {**fields, "suggestions": list[part]})
    followed = strict("FollowedPart", {"issues": list[str], "score": Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]})
    change: dict[str, Any] = {"category": Literal[CATEGORIES], "priority": Literal["high", "medium", "low"]}
    suggestion: Any = strict("SuggestionPart", {**change, "suggestion": str, "expected_impact": str})
    fields["instruction_following"] = strict("FollowingPart", {"winner": followed, "loser": followed})
    patterns: dict[str, Any] = dict.fromkeys(("winner_execution_pattern", "loser_execution_pattern"), str)
    fields["transcript_insights"] = strict("InsightsPart", patterns)
    return strict("CreatorAnalysis", {**fields, "suggestions": list[suggestion]})


def _answer(form: Dialect, text: str) -> dict[str, Any]:
    try:
        return _answer_model(form).model_validate(parsed(text)).model_dump()
    except ValidationError as error:
        raise Unusable("malformed", complaints_of(error)) from error


def read_cases(known: Unblinded, text: str) -> Analysis:
    """The answer in the cases dialect's form."""
    said = _answer(Dialect.CASES, text)
    return Analysis(
        winner_version=known.winner.version,
        loser_version=known.loser.version,
        strengths=_phrases(said["strengths"]),
        weaknesses=_phrases(said["weaknesses"]),
        suggestions=_suggestions(said["suggestions"]),
    )


def read_creator(known: Unblinded, text: str) -> Analysis:
    """The answer in skill-creator's form; who won is ours to say."""
    said = _answer(Dialect.SKILL_CREATOR, text)
    changes = [{"area": one.pop("category"), **one} for one in said["suggestions"]]
    return Analysis(
        comparison_summary=ComparisonSummary(
            winner=known.telling.winning_label,
            winner_skill=known.winner.label,
            loser_skill=known.loser.label,
            comparator_reasoning=known.telling.comparison.reasoning,
        ),
        strengths=_phrases(said["strengths"]),
        weaknesses=_phrases(said["weaknesses"]),
        instruction_following={
            side: InstructionFollowing(score=one["score"], issues=_phrases(one["issues"]))
            for side, one in said["instruction_following"].items()
        },
        suggestions=_suggestions(changes),
        transcript_insights=_insights(said["transcript_insights"]),
    )


def _insights(given: dict[str, str]) -> TranscriptInsights:
    capped_texts: dict[str, Any] = {name: capped(text) for name, text in given.items()}
    return TranscriptInsights(**capped_texts)


def _phrases(given: list[str]) -> tuple[str, ...]:
    return tuple(capped(text) for text in given[:MOST])


def _suggestions(given: list[dict[str, str]]) -> tuple[Improvement, ...]:
    capped_texts: list[dict[str, Any]] = [{name: capped(text) for name, text in one.items()} for one in given[:MOST]]
    return tuple(Improvement(**one) for one in capped_texts)
