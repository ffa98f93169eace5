"""The `coverage` of a benchmark: how many runs were meant, how many count, and what became of the others."""

from collections import Counter

from pydantic import JsonValue

from schemas.states import Outcome
from service.aggregation.records import COUNTED, BatchPlan
from service.aggregation.tallies import Tallies, Tally


def planned_runs(tallies: Tallies, plan: BatchPlan, configuration: str) -> int:
    """Runs this configuration should have: by the plan, or else as many as were seen."""
    seen = tallies.configurations.get(configuration, Tally()).runs
    if plan.cases is None or plan.runs_per_configuration is None:
        return seen
    return max(seen, len(plan.cases) * plan.runs_per_configuration)


def coverage(tallies: Tallies, plan: BatchPlan) -> dict[str, JsonValue]:
    """Planned, scored and every other outcome, in all and per configuration; and which cases can be compared."""
    configurations = list(dict.fromkeys([*(arm.configuration for arm in plan.arms), *tallies.configurations]))
    per_arm = {name: _arm(tallies.configurations.get(name, Tally()), tallies, plan, name) for name in configurations}
    return {
        **_sums(list(per_arm.values())),
        "simulated": tallies.simulated,
        "cost_usd": None if tallies.spent_usd is None else round(tallies.spent_usd, 6),
        "cases": _cases(tallies, plan),
        "configurations": dict(per_arm),
        "unlisted_items": sum(case.unlisted_items for case in tallies.cases.values()),
    }


def _arm(tally: Tally, tallies: Tallies, plan: BatchPlan, configuration: str) -> dict[str, JsonValue]:
    planned = planned_runs(tallies, plan, configuration)
    used = tally.skill_used
    return {
        "planned": planned,
        "settled": tally.runs,
        "counted": tally.counted,
        "not_counted": planned - tally.counted,
        "outcomes": {outcome.value: tally.outcomes[outcome] for outcome in Outcome if tally.outcomes[outcome]},
        "judge_errors": dict(sorted(tally.judge_errors.items())),
        "skill_used": {"yes": used[True], "no": used[False], "unknown": used[None]},
    }


def _sums(arms: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    totals: dict[str, JsonValue] = {
        key: sum(value for arm in arms if isinstance(value := arm[key], int))
        for key in ("planned", "settled", "counted", "not_counted")
    }
    outcomes: dict[str, JsonValue] = {}
    for outcome in Outcome:
        found = [arm["outcomes"] for arm in arms]
        number = sum(int(str(group.get(outcome.value, 0))) for group in found if isinstance(group, dict))
        if number or outcome in COUNTED:
            outcomes[outcome.value] = number
    return {**totals, "outcomes": outcomes, "judge_errors": _reasons(arms)}


def _reasons(arms: list[dict[str, JsonValue]]) -> dict[str, JsonValue]:
    """Why judgements failed, over all configurations."""
    total: Counter[str] = Counter()
    for arm in arms:
        found = arm["judge_errors"]
        total.update({reason: int(str(number)) for reason, number in found.items()} if isinstance(found, dict) else {})
    return dict(sorted(total.items()))


def outcome_words(found: dict[str, JsonValue]) -> list[str]:
    """Every outcome of a coverage with its number, judge errors with reasons: 2 judge_error (1 control, 1 ids)."""
    outcomes, reasons = found["outcomes"], found["judge_errors"]
    if not isinstance(outcomes, dict) or not isinstance(reasons, dict):
        return []
    why = ", ".join(f"{number} {reason}" for reason, number in reasons.items())
    told = {Outcome.JUDGE_ERROR.value: f" ({why})"} if why else {}
    return [f"{number} {name}{told.get(name, '')}" for name, number in outcomes.items() if number]


def _cases(tallies: Tallies, plan: BatchPlan) -> dict[str, JsonValue]:
    """How many cases can be compared, and in which arm the others are missing."""
    found = {"total": len(tallies.cases), "paired": 0, "treatment_only": 0, "control_only": 0, "neither": 0}
    names = {(True, True): "paired", (True, False): "treatment_only", (False, True): "control_only"}
    for case in tallies.cases.values():
        one, zero = (case.tally(arm) for arm in (plan.treatment, plan.control))
        found[names.get((bool(one and one.counted), bool(zero and zero.counted)), "neither")] += 1
    return dict(found)
