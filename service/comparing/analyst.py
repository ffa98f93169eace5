"""The analyst of a finished batch: notes beside those of the rules, and feedback merged into actions.

What it fails at is left out and said in the provenance: the rules' own notes and groups always stand.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from service import log
from service.aggregation import analyst as rules
from service.aggregation.benchmark import Aggregates
from service.aggregation.feedback import Group
from service.comparing.asking import AnswerStore, Asking, Question, Told
from service.errors import AssayError
from service.limits.port import Purpose
from service.models.port import Models

Json = dict[str, JsonValue]


@dataclass(frozen=True)
class Analyst:
    """Asks two questions about a batch, once each; later looks find the answers."""

    models: Callable[[], Models]
    answers: AnswerStore
    timeout_seconds: float

    def added(self, found: Aggregates, batch_id: str, team: str, model: str, may_ask: bool) -> Aggregates:
        """The aggregate with what the analyst says of it; without leave to ask, with what is kept."""
        asking = Asking(self.models, self.answers, Purpose.ANALYZE, team, batch_id, self.timeout_seconds)
        tell = _Teller(asking, may_ask)
        notes, about_notes = _notes(found, tell, model)
        about_feedback = _merge(found, tell, model)
        about: Json = {"model": model, "prompt_version": rules.VERSION, "notes": about_notes}
        about |= {"feedback": about_feedback, "simulated": tell.simulated}
        provenance = {**found.plan.provenance, "analyst": about}
        plan = replace(found.plan, analyzer_model=model if tell.answered else None, provenance=provenance)
        return replace(found, plan=plan, extra_notes=notes)


@dataclass
class _Teller:
    """Gets one answer, or a sentence why there is none."""

    asking: Asking
    may_ask: bool
    answered: bool = False
    simulated: bool = False

    def __call__(self, params: dict[str, Any], label: str) -> tuple[str | None, str]:
        question: Question[str] = Question(params, rules.VERSION, lambda text: text, label)
        try:
            told: Told[str] | None = self.asking.ask(question) if self.may_ask else self.asking.found(question)
        except AssayError as error:
            log.warning("the analyst did not answer, the rules' notes stand", question=label, reason=str(error))
            return None, f"not answered: {error}"
        if told is None:
            return None, "not asked"
        self.simulated = self.simulated or told.kept.simulated
        if told.value is None:
            return None, f"not answered: {told.kept.failure}"
        self.answered = True
        return told.value, "answered"


def _notes(found: Aggregates, tell: _Teller, model: str) -> tuple[list[str], Json]:
    if not found.tallies.cases or not found.runs.count:
        return [], {"state": "not asked: no run was scored"}
    answer, state = tell(rules.notes_request(found, model), "notes")
    accepted, refused = rules.accepted_notes(answer, found) if answer is not None else ([], [])
    return accepted, {"state": state, "accepted": len(accepted), "refused": len(refused)}


def _merge(found: Aggregates, tell: _Teller, model: str) -> Json:
    groups: list[Group] = found.suggestions.groups()
    if not groups:
        return {"state": "not asked: the judges suggested nothing"}
    answer, state = tell(rules.merge_request(groups, model), "feedback")
    merged = rules.merged(answer, groups) if answer is not None else None
    if merged is None:
        return {"state": state if answer is None else "refused: a group was lost, repeated or invented"}
    found.suggestions.merged = merged
    return {"state": state, "groups": len(groups), "merged_into": len(merged)}
