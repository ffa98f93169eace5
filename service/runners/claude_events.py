"""Reading what the command line says about its work: one JSON object a line."""

from typing import Any

from service.models.clean_text import read_json
from service.runners import arms
from service.runners.port import Assignment
from service.runners.skill_watch import SkillWatch
from service.runners.toolbox import NAMES
from service.runners.transcript import Transcript

MAX_RESULT_CHARS = 40_000


class Events:
    """The transcript and the counts of one run, from its events; unknown events are passed over."""

    def __init__(self, assignment: Assignment, watch: SkillWatch) -> None:
        skill = assignment.skill
        self._skill = skill.name if skill else None
        self.watch = watch
        self.transcript = Transcript(assignment.prompt, assignment.inputs, self._skill)
        self.counts: dict[str, int] = dict.fromkeys(NAMES, 0)
        self.errors = 0
        self.turns = 0
        self.program = "claude code"
        self.skills: tuple[str, ...] = ()  # what the program listed
        self.has_ended = False
        self.has_failed = False
        self.error: str | None = None
        self._asked: dict[str, dict[str, Any]] = {}  # tool uses without a result yet
        self._message: str | None = None  # the answer whose blocks are being gathered
        self._blocks: list[dict[str, Any]] = []

    def read(self, output: bytes) -> None:
        """Everything the program wrote."""
        for line in output.splitlines():
            try:
                event = read_json(line)
            except ValueError:
                continue  # a warning between the events, or the line at which output was cut
            if isinstance(event, dict):
                self._event(event)
        self._end_turn()

    def _event(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "assistant":
            self._said(event.get("message") or {})
        elif kind == "user":
            self._answered((event.get("message") or {}).get("content"))
        elif kind == "result":
            self._ended(event)
        elif kind == "system" and event.get("subtype") == "init":
            self.program = f"claude code {event.get('claude_code_version', '')}".strip()
            self.skills = tuple(str(name) for name in event.get("skills") or ())

    def _said(self, message: dict[str, Any]) -> None:
        if message.get("id") != self._message:
            self._end_turn()
            self._message = message.get("id")
        self._blocks += [block for block in message.get("content") or [] if isinstance(block, dict)]

    def _end_turn(self) -> None:
        """The blocks of one answer come as events of their own; together they are one turn."""
        if not self._blocks:
            return
        self.turns += 1
        self.transcript.turn(self._blocks)
        for block in self._blocks:
            if block.get("type") == "tool_use":
                self._asked[str(block.get("id"))] = block
        self._blocks, self._message = [], None

    def _answered(self, content: Any) -> None:
        self._end_turn()
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_result":
                self._result(block)
            elif block.get("type") == "text":
                # What a skill brings into the conversation comes as a text of the user's.
                self.watch.see("Skill", {}, block.get("text") or "")
                self.transcript.event("added", text=arms.without_canary(block.get("text") or "")[:MAX_RESULT_CHARS])

    def _result(self, block: dict[str, Any]) -> None:
        use = self._asked.pop(str(block.get("tool_use_id")), {})
        name, asked = str(use.get("name", "unknown")), use.get("input") or {}
        text, is_error = _text(block.get("content")), bool(block.get("is_error"))
        self.watch.see(name, asked, text, is_error)
        if name == "Skill" and not is_error and self._skill in (asked.get("skill"), asked.get("command")):
            self.watch.opened("SKILL.md")
        self.counts[name] = self.counts.get(name, 0) + 1
        self.errors += is_error
        self.transcript.tool(name, asked, arms.without_canary(text)[:MAX_RESULT_CHARS], is_error)

    def _ended(self, event: dict[str, Any]) -> None:
        self.has_ended = True
        self.has_failed = bool(event.get("is_error")) or event.get("subtype") != "success"
        if self.has_failed:
            self.error = str(event.get("result") or event.get("errors") or event.get("subtype"))[:300]
        facts = ("subtype", "stop_reason", "num_turns", "total_cost_usd", "duration_ms")
        self.transcript.event("result", **{name: event.get(name) for name in facts})


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", f"({part.get('type')})")) for part in parts if isinstance(part, dict))
