"""What a request asks for, read from its own text: the simulator is told nothing else about who asks."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.S)
OFFER = re.compile(r"following skills are available[^\n]*\n+((?:[-*] [^\n]*\n?)+)", re.I)
OFFERED = re.compile(r"^[-*] ([\w.:-]+): ?(.*)$", re.M)
LOCATION = re.compile(r"\((?:file|location): ([^)\s]+)\)")
WORKING_DIRECTORY = re.compile(r"orking directory: (\S+)")
INPUT_FILES = re.compile(r"Input files[^\n]*\n((?:[-*] [^\n]*\n?)+)")


@dataclass(frozen=True)
class OfferedSkill:
    """A skill the request tells the model about."""

    name: str
    path: str | None  # its SKILL.md, when the request says where it lies
    about: str = ""


@dataclass(frozen=True)
class Conversation:
    """One request of the Messages API."""

    body: dict[str, Any]
    run: str = ""  # the value of x-assay-run: tells repeated runs of one case apart

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages as given."""
        return list(self.body.get("messages") or [])

    @property
    def model(self) -> str:
        """The model asked for."""
        return str(self.body.get("model", ""))

    @cached_property
    def tools(self) -> frozenset[str]:
        """The names of the tools offered."""
        return frozenset(str(tool.get("name", "")) for tool in self.body.get("tools") or [])

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema the answer must follow, if any."""
        wanted = (self.body.get("output_config") or {}).get("format") or {}
        return wanted.get("schema") if wanted.get("type") == "json_schema" else None

    @property
    def kind(self) -> str:
        """judge (a schema is asked for), agent (tools are offered) or plain."""
        return "judge" if self.schema is not None else "agent" if self.tools else "plain"

    @cached_property
    def turn(self) -> int:
        """How many times the model has answered already."""
        return sum(1 for message in self.messages if message.get("role") == "assistant")

    @cached_property
    def prompt(self) -> str:
        """The first user message without what harnesses add to it."""
        for message in self.messages:
            if message.get("role") == "user":
                return REMINDER.sub("", text_of(message.get("content"))).strip()
        return ""

    @cached_property
    def setting(self) -> str:
        """System prompt and system messages: what the harness says."""
        told = [text_of(self.body.get("system"))]
        told += [text_of(m.get("content")) for m in self.messages if m.get("role") == "system"]
        told += REMINDER.findall(" ".join(text_of(m.get("content")) for m in self.messages[:1]))
        return "\n".join(told)

    @cached_property
    def learned(self) -> str:
        """What came back from tools."""
        return "\n".join(text_of(m.get("content")) for m in self.messages[1:] if m.get("role") == "user")

    @cached_property
    def text(self) -> str:
        """Everything said so far."""
        return "\n".join([self.setting, self.prompt, *(text_of(m.get("content")) for m in self.messages[1:])])

    @cached_property
    def skills(self) -> tuple[OfferedSkill, ...]:
        """The skills offered."""
        found: list[OfferedSkill] = []
        for listing in OFFER.findall(self.setting):
            for name, rest in OFFERED.findall(listing):
                place = LOCATION.search(rest)
                found.append(OfferedSkill(name, place.group(1) if place else None, rest))
        return tuple(found)

    @cached_property
    def working_directory(self) -> str | None:
        """Where the harness says the agent stands."""
        found = WORKING_DIRECTORY.search(self.setting)
        return found.group(1) if found else None

    @cached_property
    def input_files(self) -> tuple[str, ...]:
        """The files the harness says are there."""
        found = INPUT_FILES.search(self.prompt)
        return tuple(line[2:].strip() for line in found.group(1).splitlines()) if found else ()

    def offers(self, skill: str | None) -> bool:
        """Whether that skill (any skill, when None) is offered."""
        return any(skill in (None, offered.name) for offered in self.skills)


def text_of(content: Any) -> str:
    """The text in a string, a block or a list of blocks, tool results and tool inputs included."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(block) for block in content)
    if isinstance(content, dict):
        if content.get("type") == "tool_use":
            return " ".join(str(value) for value in (content.get("input") or {}).values())
        return text_of(content.get("text") or content.get("content") or content.get("thinking") or "")
    return ""
