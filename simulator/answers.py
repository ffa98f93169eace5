"""Turns a request into a message: by the script if it has a part for it, else by the seeded rules."""

import itertools
import json
import posixpath
from dataclasses import dataclass
from typing import Any

from simulator import agent, judge
from simulator.caching import InputUsage, tokens_in
from simulator.conversation import Conversation
from simulator.draw import drawn
from simulator.faults import STOP_REASONS, Fault
from simulator.script import Script

MODEL = "simulated"
PATH_INPUTS = ("file_path", "path")


@dataclass(frozen=True)
class Message:
    """One answer of the model."""

    id: str
    content: list[dict[str, Any]]
    stop_reason: str
    output_tokens: int
    stop_details: dict[str, Any] | None = None

    def as_json(self, used: InputUsage, tier: str = "standard") -> dict[str, Any]:
        """The message in the API's form."""
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": self.content,
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "stop_details": self.stop_details,
            "usage": usage_json(used, self.output_tokens, tier),
        }


def usage_json(used: InputUsage, output_tokens: int, tier: str = "standard") -> dict[str, Any]:
    """Usage in the API's form."""
    return {
        "input_tokens": used.fresh,
        "cache_read_input_tokens": used.read,
        "cache_creation_input_tokens": used.written_5m + used.written_1h,
        "cache_creation": {
            "ephemeral_5m_input_tokens": used.written_5m,
            "ephemeral_1h_input_tokens": used.written_1h,
        },
        "output_tokens": output_tokens,
        "service_tier": tier,
    }


class Model:
    """The simulated model: a script and a seed."""

    def __init__(self, script: Script, seed: int) -> None:
        self.script = script
        self.seed = seed if script.seed is None else script.seed
        self._numbers = itertools.count(1)

    def answer(self, asked: Conversation, fault: Fault | None = None) -> Message:
        """The model's answer, bent by a fault if there is one."""
        turn = self._turn(asked)
        if fault and fault.kind == "malformed" and not fault.body:
            turn = {"text": str(turn.get("text", ""))[:-2] + " and then"}
        content = _blocks(turn, asked, next(self._numbers))
        reason = turn.get("stop_reason") or ("tool_use" if _has_tools(content) else "end_turn")
        if fault and fault.kind in STOP_REASONS:
            content, reason = _bent(content, fault.kind), STOP_REASONS[fault.kind]
        return self._limited(asked, content, reason)

    def _turn(self, asked: Conversation) -> dict[str, Any]:
        if asked.kind == "judge":
            return {"text": json.dumps(self._judged(asked))}
        if asked.kind == "plain":
            texts = (text for match, text in self.script.plain if match.fits(asked))
            return {"text": next(texts, "This is a simulated answer.")}
        for part in self.script.agent:
            if part.match.fits(asked):
                turns = drawn(self.seed, asked.prompt, asked.run).choice(part.variants)
                return turns[asked.turn] if asked.turn < len(turns) else {"text": "The task is done."}
        return agent.next_turn(asked, self.seed)

    def _judged(self, asked: Conversation) -> Any:
        for part in self.script.judge:
            if part.match.fits(asked):
                return part.answer if part.answer is not None else judge.judge(asked, part.scores, self.seed)
        return judge.judge(asked, {}, self.seed)

    def _limited(self, asked: Conversation, content: list[dict[str, Any]], reason: str) -> Message:
        number = next(self._numbers)
        most = int(asked.body.get("max_tokens") or 0)
        size = max(1, tokens_in(content)) if content else 1
        if size > most and reason in ("end_turn", "tool_use"):
            content, reason, size = _cut_text(content, most * 4), "max_tokens", most
        details = {"type": "refusal", "category": None, "explanation": None} if reason == "refusal" else None
        return Message(f"msg_simulated_{number:08d}", content, reason, size, details)


def _blocks(turn: dict[str, Any], asked: Conversation, number: int) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if turn.get("thinking"):
        blocks.append({"type": "thinking", "thinking": str(turn["thinking"]), "signature": "c2ltdWxhdGVk"})
    if turn.get("text"):
        blocks.append({"type": "text", "text": str(turn["text"])})
    for index, tool in enumerate(turn.get("tools") or []):
        values = _filled(tool["input"], asked)
        blocks.append({"type": "tool_use", "id": f"toolu_{number:08d}_{index}", "name": tool["name"], "input": values})
    return blocks


def _filled(value: Any, asked: Conversation, name: str = "") -> Any:
    """A tool input with {skill} and {cwd} replaced and relative paths made absolute where the harness says where."""
    if isinstance(value, dict):
        return {key: _filled(item, asked, key) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, asked) for item in value]
    if not isinstance(value, str):
        return value
    skill = next((posixpath.dirname(offered.path) for offered in asked.skills if offered.path), "/skill")
    text = value.replace("{skill}", skill).replace("{cwd}", asked.working_directory or ".")
    if name == "file_path" and asked.working_directory and not text.startswith("/"):
        return posixpath.join(asked.working_directory, text)
    return text


def _has_tools(content: list[dict[str, Any]]) -> bool:
    return any(block["type"] == "tool_use" for block in content)


def _bent(content: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    if kind == "refusal":
        return []
    texts = [block for block in content if block["type"] == "text"]
    if kind == "pause_turn":
        return texts or [{"type": "text", "text": "Let me go on."}]
    return _cut_text(texts, sum(len(block["text"]) for block in texts) // 2)


def _cut_text(content: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for block in content:
        if block["type"] == "text" and most > 0:
            kept.append({**block, "text": block["text"][:most]})
            most -= len(block["text"])
    return kept
