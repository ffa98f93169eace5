"""The run's material as content blocks: fenced text, images and PDFs in their own form, the rest by name."""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.base import Node
from service.judging.fences import Fence, fence_for, quoted
from service.judging.inlining import shares, shortened
from service.judging.material import JudgeMaterial, OutputFile
from service.judging.media import Shown, media_type, shown_as
from service.judging.questions import Questions
from service.judging.settings import JudgeSettings

Block = dict[str, JsonValue]
MAX_LISTED = 1_000  # files that are named at all
NOTES_CHARS = 20_000
FACTS_CHARS = 40_000


@dataclass(frozen=True)
class Text:
    """A text output, decoded."""

    file: OutputFile
    text: str


def evidence_blocks(material: JudgeMaterial, questions: Questions, settings: JudgeSettings) -> list[Block]:
    """Everything the judge sees of the run, ending with the line the control statements are about."""
    texts = [Text(file, decoded(file)) for file in material.outputs if how(file) is Shown.TEXT]
    written = [material.transcript or "", material.user_notes or "", *(text.text for text in texts)]
    fence = fence_for(material, [*written, *(file.path for file in material.outputs)])
    blocks = [text_block("\n\n".join(opening(material, fence, settings)))]
    blocks += file_blocks(material, texts, fence, settings)
    return [*blocks, text_block(closing(material, questions))]


def opening(material: JudgeMaterial, fence: Fence, settings: JudgeSettings) -> Iterator[str]:
    """What comes before the files."""
    yield f"# The run's material\n\nThe code of the fences in this run is {fence.code}."
    if material.structural:
        yield fence.around("structural results, decided by code", structural_text(material))
    for name, document in (("metrics", material.metrics), ("timing", material.timing)):
        if document:
            yield fence.around(name, compact(document))
    if material.user_notes:
        yield fence.around("notes of the agent", shortened(material.user_notes, NOTES_CHARS))
    transcript = material.transcript or "(there is no transcript)"
    yield fence.around("transcript", shortened(transcript, settings.transcript_budget_chars))
    yield fence.around("list of the files", listing(material.outputs))


def file_blocks(material: JudgeMaterial, texts: list[Text], fence: Fence, settings: JudgeSettings) -> Iterator[Block]:
    """The files themselves: texts in one block, then images and PDFs, each with its label."""
    most = shares([len(text.text) for text in texts], settings.text_budget_chars)
    shown = [
        fence.around(f"file {quoted(text.file.path)}", shortened(text.text, chars))
        for text, chars in zip(texts, most, strict=True)
        if chars > 0 or not text.text
    ]
    if shown:
        yield text_block("\n\n".join(shown))
    left_out = len(texts) - len(shown)
    if left_out:
        yield text_block(f"{left_out} text files of the list are not shown: there was no room.")
    for file in natives(material, settings):
        yield text_block(f"The next block is the file {quoted(file.path)}; it is evidence, as if fenced.")
        yield native_block(file)


def natives(material: JudgeMaterial, settings: JudgeSettings) -> list[OutputFile]:
    """The images and PDFs that fit the budget, in the order of the list."""
    chosen: list[OutputFile] = []
    left = settings.native_budget_bytes
    for file in material.outputs:
        if how(file) in (Shown.IMAGE, Shown.DOCUMENT) and file.size <= left and len(chosen) < settings.max_native:
            chosen.append(file)
            left -= file.size
    return chosen


def closing(material: JudgeMaterial, questions: Questions) -> str:
    """The last words: which control phrase is true, by a coin that nobody can guess and everybody can check."""
    return f"# End of the material\n\nThe material ends with the words: {true_phrase(material, questions)}"


def true_phrase(material: JudgeMaterial, questions: Questions) -> str:
    """The phrase of the control statement that is true for this run."""
    controls = sorted(questions.controls.items())
    return controls[int(material.digest[0], 16) % len(controls)][1].phrase


def listing(outputs: tuple[OutputFile, ...]) -> str:
    """Every file by name, size and type."""
    lines = [f"{quoted(file.path)}, {file.size:,} bytes, {kind_of(file)}" for file in outputs[:MAX_LISTED]]
    more = [f"and {len(outputs) - MAX_LISTED:,} more files"] if len(outputs) > MAX_LISTED else []
    return "\n".join(lines + more) or "(no files)"


def structural_text(material: JudgeMaterial) -> str:
    """One line per structural result."""
    words = {True: "passed", False: "failed", None: "undecided"}
    checks = material.structural.expectations if material.structural else ()
    lines = [f"{check.id or '-'}: {words[check.passed]}: {check.text} ({check.evidence})" for check in checks]
    return shortened("\n".join(lines) or "(none)", FACTS_CHARS)


def compact(document: Node) -> str:
    """A document's own fields that are there."""
    return shortened(json.dumps(document.model_dump(exclude_none=True, exclude=set(Node.model_fields))), FACTS_CHARS)


def how(file: OutputFile) -> Shown:
    """How a file is shown; one that was not read is only named."""
    return Shown.NAMED if file.data is None else shown_as(file.data)


def kind_of(file: OutputFile) -> str:
    """The type in the list of files."""
    return "too large to be read" if file.data is None else media_type(file.data)


def decoded(file: OutputFile) -> str:
    """The text of a text file."""
    return (file.data or b"").decode("utf-8")


def text_block(text: str) -> Block:
    """Text in the API's form."""
    return {"type": "text", "text": text}


def native_block(file: OutputFile) -> Block:
    """An image or a PDF in the API's form."""
    data = file.data or b""
    kind = "image" if how(file) is Shown.IMAGE else "document"
    encoded = base64.b64encode(data).decode("ascii")
    return {"type": kind, "source": {"type": "base64", "media_type": media_type(data), "data": encoded}}
