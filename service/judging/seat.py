"""One seat of the panel: ask, read, repair once."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from service.errors import Unavailable
from service.judging.answers import Unusable, read_answer
from service.judging.judgement import (
    Ask,
    FirstAnswer,
    JudgeAnswer,
    JudgeFailed,
    JudgementStore,
    SlotJudgement,
    TokensUsed,
    total_cost,
)
from service.judging.prompts import prompt
from service.judging.request import JudgeRequest, without_natives
from service.judging.verdict import Verdict
from service.models.port import RequestRefused

MAX_REPEATED_CHARS = 60_000  # of an unusable answer that is shown to the judge again


def slot_judgement(request: JudgeRequest, ask: Ask, store: JudgementStore) -> SlotJudgement:
    """One seat's judgement: found, or asked for and kept."""
    found = store.get(request.id)
    if isinstance(found, SlotJudgement):
        return found
    made = ask_once_or_twice(request, ask, store, found)
    store.put(made)
    return made


def ask_once_or_twice(
    request: JudgeRequest, ask: Ask, store: JudgementStore, kept: FirstAnswer | None = None
) -> SlotJudgement:
    """Ask; an unusable answer gets one chance of repair with the exact complaint."""
    taken, first = asked_before(request, kept) if kept else ask_as_taken(request, ask)
    left_out = taken is not request
    try:
        return judged(taken, read(taken, first), [first], left_out)
    except Unusable as complaint:
        second = ask_for_repair(repaired(taken, first, complaint), ask, store, first_answer(request, first, left_out))
        return judged(taken, read_last(taken, second), [first, second], left_out)


def ask_for_repair(request: JudgeRequest, ask: Ask, store: JudgementStore, first: FirstAnswer) -> JudgeAnswer:
    """The second answer; when it has to wait the first one is kept, so that nobody pays for it again."""
    try:
        return ask(request)
    except Unavailable:
        store.put_first(first)
        raise


def first_answer(request: JudgeRequest, answer: JudgeAnswer, left_out: bool) -> FirstAnswer:
    """What is kept of an answer that is to be repaired."""
    version = request.prompt_version
    return FirstAnswer(
        id=request.id, model=request.slot.model, prompt_version=version, natives_left_out=left_out, answer=answer
    )


def asked_before(request: JudgeRequest, kept: FirstAnswer) -> tuple[JudgeRequest, JudgeAnswer]:
    """The request as it was taken then, and its answer."""
    named = without_natives(request) if kept.natives_left_out else None
    return named or request, kept.answer


def ask_as_taken(request: JudgeRequest, ask: Ask) -> tuple[JudgeRequest, JudgeAnswer]:
    """The answer, and the request as it was taken: a broken image of the agent's must not void its run's judgement."""
    try:
        return request, ask(request)
    except RequestRefused:
        named = without_natives(request)
        if named is None:
            raise
        return named, ask(named)


def read(request: JudgeRequest, answer: JudgeAnswer) -> Verdict:
    """The verdict in an answer; Unusable can be repaired, JudgeFailed cannot."""
    if answer.stop_reason == "refusal":
        raise JudgeFailed("refusal", f"{request.slot.model} declined to judge")
    if answer.stop_reason == "model_context_window_exceeded":
        knobs = "lower ASSAY_JUDGE_TEXT_CHARS or ASSAY_JUDGE_TRANSCRIPT_CHARS"
        raise JudgeFailed("too_long", f"the material does not fit {request.slot.model}; {knobs}")
    if answer.stop_reason == "max_tokens":
        raise Unusable("truncated", [f"it was cut off after {request.max_tokens} tokens; be shorter"])
    verdict, controls = read_answer(answer.text, request.questions)
    check_controls(request, controls)
    return verdict


def read_last(request: JudgeRequest, answer: JudgeAnswer) -> Verdict:
    """The verdict in the repaired answer; there is no third chance."""
    try:
        return read(request, answer)
    except Unusable as complaint:
        raise JudgeFailed(complaint.reason, f"unusable after one repair: {complaint}"[:600]) from complaint


def check_controls(request: JudgeRequest, said: dict[str, bool]) -> None:
    """Void a judgement that got the control statements wrong: whoever wrote it did not read, or was talked into it."""
    truth = {id_: control.phrase == request.true_control for id_, control in request.questions.controls.items()}
    if said != truth:
        raise JudgeFailed("control", f"{request.slot.model} answered the control statements wrongly")


def repaired(request: JudgeRequest, answer: JudgeAnswer, complaint: Unusable) -> JudgeRequest:
    """The request once more, with the unusable answer and what is wrong with it."""
    complaints = "\n".join(f"- {line}" for line in complaint.complaints)
    told: list[dict[str, JsonValue]] = [
        {"role": "assistant", "content": answer.text[:MAX_REPEATED_CHARS].strip() or "(no answer)"},
        {"role": "user", "content": prompt("repair").text.replace("{complaints}", complaints)},
    ]
    more = request.max_tokens * 2 if complaint.reason == "truncated" else request.max_tokens
    return replace(request, messages=[*request.messages, *told], max_tokens=more)


def judged(
    request: JudgeRequest, verdict: Verdict, answers: Sequence[JudgeAnswer], left_out: bool = False
) -> SlotJudgement:
    """A judgement with what it took."""
    tokens = TokensUsed()
    for answer in answers:
        tokens = tokens.plus(answer.tokens)
    return SlotJudgement(
        id=request.id,
        model=request.slot.model,
        number=request.slot.number,
        repeat=request.slot.repeat,
        prompt_version=request.prompt_version,
        verdict=verdict,
        tokens=tokens,
        seconds=sum(answer.seconds for answer in answers),
        cost_usd=total_cost([answer.cost_usd for answer in answers]),
        calls=len(answers),
        natives_left_out=left_out,
        simulated=any(answer.simulated for answer in answers),
    )
