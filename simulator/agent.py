"""A plausible agent by seeded rules: reads the skill it is offered, reads its inputs, writes the files asked for.

What it writes is made of the prompt's words and of what it has read; so a skill that names the right things shows
up in the files, and a run without it is poorer. Nothing here knows what will be checked.
"""

import json
import random
import re
from typing import Any

from simulator.conversation import Conversation, OfferedSkill
from simulator.draw import drawn

FILE_NAME = re.compile(
    r"(?<![\w/@:.])((?:[\w-]+/)*[\w-]+\.(?:md|txt|csv|json|html|py|tsx?|jsx?|sql|ya?ml|xml|svg|sh|toml|css))\b"
)
LESSON = re.compile(r"^\s*(?:\d+\t|\s*\d+→)?\s*(?:[-*#]+|\d+[.)])\s+(.{3,200})$", re.M)
REMEMBERED = 0.9  # share of the lessons that make it into a file
MAX_LESSONS = 60

Turn = dict[str, Any]


def next_turn(asked: Conversation, seed: int) -> Turn:
    """What the agent does now, from what it has done so far."""
    turns = _plan(asked, drawn(seed, asked.prompt, bool(asked.skills), asked.run))
    return turns[asked.turn] if asked.turn < len(turns) else {"text": "The task is done."}


def _plan(asked: Conversation, rng: random.Random) -> list[Turn]:
    turns: list[Turn] = []
    skill = _fitting_skill(asked)
    if skill:
        turns.append({"text": "There is a skill for this; I will read it first.", "tools": [_open(asked, skill)]})
    if asked.input_files and "Read" in asked.tools:
        reads = [{"name": "Read", "input": {"file_path": name}} for name in asked.input_files[:3]]
        turns.append({"text": "I will look at the input files.", "tools": reads})
    names = wanted_files(asked) or ["result.md"]
    writes = [{"name": "Write", "input": {"file_path": name, "content": _content(name, asked, rng)}} for name in names]
    if rng.random() < 0.3:
        notes = "# Notes\n\n## Uncertainty\n- The task leaves room for interpretation.\n"
        writes.append({"name": "Write", "input": {"file_path": "user_notes.md", "content": notes}})
    turns.append({"text": f"I will write {', '.join(names)}.", "tools": writes})
    turns.append({"text": f"Done. I have written {', '.join(names)} as asked."})
    return turns


def _open(asked: Conversation, skill: OfferedSkill) -> dict[str, Any]:
    if skill.path is None and "Skill" in asked.tools:
        return {"name": "Skill", "input": {"skill": skill.name}}
    return {"name": "Read", "input": {"file_path": skill.path or f"{skill.name}/SKILL.md"}}


def _fitting_skill(asked: Conversation) -> OfferedSkill | None:
    """The offered skill that shares most words with the prompt; one with a path is the run's own and always fits."""
    words = _words(asked.prompt)
    fits = {skill: len(words & _words(f"{skill.name} {skill.about}")) for skill in asked.skills}
    best = max(fits, key=lambda skill: (fits[skill], skill.path is not None), default=None)
    return best if best and (best.path or fits[best] > 1) else None


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))


def wanted_files(asked: Conversation) -> list[str]:
    """The files the prompt names that are not there yet, in order, each once, at most eight."""
    task = asked.prompt.split("Input files")[0]
    given = {name.rsplit("/", 1)[-1] for name in asked.input_files}
    names = [name for name in FILE_NAME.findall(task) if name.rsplit("/", 1)[-1] not in given]
    return list(dict.fromkeys(names))[:8]


def _content(name: str, asked: Conversation, rng: random.Random) -> str:
    lessons = [lesson for lesson in _lessons(asked) if rng.random() < REMEMBERED]
    task = " ".join(asked.prompt.split("Input files")[0].split())[:600]
    if name.endswith(".json"):
        return json.dumps({"task": task, "notes": lessons}, indent=2) + "\n"
    if name.endswith(".csv"):
        return "number,note\n" + "".join(f'{i},"{x.replace(chr(34), chr(39))}"\n' for i, x in enumerate(lessons, 1))
    if name.endswith((".py", ".sh", ".yaml", ".yml", ".toml")):
        return "".join(f"# {line}\n" for line in [task, *lessons])
    return f"# {name}\n\n{task}\n\n" + "".join(f"- {lesson}\n" for lesson in lessons)


def _lessons(asked: Conversation) -> list[str]:
    found = [lesson.strip() for lesson in LESSON.findall(asked.learned)]
    return list(dict.fromkeys(found))[:MAX_LESSONS]
