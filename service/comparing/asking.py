"""Puts a question to a model once: a kept answer is found, an unusable one gets one chance of repair."""

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, Protocol, TypeVar

from pydantic import JsonValue

from schemas.base import Word
from schemas.states import Outcome
from service.errors import StageFailed
from service.judging.answers import Unusable
from service.judging.native_tokens import native_tokens
from service.judging.prompts import prompt
from service.judging.request import CHARS_PER_TOKEN
from service.limits.hook import text_length
from service.limits.port import Purpose
from service.models.port import Answer, Call, Models

T = TypeVar("T")
MAX_REPEATED_CHARS = 60_000  # of an unusable answer that is shown again
# These end more than one question: the money is spent, or somebody stopped us.
ENDING = (Outcome.OVER_BUDGET, Outcome.CANCELLED)


@dataclass(frozen=True)
class Question(Generic[T]):
    """The body of a request, and how to read what comes back."""

    params: Mapping[str, JsonValue]
    prompt_version: str
    read: Callable[[str], T]  # raises Unusable
    label: str = ""  # tells gateways and the simulator what it is about

    @cached_property
    def id(self) -> str:
        """Everything that is asked, by which words and of whom: the same question is never paid for twice."""
        asked = json.dumps([self.params, self.prompt_version], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(asked.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def model(self) -> str:
        """Who is asked."""
        return str(self.params["model"])


class KeptAnswer(Word):
    """What came back, and what it took; `failure` says in a sentence that nothing usable did."""

    text: str
    failure: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0  # None: the price of the model is not known
    simulated: bool = False
    calls: int = 1


class AnswerStore(Protocol):
    """Keeps answers by id."""

    def get(self, answer_id: str) -> KeptAnswer | None:
        """The answer, if it was given before."""

    def put(self, answer_id: str, model: str, prompt_version: str, answer: KeptAnswer) -> None:
        """Keep it; a second one under the same id changes nothing."""


@dataclass(frozen=True)
class Told(Generic[T]):
    """An answer that was read; `value` is None when there was nothing usable."""

    value: T | None
    kept: KeptAnswer


@dataclass
class Asking:
    """For whom questions are asked; safe to use from many threads."""

    models: Callable[[], Models]
    store: AnswerStore
    purpose: Purpose
    team: str
    account: str  # the batch or comparison the ledger writes it down for
    timeout_seconds: float = 300.0
    is_cancelled: Callable[[], bool] = field(default=lambda: False)
    paid: int = 0  # answers that were asked for now, not found
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _under_way: dict[str, threading.Lock] = field(default_factory=dict)

    def ask(self, question: Question[T]) -> Told[T]:
        """The answer, found or asked for; raises Unavailable, and StageFailed when nothing more can be asked."""
        with self._turn(question.id):
            kept = self.store.get(question.id) or self.store.get(self._failure_id(question))
            if kept is None:
                kept = self._asked(question)
                place = self._failure_id(question) if kept.failure else question.id
                self.store.put(place, question.model, question.prompt_version, kept)
        return Told(None if kept.failure else question.read(kept.text), kept)

    def _turn(self, question_id: str) -> threading.Lock:
        """One at a time for each question: runs with the same results ask the same, often at the same moment."""
        with self._lock:
            return self._under_way.setdefault(question_id, threading.Lock())

    def found(self, question: Question[T]) -> Told[T] | None:
        """The answer if it is kept; nothing is asked."""
        kept = self.store.get(question.id) or self.store.get(self._failure_id(question))
        return None if kept is None else Told(None if kept.failure else question.read(kept.text), kept)

    def _failure_id(self, question: Question[Any]) -> str:
        """A failure counts here and now; whoever asks for another account may have more luck."""
        return hashlib.sha256(f"{question.id}:{self.account}".encode()).hexdigest()

    def _asked(self, question: Question[T]) -> KeptAnswer:
        answers: list[Answer] = []
        try:
            self._try(question, answers)
        except Unusable as complaint:
            return _kept(answers, f"{complaint.reason}: unusable after one repair: {complaint}"[:600])
        except StageFailed as failure:
            if failure.outcome in ENDING:
                raise
            return _kept(answers, str(failure)[:600])
        return _kept(answers)

    def _try(self, question: Question[T], answers: list[Answer]) -> None:
        """Ask, and once more with the exact complaint; `answers` grows."""
        answers.append(self._complete(question))
        try:
            question.read(_usable(answers[-1]))
        except Unusable as complaint:
            again = repaired(question, answers[-1].text, complaint)
            answers.append(self._complete(again))
            question.read(_usable(answers[-1]))

    def _complete(self, question: Question[T]) -> Answer:
        call = Call(
            params=question.params,
            purpose=self.purpose,
            team=self.team,
            batch_id=self.account,
            label=question.label,
            input_tokens=estimated_tokens(question.params),
            timeout_seconds=self.timeout_seconds,
            is_cancelled=self.is_cancelled,
        )
        answer = self.models().complete(call)
        with self._lock:
            self.paid += 1
        return answer


def _usable(answer: Answer) -> str:
    if answer.stop_reason == "refusal":
        raise StageFailed(Outcome.REFUSED, f"{answer.model} declined to answer")
    if answer.stop_reason == "max_tokens":
        raise Unusable("truncated", ["it was cut off; be shorter"])
    return answer.text


def _kept(answers: list[Answer], failure: str | None = None) -> KeptAnswer:
    costs = [answer.cost_usd for answer in answers]
    return KeptAnswer(
        text=answers[-1].text if answers else "",
        failure=failure,
        input_tokens=sum(answer.tokens.total - answer.tokens.output for answer in answers),
        output_tokens=sum(answer.tokens.output for answer in answers),
        cost_usd=None if None in costs else float(sum(cost or 0.0 for cost in costs)),
        simulated=any(answer.simulated for answer in answers),
        calls=len(answers),
    )


def repaired(question: Question[T], said: str, complaint: Unusable) -> Question[T]:
    """The question once more, with the unusable answer and what is wrong with it."""
    complaints = "\n".join(f"- {line}" for line in complaint.complaints)
    messages = question.params["messages"]
    assert isinstance(messages, list)
    told: list[JsonValue] = [
        {"role": "assistant", "content": said[:MAX_REPEATED_CHARS].strip() or "(no answer)"},
        {"role": "user", "content": prompt("repair").text.replace("{complaints}", complaints)},
    ]
    return replace(question, params={**question.params, "messages": [*messages, *told]})


def estimated_tokens(params: Mapping[str, Any]) -> int:
    """About how many tokens go in."""
    blocks = [block for message in params["messages"] for block in message["content"] if isinstance(block, dict)]
    natives = sum(native_tokens(block) for block in blocks if block.get("type") in ("image", "document"))
    return int(text_length(params) / CHARS_PER_TOKEN) + natives
