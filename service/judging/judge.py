"""The judgement of one run: ask every seat of the panel, then join and score."""

import contextlib
from collections.abc import Sequence

from pydantic import JsonValue

from schemas.grading import Grading
from service.errors import StageFailed, Unavailable
from service.judging.judgement import Ask, FirstAnswer, InLane, Judgement, JudgementStore, SlotJudgement
from service.judging.material import JudgeMaterial
from service.judging.noise import is_sampled
from service.judging.panel import disagreements, join
from service.judging.questions import questions_of
from service.judging.request import Slot, build_request, judgement_key
from service.judging.scoring import grade, label_of, with_grader
from service.judging.seat import slot_judgement
from service.judging.settings import JudgeSettings


def judge(material: JudgeMaterial, settings: JudgeSettings, ask: Ask, store: JudgementStore | None = None) -> Judgement:
    """Judge one run; raises JudgeFailed, OverBudget, RetryLater or Unavailable.

    Repeating is safe and cheap: seats that have answered are found in the store.
    """
    kept = _Counting(store)
    try:
        slots = panel_judgements(material, settings, ask, kept, repeat=0)
    except InLane:
        # The sample travels with the rest: it would take as long again.
        with contextlib.suppress(InLane):
            _rejudge(material, settings, ask, kept)
        raise
    rejudged, failed = _rejudge(material, settings, ask, kept)
    return Judgement(panel_grading(material, settings, slots), slots, rejudged, failed, tuple(kept.paid))


def panel_judgements(
    material: JudgeMaterial, settings: JudgeSettings, ask: Ask, store: JudgementStore, repeat: int
) -> tuple[SlotJudgement, ...]:
    """Every seat's judgement, from the store or asked for; nothing is joined over a seat that is missing."""
    seats = [Slot(model, number, repeat) for number, model in enumerate(settings.models)]
    made: list[SlotJudgement] = []
    under_way: InLane | None = None
    for seat in seats:
        try:
            made.append(slot_judgement(build_request(material, settings, seat), ask, store))
        except InLane as later:
            under_way = later  # the other seats go into the lane too
    if under_way is not None:
        raise under_way
    return tuple(made)


def panel_grading(material: JudgeMaterial, settings: JudgeSettings, slots: Sequence[SlotJudgement]) -> Grading:
    """The panel's grading; who judged, by which prompt, and where they differed travels with it."""
    verdicts = [slot.verdict for slot in slots]
    questions = questions_of(material.case, material.wants_conventions)
    grading = grade(material, questions, join(verdicts), settings.word_target)
    about: dict[str, JsonValue] = {
        "models": [slot.model for slot in slots],
        "prompt_version": slots[0].prompt_version,
        "judgements": [slot.id for slot in slots],
    }
    if any(slot.natives_left_out for slot in slots):
        about["natives_left_out"] = [slot.model for slot in slots if slot.natives_left_out]
    if len(slots) > 1:
        differing = disagreements(verdicts).items()
        about["disagreements"] = {str(label_of(questions, id_)): said for id_, said in differing}
    seconds = round(sum(slot.seconds for slot in slots), 3)
    timing = grading.timing and with_grader(grading.timing, seconds)
    return grading.model_copy(update={"extra": {**grading.extra, "judge": about}, "timing": timing})


def _rejudge(
    material: JudgeMaterial, settings: JudgeSettings, ask: Ask, store: JudgementStore
) -> tuple[tuple[Grading, ...], str | None]:
    """Judge a sampled run once more; that this fails does not change what was judged first."""
    if not settings.rejudge_share or not is_sampled(first_key(material, settings), settings.rejudge_share):
        return (), None
    try:
        again = panel_judgements(material, settings, ask, store, repeat=1)
    except InLane:
        raise
    except (StageFailed, Unavailable) as failure:
        # The run has its judgement: a model that has no time for another one must not take it away again.
        return (), str(failure)
    return (panel_grading(material, settings, again),), None


def first_key(material: JudgeMaterial, settings: JudgeSettings) -> str:
    """The id of the first seat's judgement, by which the sample is drawn."""
    return judgement_key(material, settings, Slot(settings.models[0]))


class _Counting:
    """A store that remembers what was new; without a store behind it, that is all it does."""

    def __init__(self, store: JudgementStore | None) -> None:
        self._store = store
        self.paid: list[SlotJudgement] = []

    def get(self, judgement_id: str) -> SlotJudgement | FirstAnswer | None:
        return self._store.get(judgement_id) if self._store else None

    def put_first(self, first: FirstAnswer) -> None:
        if self._store:
            self._store.put_first(first)

    def put(self, judgement: SlotJudgement) -> None:
        self.paid.append(judgement)
        if self._store:
            self._store.put(judgement)
