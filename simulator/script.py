"""The script a suite can carry: what the simulated model does for which prompt and which arm."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulator.faults import Fault, Match, read_fault, read_match

KEYS = {"version", "skill", "seed", "agent", "judge", "plain", "faults"}


@dataclass(frozen=True)
class AgentPart:
    """What the agent does: one list of turns, or several of which each run gets one."""

    match: Match
    variants: list[list[dict[str, Any]]]


@dataclass(frozen=True)
class JudgePart:
    """What the judge decides: a whole answer, or scores by a part of the id or the statement."""

    match: Match
    answer: Any = None
    scores: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Script:
    """A script, read and checked."""

    agent: tuple[AgentPart, ...] = ()
    judge: tuple[JudgePart, ...] = ()
    plain: tuple[tuple[Match, str], ...] = ()
    faults: tuple[Fault, ...] = ()
    seed: int | None = None


def read_script(value: dict[str, Any]) -> Script:
    """A script from its JSON form; raises ValueError that says where it is wrong."""
    unknown = sorted(set(value) - KEYS)
    if unknown:
        raise ValueError(f"script: unknown key {unknown[0]!r}; known are {', '.join(sorted(KEYS))}")
    skill = value.get("skill")
    return Script(
        tuple(_agent_part(part, skill, f"agent[{i}]") for i, part in enumerate(value.get("agent") or [])),
        tuple(_judge_part(part, skill) for part in value.get("judge") or []),
        tuple((read_match(part.get("match") or {}, skill), str(part["text"])) for part in value.get("plain") or []),
        tuple(read_fault(part, skill) for part in value.get("faults") or []),
        value.get("seed"),
    )


def load_script(path: Path) -> dict[str, Any]:
    """The JSON of a script file, checked; raises ValueError."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"script {path.name} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"script {path.name} is no JSON object")
    read_script(value)
    return value


def _agent_part(part: dict[str, Any], skill: str | None, place: str) -> AgentPart:
    variants = part.get("variants") or [part.get("turns") or []]
    for turns in variants:
        for turn in turns:
            for tool in turn.get("tools") or []:
                if not isinstance(tool.get("name"), str) or not isinstance(tool.get("input"), dict):
                    raise ValueError(f"script: {place}: each tool needs a name and an input object")
    return AgentPart(read_match(part.get("match") or {}, skill), variants)


def _judge_part(part: dict[str, Any], skill: str | None) -> JudgePart:
    match = read_match(part.get("match") or {}, skill)
    return JudgePart(match, part.get("answer"), part.get("scores") or {})
