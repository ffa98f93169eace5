"""What happened in a run, for people (markdown) and for programs (JSON lines)."""

import json
from dataclasses import dataclass, field
from typing import Any

from service.models.clean_text import clean

MAX_RESULT_CHARS = 20_000  # of one tool result in the markdown; the JSON lines keep what the model saw
SIMULATED = "Simulated: a script or chance answered, no model did."
_FENCE = "```"


@dataclass
class Transcript:
    """Grows while the agent works; can be rendered at any time, also when the run fails."""

    prompt: str
    inputs: tuple[str, ...] = ()
    skill: str | None = None
    steps: list[str] = field(default_factory=list)
    issues: list[str] = field(default_factory=list)
    final: str = ""
    is_simulated: bool = False
    _events: list[str] = field(default_factory=list)
    _turn: int = 0

    def event(self, kind: str, **fields: Any) -> None:
        """One line of the JSON lines."""
        self._events.append(json.dumps({"type": kind, "turn": self._turn, **fields}, ensure_ascii=False))

    def turn(self, content: tuple[dict[str, Any], ...] | list[dict[str, Any]], **facts: Any) -> None:
        """The model said something."""
        self._turn += 1
        self.event("assistant", content=list(content), **facts)
        said = "\n\n".join(str(block["text"]) for block in content if block.get("type") == "text").strip()
        self.final = said or self.final
        self.steps.append(f"### Step {self._turn}" + (f"\n\n{said}" if said else ""))

    def tool(self, name: str, asked: Any, result: str, is_error: bool, seconds: float | None = None) -> None:
        """A tool was used."""
        self.event("tool", name=name, input=asked, result=result, is_error=is_error, seconds=seconds)
        parts = [f"**Tool**: {name}", fenced(_shown(asked), "json")]
        parts += ["**Result**" + (" (error)" if is_error else "") + ":", fenced(shortened(result, MAX_RESULT_CHARS))]
        self.steps.append("\n\n".join(parts))
        if is_error:
            first = result.strip().splitlines()[0] if result.strip() else "no message"
            self.issues.append(f"Step {self._turn}: {name}: {first[:200]}")

    def issue(self, text: str) -> None:
        """Something went wrong that is no tool's error."""
        self.event("issue", text=text)
        self.issues.append(text)

    def markdown(self) -> str:
        """The transcript for people and judges; always starts with the prompt."""
        parts = ["## Eval Prompt", self.prompt]
        parts += ["## Skill", f"Offered: {self.skill}" if self.skill else "None."]
        parts += ["## Input Files", "\n".join(f"- {name}" for name in self.inputs) or "None."]
        parts += ["## Model", SIMULATED] if self.is_simulated else []
        parts += ["## Execution", *self.steps]
        parts += ["## Final Result", self.final or "The agent said nothing."]
        parts += ["## Issues", "\n".join(f"- {issue}" for issue in self.issues) or "None."]
        return str(clean("\n\n".join(parts) + "\n"))

    def json_lines(self) -> bytes:
        """The transcript for programs."""
        first = {"type": "prompt", "turn": 0, "prompt": self.prompt, "inputs": list(self.inputs), "skill": self.skill}
        lines = [json.dumps(first, ensure_ascii=False), *self._events]
        return str(clean("".join(f"{line}\n" for line in lines))).encode()


def fenced(text: str, language: str = "") -> str:
    """A code block that the text cannot close."""
    fence = _FENCE
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def shortened(text: str, most: int) -> str:
    """A text with its middle left out, and said so."""
    if len(text) <= most:
        return text
    head, tail = most * 2 // 3, most // 3
    return f"{text[:head]}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:]}"


def _shown(asked: Any) -> str:
    text = json.dumps(asked, indent=2, ensure_ascii=False)
    return shortened(text, MAX_RESULT_CHARS)
