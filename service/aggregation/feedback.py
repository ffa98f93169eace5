"""eval_feedback_aggregate.json: what the judges said about the suite, grouped by meaning."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue
from rapidfuzz import fuzz, process

from schemas.base import CaseId
from schemas.grading import EvalFeedback
from service.aggregation.records import BatchPlan, RunRecord

SAME_ASSERTION = 90.0  # of 100: two quotations of one assertion
ALIKE = 82.0  # of 100: above it two reasons say the same in other words
MOST_GROUPS = 300  # per assertion; what finds no group beyond it is counted only
MOST_IN_ALL = 3_000  # groups of all assertions
LONGEST = 2_000  # characters of a suggestion that are kept
# "S7: Uses fixture factory" and "S7 - …" are about S7.
_ID = re.compile(r"^\s*\[?([A-Za-z]{1,4}-?\d{1,4})\]?\s*(?:[:.)\]–—-]|$)")


@dataclass(slots=True)
class Group:
    """One suggestion in the words of the first run that made it."""

    assertion: str | None
    reason: str
    runs: dict[tuple[CaseId, str], int] = field(default_factory=dict)  # (case, configuration) -> bits of run numbers
    action: str | None = None

    @property
    def frequency(self) -> int:
        """How many runs made it."""
        return sum(bits.bit_count() for bits in self.runs.values())


class FeedbackTally:
    """Suggestions of all runs; grows with what is said, not with who says it again."""

    def __init__(self) -> None:
        self.total_runs = 0
        self.unlisted = 0  # suggestions that found no room
        self._groups = 0
        self._buckets: dict[str, dict[str, Group]] = {}  # assertion -> normalized reason -> group
        self._same: dict[tuple[str, str], Group] = {}  # texts already placed
        self.merged: list[Group] | None = None  # a model's consolidation, if one was asked and kept the rules

    def add(self, record: RunRecord) -> None:
        """Take in what one run's judge said about the suite."""
        self.total_runs += 1
        feedback = record.grading.eval_feedback if record.grading else None
        for assertion, reason in suggestions(feedback):
            group = self._group(assertion, reason[:LONGEST])
            if group is None:
                self.unlisted += 1
                continue
            place = (record.case.id, record.configuration)
            group.runs[place] = group.runs.get(place, 0) | (1 << min(max(record.run_number, 0), 100_000))

    def groups(self) -> list[Group]:
        """All groups, the most frequent first, then as they came."""
        if self.merged is not None:
            return self.merged
        # Two quotations of one assertion lead to the same bucket.
        buckets = {id(bucket): bucket for bucket in self._buckets.values()}.values()
        found = [group for bucket in buckets for group in bucket.values()]
        return sorted(found, key=lambda group: -group.frequency)

    def _group(self, assertion: str | None, reason: str) -> Group | None:
        key, text = _bucket_key(assertion), normalized(reason)
        known = self._same.get((key, text))
        if known is not None:
            return known
        bucket = self._bucket(key, assertion)
        group = _closest(bucket, text)
        if group is None:
            if len(bucket) >= MOST_GROUPS or self._groups >= MOST_IN_ALL:
                return None
            group = bucket[text] = Group(assertion_id(assertion), reason)
            self._buckets.setdefault(key, bucket)
            self._groups += 1
        if len(self._same) < 20 * MOST_GROUPS:
            self._same[key, text] = group
        return group

    def _bucket(self, key: str, assertion: str | None) -> dict[str, Group]:
        """The groups about an assertion; one quoted in full is often quoted a little differently, an id never is."""
        if key in self._buckets or not key or _ID.match(assertion or ""):
            return self._buckets.get(key, {})
        whole = [known for known in self._buckets if " " in known]
        match = process.extractOne(key, whole, scorer=fuzz.ratio, score_cutoff=SAME_ASSERTION)
        return self._buckets[match[0]] if match else {}


def _closest(bucket: Mapping[str, Group], text: str) -> Group | None:
    if text in bucket:
        return bucket[text]
    match = process.extractOne(text, bucket.keys(), scorer=fuzz.token_sort_ratio, score_cutoff=ALIKE)
    return bucket[match[0]] if match else None


def suggestions(feedback: EvalFeedback | None) -> Iterator[tuple[str | None, str]]:
    """(assertion, reason) pairs of one grading; the one text of the cases dialect is one suggestion."""
    if feedback is None:
        return
    for suggestion in feedback.suggestions or ():
        if suggestion.reason.strip():
            yield suggestion.assertion, suggestion.reason.strip()
    if feedback.text and feedback.text.strip():
        yield None, feedback.text.strip()


def assertion_id(assertion: str | None) -> str | None:
    """S7 of 'S7: Uses fixture factory'; an assertion without an id is its own."""
    match = _ID.match(assertion or "")
    return match.group(1) if match else assertion[:LONGEST] if assertion else None


def _bucket_key(assertion: str | None) -> str:
    return normalized(assertion_id(assertion) or "")


def normalized(text: str) -> str:
    """Lower case words without punctuation, so that only words are compared."""
    return " ".join(re.findall(r"\w+", text.lower()))


def feedback_document(tally: FeedbackTally, plan: BatchPlan) -> dict[str, JsonValue]:
    """eval_feedback_aggregate.json."""
    return {
        "skill_name": plan.skill_name,
        "iteration": plan.iteration,
        "total_runs": tally.total_runs,
        "suggestions": [_entry(group) for group in tally.groups()],
        **({"unlisted_suggestions": tally.unlisted} if tally.unlisted else {}),
    }


def _entry(group: Group) -> dict[str, JsonValue]:
    return {
        "frequency": group.frequency,
        "assertion": group.assertion,
        "reason": group.reason,
        "action": group.action,
        "runs": [_place(case, arm, bits) for (case, arm), bits in group.runs.items()],
    }


def _place(case: CaseId, configuration: str, bits: int) -> dict[str, JsonValue]:
    numbers: list[JsonValue] = [number for number in range(bits.bit_length()) if bits >> number & 1]
    return {"eval_id": case, "configuration": configuration, "run_numbers": numbers}
