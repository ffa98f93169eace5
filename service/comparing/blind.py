"""The question to the comparator: two results without names; and its answer as a comparison in its dialect's form."""

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from pydantic import BaseModel, JsonValue, ValidationError

from schemas.base import Number
from schemas.comparison import Comparison, ExpectationResults, OutputQuality, OutputRubric
from schemas.grading import GradedExpectation
from schemas.kinds import Dialect
from schemas.suite import Case
from service.aggregation.comparison import completed
from service.comparing.asking import Question
from service.comparing.blinding import Blinding
from service.comparing.sides import Result
from service.judging.answers import Unusable, capped, complaints_of, entries, parsed, plain_schema, strict
from service.judging.evidence import Block, how, listing, native_block, text_block
from service.judging.fences import CODE_CHARS, Fence, quoted
from service.judging.inlining import shares, shortened
from service.judging.material import OutputFile
from service.judging.media import Shown
from service.judging.prompts import prompt
from service.judging.request import flat, indented

LABELS = ("A", "B")
CONTENT = ("correctness", "completeness", "accuracy")
STRUCTURE = ("organization", "formatting", "usability")
DIMENSIONS = (
    "description_quality",
    "convention_compliance",
    "type_specific_quality",
    "token_efficiency",
    "content_value",
)
TEXT_CHARS = 120_000  # of one result
NATIVE_BYTES = 4 * 2**20  # images and PDFs of one result
MOST_NATIVE = 10
MAX_TOKENS = 6_000
MOST_PHRASES = 20
CACHE: JsonValue = {"type": "ephemeral"}


@dataclass(frozen=True)
class Asked:
    """One blind question: a case, and who is shown as A and as B."""

    case: Case
    results: Mapping[str, Result]  # label -> result
    blinding: Blinding
    form: Dialect
    model: str
    label: str = ""


def blind_question(asked: Asked) -> Question[Comparison]:
    """The question; the same input gives the same question, byte for byte."""
    statements = statement_ids(asked.case, asked.form)
    told = prompt("compare_cases" if asked.form is Dialect.CASES else "compare")
    case = {**text_block(asked.blinding(case_text(asked.case, statements))), "cache_control": CACHE}
    params: dict[str, JsonValue] = {
        "model": asked.model,
        "max_tokens": MAX_TOKENS + 60 * len(statements),
        "system": [{**text_block(told.text), "cache_control": CACHE}],
        "messages": [{"role": "user", "content": cast(JsonValue, [case, *result_blocks(asked)])}],
        "output_config": {"format": {"type": "json_schema", "schema": answer_schema(asked.form, tuple(statements))}},
    }
    version = f"{told.version}+{prompt('repair').version}"
    read = functools.partial(read_cases if asked.form is Dialect.CASES else read_creator, asked.case, statements)
    return Question(params, version, read, asked.label)


def statement_ids(case: Case, form: Dialect) -> dict[str, str]:
    """The statements that each result is asked to meet; the cases dialect keeps no such results."""
    if form is Dialect.CASES:
        return {}
    return {f"E{number}": statement.text for number, statement in enumerate(case.statements, 1)}


def case_text(case: Case, statements: Mapping[str, str]) -> str:
    """The task, and what its author looks for."""
    parts = ["# The case", "## The task", indented(case.prompt)]
    if case.expected_output:
        parts += ["## What a good result is, in the words of the case's author", indented(case.expected_output)]
    if statements:
        parts += ["## Expectations", *(f"[{id_}] {flat(text)}" for id_, text in statements.items())]
    if case.criteria:
        parts += ["## Criteria of the case's author"]
        parts += [f"- {flat(one.criterion)}: {flat(one.description or '')}" for one in case.criteria]
    if case.rubric and case.rubric.dimensions:
        parts += ["## What the case's author looks for"]
        parts += [f"- {flat(one.name)}: {flat(one.description or '')}" for one in case.rubric.dimensions]
    return "\n\n".join(parts)


def result_blocks(asked: Asked) -> Iterator[Block]:
    """Both results, A first."""
    fence = _fence(asked)
    yield text_block(f"# The results\n\nThe code of the fences is {fence.code}.")
    for label in LABELS:
        yield from _one_result(label, asked.results[label], asked.blinding, fence)
    yield text_block("# End of the results")


def _one_result(label: str, result: Result, blinding: Blinding, fence: Fence) -> Iterator[Block]:
    most = shares([len(text) for _, text in result.texts], TEXT_CHARS)
    parts = [fence.around(f"result {label}: list of its files", blinding(listing(result.outputs)))]
    if result.answer is not None:
        words = shortened(blinding(result.answer), TEXT_CHARS)
        parts.append(fence.around(f"result {label}: no files, the closing answer", words))
    for (file, text), chars in zip(result.texts, most, strict=True):
        if chars or not text:
            what = f"result {label}: file {blinding(quoted(file.path))}"
            parts.append(fence.around(what, shortened(blinding(text), chars)))
    left_out = sum(1 for (_, text), chars in zip(result.texts, most, strict=True) if text and not chars)
    if left_out:
        parts.append(f"{left_out} text files of result {label} are not shown: there was no room.")
    yield text_block("\n\n".join(parts))
    for file in _natives(result):
        yield text_block(f"The next block is the file {blinding(quoted(file.path))} of result {label}; as if fenced.")
        yield native_block(file)


