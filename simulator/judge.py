"""A plausible judge: answers any JSON schema, and decides by how much of a statement is found in what it was shown.

A boolean or a score belongs to the nearest id (or key) above it in the answer. The words of that id's definition are
looked up in the rest of the prompt; the share found, blurred by the seed, decides.
"""

import random
import re
from dataclasses import dataclass
from typing import Any

from simulator import comparator
from simulator.conversation import Conversation
from simulator.draw import drawn

WORD = re.compile(r"[A-Za-z][A-Za-z0-9_-]{3,}")
COMMON = frozenset(
    {"that", "this", "with", "from", "have", "been", "will", "must", "should", "does", "which", "when", "each"}
)
ID_NAMES = ("id", "text", "criterion", "dimension", "name", "expectation", "statement", "claim_id")
BLUR = 0.15
MAX_DEPTH = 12


@dataclass
class Judgement:
    """One answer being made: its schema, what was shown, and the scores a script fixes."""

    schema: dict[str, Any]
    shown: str
    scores: dict[str, Any]
    rng: random.Random

    def value(self, schema: dict[str, Any], name: str, about: str, depth: int = 0) -> Any:
        """A value that follows the schema; `about` is what it is said about."""
        schema = self.resolved(schema)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.chosen(schema["enum"], about)
        if depth > MAX_DEPTH:
            return None
        kind = schema.get("type")
        if kind == "object":
            return self.record(schema, about, depth)
        if kind == "array":
            return self.items(schema, name, about, depth)
        return self.plain(kind, name, about)

    def resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema behind references and alternatives; the first alternative that is not null."""
        for _ in range(MAX_DEPTH):
            if "$ref" in schema:
                schema = (self.schema.get("$defs") or {}).get(str(schema["$ref"]).rsplit("/", 1)[-1], {})
            elif "anyOf" in schema or "oneOf" in schema:
                choices = schema.get("anyOf") or schema["oneOf"]
                schema = next((choice for choice in choices if choice.get("type") != "null"), {"const": None})
            elif len(schema.get("allOf") or []) == 1:
                schema = schema["allOf"][0]
            else:
                break
        return schema

    def record(self, schema: dict[str, Any], about: str, depth: int) -> dict[str, Any]:
        """An object with all its properties; one that carries a fixed id is about that id."""
        properties: dict[str, Any] = schema.get("properties") or {}
        for name in ID_NAMES:
            fixed = self.resolved(properties.get(name) or {})
            if "const" in fixed or len(fixed.get("enum") or []) == 1:
                about = str(fixed.get("const", (fixed.get("enum") or [None])[0]))
                break
        return {
            key: self.value(child, key, about if about else key, depth + 1)
            if self.is_leaf(child) or about
            else self.value(child, key, key, depth + 1)
            for key, child in properties.items()
        }

    def is_leaf(self, schema: dict[str, Any]) -> bool:
        """Whether this is neither an object nor a list."""
        return self.resolved(schema).get("type") not in ("object", "array")

    def items(self, schema: dict[str, Any], name: str, about: str, depth: int) -> list[Any]:
        """A list: one item for each id its items may carry, else as few as allowed."""
        item = self.resolved(schema.get("items") or {})
        key, ids = self.ids_of(item)
        if key is None:
            return [self.value(item, name, about, depth + 1) for _ in range(int(schema.get("minItems") or 0))]
        properties: dict[str, Any] = item["properties"]
        answers = []
        for one in ids:
            rest = {k: self.value(child, k, str(one), depth + 1) for k, child in properties.items() if k != key}
            answers.append({k: one if k == key else rest[k] for k in properties})
        return answers

    def ids_of(self, item: dict[str, Any]) -> tuple[str | None, list[Any]]:
        """Which property names the things to decide, and their names: from the schema, else from the prompt."""
        properties: dict[str, Any] = item.get("properties") or {}
        named = [key for key in properties if key in ID_NAMES or key.endswith("_id")]
        for key in named:
            schema = self.resolved(properties[key])
            if schema.get("enum"):
                return key, list(schema["enum"])
        for key in named:
            if key == "id" or key.endswith("_id"):
                ids = listed_ids(self.shown)
                whole = self.resolved(properties[key]).get("type") == "integer"
                return key, [int(i) for i in ids if i.isdigit()] if whole else ids
        return None, []

    def plain(self, kind: Any, name: str, about: str) -> Any:
        """A boolean, a number or a text."""
        share = self.share(about)
        if kind == "boolean":
            fixed = self.fixed(about)
            return bool(fixed >= 3 if type(fixed) is int else fixed) if fixed is not None else share >= 0.5
        if kind in ("integer", "number"):
            return self.score(about, [1, 2, 3, 4, 5])
        if kind == "null":
            return None
        found = f"{round(share * 100)} % of its words are in what was shown"
        return f"Simulated {name.replace('_', ' ')}: {about or 'the whole'}: {found}."[:400]

    def chosen(self, options: list[Any], about: str) -> Any:
        """One of an enum: numbers are scores, yes/no words verdicts, the rest chance."""
        numbers = sorted(option for option in options if type(option) is int)
        if numbers and len(numbers) == len(options):
            return self.score(about, numbers)
        return options[self.rng.randrange(len(options))]

    def score(self, about: str, numbers: list[int]) -> int:
        """A score from the share of words found."""
        fixed = self.fixed(about)
        if fixed is not None:
            wanted = int(fixed) if type(fixed) is not bool else (numbers[-1] if fixed else numbers[0])
            return min(numbers, key=lambda number: abs(number - wanted))
        return numbers[min(len(numbers) - 1, int(self.share(about) * len(numbers)))]

    def fixed(self, about: str) -> Any:
        """What the script says about this id or its definition."""
        definition = f"{about} {self.definition(about)}".lower()
        return next((value for part, value in self.scores.items() if part.lower() in definition), None)

    def definition(self, about: str) -> str:
        """The line of the prompt that says what this id stands for."""
        if not about:
            return ""
        name = re.escape(about)
        for form in (rf"^\s*[-*]? ?\[{name}\] [^\n]*$", rf"^[^\n]*(?<!\w){name}(?!\w)[^\n]*$"):
            if found := re.search(form, self.shown, re.M):
                return found.group(0)
        return about

    def share(self, about: str) -> float:
        """Which share of the definition's words is found elsewhere in what was shown, blurred."""
        definition = self.definition(about)
        words = {word.lower() for word in WORD.findall(definition)} - COMMON
        rest = self.shown.replace(definition, "", 1).lower() if definition else self.shown.lower()
        share = sum(1 for word in words if word in rest) / len(words) if words else 0.5
        return min(1.0, max(0.0, share + self.rng.uniform(-BLUR, BLUR)))


def listed_ids(shown: str) -> list[str]:
    """Ids that a prompt lists: `[E1] …`, `id="E1"`, `"id": "E1"` or `- E1: …`."""
    for form in (r'\bid="([^"\n]{1,60})"', r'"id": ?"?([^",\n]{1,60}?)"?[,\n}]', r"^\s*[-*]? ?\[([\w.-]{1,40})\]\s"):
        found = re.findall(form, shown, re.M)
        if found:
            return list(dict.fromkeys(found))
    return list(dict.fromkeys(re.findall(r"^\s*[-*] ([A-Z]+\d+):", shown, re.M)))


def judge(asked: Conversation, scores: dict[str, Any], seed: int) -> Any:
    """An answer to the request's schema."""
    schema = asked.schema or {}
    if (compared := comparator.answer(asked, seed)) is not None:
        return compared
    rng = drawn(seed, asked.prompt, asked.run)
    return Judgement(schema, asked.prompt, scores, rng).value(schema, "answer", "")
