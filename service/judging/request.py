"""One request to the judge: instructions and case first, because they are the same for all runs of the case."""

import hashlib
import json
from dataclasses import dataclass, replace
from typing import cast

from pydantic import JsonValue

from schemas.suite import Case, Dimension
from service.judging.answers import answer_schema, shape_of
from service.judging.evidence import Block, evidence_blocks, text_block, true_phrase
from service.judging.material import JudgeMaterial
from service.judging.native_tokens import native_tokens
from service.judging.prompts import prompt
from service.judging.questions import Questions, question_text, questions_of
from service.judging.settings import JudgeSettings

TOKENS_PER_QUESTION = 250
CHARS_PER_TOKEN = 3.2  # on the safe side of what models count
NOT_TAKEN = "(The model does not take this file: only its name, size and type are known, from the list of the files.)"
CACHE: JsonValue = {"type": "ephemeral"}


@dataclass(frozen=True)
class Slot:
    """A seat at the panel; `repeat` counts further judgements by the same seat."""

    model: str
    number: int = 0
    repeat: int = 0


@dataclass(frozen=True)
class JudgeRequest:
    """Everything one call needs, and what is needed to read its answer."""

    id: str  # the judgement's key, and the custom_id in the half-price lane
    slot: Slot
    prompt_version: str
    system: list[Block]
    messages: list[dict[str, JsonValue]]
    schema: dict[str, JsonValue]
    max_tokens: int
    effort: str | None
    questions: Questions
    true_control: str  # the phrase that the material ends with

    def params(self) -> dict[str, JsonValue]:
        """The body of a Messages API request, alone or in a message batch."""
        output: dict[str, JsonValue] = {"format": {"type": "json_schema", "schema": self.schema}}
        if self.effort:
            output["effort"] = self.effort
        return {
            "model": self.slot.model,
            "max_tokens": self.max_tokens,
            "system": cast(JsonValue, self.system),
            "messages": cast(JsonValue, self.messages),
            "output_config": output,
        }

    def estimated_input_tokens(self) -> int:
        """About how many tokens go in; for limiter and budget, corrected after the call."""
        blocks = [*self.system, *(block for message in self.messages for block in content_of(message))]
        chars = sum(len(str(block.get("text", ""))) for block in blocks)
        natives = sum(native_tokens(block) for block in blocks if block["type"] != "text")
        return int(chars / CHARS_PER_TOKEN) + natives + 300

    def body_bytes(self) -> int:
        """How large the body is on its way."""
        return len(json.dumps(self.params(), ensure_ascii=False).encode("utf-8", "surrogatepass"))


def content_of(message: dict[str, JsonValue]) -> list[Block]:
    """The blocks of a message; a plain text is one block."""
    content = message["content"]
    return [text_block(content)] if isinstance(content, str) else cast(list[Block], content)


def build_request(material: JudgeMaterial, settings: JudgeSettings, slot: Slot) -> JudgeRequest:
    """The request for one seat; the same input gives the same request, byte for byte."""
    questions = questions_of(material.case, material.wants_conventions)
    case = {**text_block(case_text(material.case, questions)), "cache_control": CACHE}
    content: JsonValue = cast(JsonValue, [case, *evidence_blocks(material, questions, settings)])
    asked = len(questions.statements) + len(questions.criteria) + len(questions.dimensions)
    return JudgeRequest(
        id=judgement_key(material, settings, slot),
        slot=slot,
        prompt_version=prompt_version(material),
        system=[{**text_block(instructions(material)), "cache_control": CACHE}],
        messages=[{"role": "user", "content": content}],
        schema=answer_schema(shape_of(questions)),
        max_tokens=settings.max_output_tokens + TOKENS_PER_QUESTION * asked,
        effort=settings.effort,
        questions=questions,
        true_control=true_phrase(material, questions),
    )


def without_natives(request: JudgeRequest) -> JudgeRequest | None:
    """The request with images and PDFs only named, as in the list of the files; None if it has none."""
    blocks = content_of(request.messages[0])
    if all(block["type"] == "text" for block in blocks):
        return None
    shown = [block if block["type"] == "text" else text_block(NOT_TAKEN) for block in blocks]
    return replace(request, messages=[{"role": "user", "content": cast(JsonValue, shown)}, *request.messages[1:]])


def instructions(material: JudgeMaterial) -> str:
    """What the judge is told, whatever the case."""
    texts = [prompt("judge").text] + ([prompt("conventions").text] if material.wants_conventions else [])
    return "\n\n".join(texts)


def prompt_version(material: JudgeMaterial) -> str:
    """The versions of all prompts that take part."""
    names = ["judge", *(["conventions"] if material.wants_conventions else []), "repair"]
    return "+".join(prompt(name).version for name in names)


def judgement_key(material: JudgeMaterial, settings: JudgeSettings, slot: Slot) -> str:
    """The judgement's id: what is judged, by which words, by whom. The same key is never paid for twice."""
    seen = [settings.text_budget_chars, settings.transcript_budget_chars, settings.native_budget_bytes]
    who = [slot.model, slot.number, slot.repeat, settings.effort, settings.max_native]
    parts = [material.digest, question_text(material.case), prompt_version(material), seen, who]
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def case_text(case: Case, questions: Questions) -> str:
    """The case and its questions, one per line where the text allows."""
    parts = ["# The case", "## The task the agent was given", indented(case.prompt)]
    if case.expected_output:
        parts += ["## What a good result is, in the words of the case's author", indented(case.expected_output)]
    parts += ["## Statements to decide"]
    parts += [f"[{id_}] {flat(asked.text)}" for id_, asked in questions.statements.items()]
    if questions.criteria:
        parts += ["## Criteria to score from 1 to 5"]
        parts += [f"[{id_}] {flat(c.criterion)}: {flat(c.description or '')}" for id_, c in questions.criteria.items()]
    if questions.dimensions:
        parts += ["## Dimensions to score from 1 to 5"]
        parts += [dimension_text(id_, dimension) for id_, dimension in questions.dimensions.items()]
    if questions.checks:
        parts += ["## Checks that code decides; only for remarks"]
        parts += [f"[{id_}] {flat(check.description or check.type)}" for id_, check in questions.checks.items()]
    return "\n\n".join(parts)


def dimension_text(id_: str, dimension: Dimension) -> str:
    """A dimension with its anchors, lowest first."""
    anchors = [f"    {score}: {flat(text)}" for score, text in sorted(dimension.scoring.items())]
    return "\n".join([f"[{id_}] {flat(dimension.name)}: {flat(dimension.description or '')}", *anchors])


def indented(text: str) -> str:
    """A text set off from ours, so that its own headings are not ours."""
    return "\n".join(f"> {line}" for line in text.splitlines()) or "> (empty)"


def flat(text: str) -> str:
    """A text on one line."""
    return " ".join(text.split())