def _natives(result: Result) -> Iterator[OutputFile]:
    left, count = NATIVE_BYTES, 0
    for file in result.outputs:
        if how(file) in (Shown.IMAGE, Shown.DOCUMENT) and file.size <= left and count < MOST_NATIVE:
            left, count = left - file.size, count + 1
            yield file


def _fence(asked: Asked) -> Fence:
    """A code that follows from all that both agents wrote, so that nothing they wrote can contain it."""
    results = [asked.results[label] for label in LABELS]
    texts = [one.answer or "" for one in results] + [text for one in results for _, text in one.texts]
    digests = [[[file.path, file.sha256] for file in one.outputs] + [one.answer] for one in results]
    for attempt in range(1_000):
        seed = json.dumps(["fence", attempt, digests], ensure_ascii=True)
        code = hashlib.sha256(seed.encode()).hexdigest()[:CODE_CHARS]
        if not any(code in text for text in texts):
            return Fence(code)
    raise AssertionError("a thousand codes all occur in the results")


@functools.lru_cache(maxsize=512)
def answer_model(form: Dialect, ids: tuple[str, ...]) -> type[BaseModel]:
    """The answer as a model: reasons first, the winner last."""
    fields: dict[str, Any] = {"reasoning": str}
    if form is Dialect.CASES:
        score = strict("DimensionScores", dict.fromkeys(LABELS, Literal[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]))
        fields["scores"] = strict("Scores", dict.fromkeys(DIMENSIONS, score))
    else:
        fields |= dict.fromkeys(LABELS, _result_model())
        if ids:
            fields["expectations"] = entries("ExpectationPart", ids, A=bool, B=bool)
    fields["winner"] = Literal["A", "B", "TIE"]
    return strict("Answer", fields)


def _result_model() -> type[BaseModel]:
    score = Literal[1, 2, 3, 4, 5]
    groups = {"content": strict("Content", dict.fromkeys(CONTENT, score))}
    groups["structure"] = strict("Structure", dict.fromkeys(STRUCTURE, score))
    phrases: dict[str, Any] = dict.fromkeys(("strengths", "weaknesses"), list[str])
    return strict("ResultPart", {**phrases, **groups})


def answer_schema(form: Dialect, ids: tuple[str, ...]) -> dict[str, JsonValue]:
    """The JSON Schema for the API."""
    schema: dict[str, JsonValue] = plain_schema(answer_model(form, ids).model_json_schema())
    return schema


def _answer(text: str, form: Dialect, ids: tuple[str, ...]) -> dict[str, Any]:
    try:
        return answer_model(form, ids).model_validate(parsed(text)).model_dump()
    except ValidationError as error:
        raise Unusable("malformed", complaints_of(error)) from error


def read_cases(case: Case, _statements: Mapping[str, str], text: str) -> Comparison:
    """The answer in the cases dialect's form."""
    said = _answer(text, Dialect.CASES, ())
    scores: dict[str, dict[str, Number]] = said["scores"]
    return Comparison(
        eval_prompt=case.prompt, winner=said["winner"], reasoning=capped(said["reasoning"]), scores=scores
    )


def read_creator(_case: Case, statements: Mapping[str, str], text: str) -> Comparison:
    """The answer in skill-creator's form; sums are ours, whatever the comparator would have added up."""
    said = _answer(text, Dialect.SKILL_CREATOR, tuple(statements))
    met = said.get("expectations", [])
    _refuse_wrong_ids(met, statements)
    found = Comparison(
        winner=said["winner"],
        reasoning=capped(said["reasoning"]),
        rubric={one: OutputRubric(content=said[one]["content"], structure=said[one]["structure"]) for one in LABELS},
        output_quality={one: _quality(said[one]) for one in LABELS},
        expectation_results={one: _results(one, met, statements) for one in LABELS} if statements else None,
    )
    return completed(found)


def _refuse_wrong_ids(met: list[dict[str, Any]], statements: Mapping[str, str]) -> None:
    counts = Counter(entry["id"] for entry in met)
    wrong = [
        f"expectations: {id_} comes {counts[id_]} times; it must come once" for id_ in statements if counts[id_] != 1
    ]
    if wrong:
        raise Unusable("ids", wrong[:20])


def _quality(said: dict[str, Any]) -> OutputQuality:
    return OutputQuality(strengths=_phrases(said["strengths"]), weaknesses=_phrases(said["weaknesses"]))


def _phrases(given: list[str]) -> tuple[str, ...]:
    return tuple(capped(text) for text in given[:MOST_PHRASES])


def _results(label: str, met: list[dict[str, Any]], statements: Mapping[str, str]) -> ExpectationResults:
    passed = {entry["id"]: bool(entry[label]) for entry in met}
    details = tuple(GradedExpectation(text=text, passed=passed[id_]) for id_, text in statements.items())
    count = sum(passed.values())
    return ExpectationResults(
        passed=count, total=len(details), pass_rate=round(count / len(details), 2), details=details
    )
