"""A plausible comparator and analyst: answers to the requests that look at more than one run.

A result is as good as the share of the task's words that it contains, blurred by the seed and the result's own words:
so who wins does not depend on who is shown first. Every sentence says that it is simulated.
"""

import json
import re
from typing import Any

from simulator.conversation import Conversation
from simulator.draw import drawn

PIECE = re.compile(r"<<<(\w+) result ([AB]): ([^\n]*)\n(.*?)\n\1>>>", re.S)
WORD = re.compile(r"[A-Za-z0-9][\w.-]{2,}\w")
BLUR = 0.03
TIE = 0.01  # closer than this is no difference
LABELS = ("A", "B")


def answer(asked: Conversation, seed: int) -> Any:
    """The answer, by the fields that are wanted; None if this is an ordinary judgement."""
    wanted = set((asked.schema or {}).get("properties") or {})
    if {"reasoning", "winner"} <= wanted:
        return _comparison(asked, wanted, seed)
    if {"strengths", "weaknesses", "suggestions"} <= wanted:
        return _analysis(asked, wanted, seed)
    if wanted == {"notes"}:
        return {"notes": _notes(_material(asked))}
    if wanted == {"groups"}:
        return {"groups": _groups(_material(asked))}
    return None


def _comparison(asked: Conversation, wanted: set[str], seed: int) -> dict[str, Any]:
    task = asked.prompt.partition("# The results")[0]
    results = {label: _result(asked.prompt, label) for label in LABELS}
    quality = {label: _quality(task, text, seed) for label, text in results.items()}
    words = " and ".join(f"{label} {round(100 * quality[label])} %" for label in LABELS)
    found: dict[str, Any] = {"reasoning": f"Simulated reasoning: of the task's words, the results contain {words}."}
    if "scores" in wanted:
        names = _properties(asked, "scores")
        found["scores"] = {name: {one: _score(quality[one], 10) for one in LABELS} for name in names}
    else:
        found |= {label: _sheet(quality[label]) for label in LABELS}
    if "expectations" in wanted:
        found["expectations"] = _expectations(asked, results)
    difference = quality["A"] - quality["B"]
    found["winner"] = "TIE" if abs(difference) < TIE else "A" if difference > 0 else "B"
    return found


def _result(shown: str, label: str) -> str:
    pieces = [text for _, one, what, text in PIECE.findall(shown) if one == label and "list of its files" not in what]
    return "\n".join(pieces)


def _quality(task: str, text: str, seed: int) -> float:
    words = {word.lower() for word in WORD.findall(task)}
    share = sum(1 for word in words if word in text.lower()) / len(words) if words else 0.5
    return min(1.0, max(0.0, share + drawn(seed, text).uniform(-BLUR, BLUR)))


def _score(quality: float, most: int) -> int:
    return min(most, 1 + int(quality * most))


def _sheet(quality: float) -> dict[str, Any]:
    score = _score(quality, 5)
    return {
        "content": dict.fromkeys(("correctness", "completeness", "accuracy"), score),
        "structure": dict.fromkeys(("organization", "formatting", "usability"), score),
        "strengths": [f"Simulated strength: {round(100 * quality)} % of the task's words"],
        "weaknesses": [f"Simulated weakness: {100 - round(100 * quality)} % of them are missing"],
    }


def _expectations(asked: Conversation, results: dict[str, str]) -> list[dict[str, Any]]:
    listed = re.findall(r"^\[(E\d+)\] (.*)$", asked.prompt.partition("# The results")[0], re.M)
    return [{"id": one, **{label: _meets(text, results[label]) for label in LABELS}} for one, text in listed]


def _meets(statement: str, result: str) -> bool:
    words = {word.lower() for word in WORD.findall(statement)}
    return sum(1 for word in words if word in result.lower()) * 2 >= len(words) > 0


def _properties(asked: Conversation, name: str) -> list[str]:
    schema = asked.schema or {}
    part = schema["properties"][name]
    if "$ref" in part:
        part = schema["$defs"][str(part["$ref"]).rsplit("/", 1)[-1]]
    return list(part["properties"])


def _analysis(asked: Conversation, wanted: set[str], seed: int) -> dict[str, Any]:
    draw = drawn(seed, asked.prompt)
    found: dict[str, Any] = {
        "strengths": ["Simulated strength: the winner's result contains more of what the task names"],
        "weaknesses": ["Simulated weakness: the loser's result leaves out words of the task"],
    }
    if "instruction_following" not in wanted:
        change = {"area": "content_value", "before": "(simulated) the present words"}
        after = {"after": "(simulated) the task's own words", "reasoning": "Simulated: fewer words would be missing."}
        return {**found, "suggestions": [{**change, **after}]}
    found["instruction_following"] = {
        "winner": {"issues": [], "score": draw.randint(7, 10)},
        "loser": {"issues": ["Simulated issue: a step was skipped"], "score": draw.randint(3, 7)},
    }
    found["transcript_insights"] = {
        "winner_execution_pattern": "Simulated: read the task -> wrote the result",
        "loser_execution_pattern": "Simulated: read the task -> wrote part of the result",
    }
    change = {"category": "instructions", "priority": draw.choice(["high", "medium", "low"])}
    said = {"suggestion": "Simulated: name each part of the result", "expected_impact": "Simulated: fewer left out"}
    return {**found, "suggestions": [{**change, **said}]}


def _material(asked: Conversation) -> dict[str, Any]:
    try:
        found = json.loads(asked.prompt)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _notes(benchmark: dict[str, Any]) -> list[str]:
    """One note per configuration, with a figure as the benchmark has it."""
    notes = []
    for name, figures in (benchmark.get("run_summary") or {}).items():
        rate = figures.get("pass_rate") if isinstance(figures, dict) else None
        if isinstance(rate, dict) and isinstance(rate.get("mean"), int | float):
            notes.append(f"Simulated note: the mean pass rate of {name} is {rate['mean']}.")
    return notes


def _groups(material: dict[str, Any]) -> list[dict[str, Any]]:
    """Suggestions about the same assertion belong together."""
    together: dict[Any, list[dict[str, Any]]] = {}
    for one in material.get("suggestions") or []:
        together.setdefault(one.get("assertion") or ("alone", one["id"]), []).append(one)
    return [
        {"ids": [one["id"] for one in group], "action": f"Simulated action: answer this: {group[0]['reason']}"[:300]}
        for group in together.values()
    ]
