"""The tools of the agent: what the model is told about them, and doing what it asks inside the sandbox."""

import functools
import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from service.models.clean_text import clean
from service.runners.commands import Places
from service.runners.port import Assignment
from service.sandbox.port import WORKSPACE, Command, Finished, Limits, Mount, Sandbox, SandboxFailed, bash

NAMES = ("Read", "Write", "Edit", "Bash", "Glob", "Grep")
_FILE_TOOL_SECONDS = 30.0
_BASH_SECONDS = 120.0
_BASH_MOST_SECONDS = 600.0
_FILE_TOOL_BYTES = 4_000_000  # of the answer of a file tool; shortened for the model afterwards


def _text(about: str) -> dict[str, str]:
    return {"type": "string", "description": about}


def _tool(name: str, about: str, required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    properties = {**required, **(optional or {})}
    schema = {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}
    return {"name": name, "description": about, "input_schema": schema}


_PATH = _text("path of the file, absolute or relative to the working directory")
_BELOW = _text("folder to look in; the working directory if left out")
_WHOLE = {"type": "integer"}

TOOLS: list[dict[str, Any]] = [
    _tool(
        "Read",
        "Read a text file. Lines come with their numbers; at most 2000 lines at once.",
        {"file_path": _PATH},
        {"offset": {**_WHOLE, "description": "first line"}, "limit": {**_WHOLE, "description": "number of lines"}},
    ),
    _tool(
        "Write",
        "Write a file; an existing one is replaced. Folders are made as needed.",
        {"file_path": _PATH, "content": _text("the whole content")},
    ),
    _tool(
        "Edit",
        "Replace a text in a file. The old text must be in the file exactly once, unless replace_all is true.",
        {"file_path": _PATH, "old_string": _text("text to replace"), "new_string": _text("text to put there")},
        {"replace_all": {"type": "boolean"}},
    ),
    _tool(
        "Bash",
        "Run a bash command in the working directory. Each command starts there anew; there is no network.",
        {"command": _text("the command")},
        {"timeout": {**_WHOLE, "description": "milliseconds, at most 600000"}, "description": _text("what it does")},
    ),
    _tool("Glob", "Find files by a pattern such as **/*.md.", {"pattern": _text("the pattern")}, {"path": _BELOW}),
    _tool(
        "Grep",
        "Search files by a regular expression (Python's).",
        {"pattern": _text("the expression")},
        {
            "path": _BELOW,
            "glob": _text("only files that fit this pattern"),
            "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]},
            "-i": {"type": "boolean", "description": "ignore case"},
        },
    ),
]
_SCHEMAS = {tool["name"]: tool["input_schema"] for tool in TOOLS}
_TYPES: dict[str, type] = {"string": str, "integer": int, "boolean": bool}


@dataclass(frozen=True)
class ToolResult:
    """What a tool answered."""

    text: str
    is_error: bool = False


class Toolbox:
    """The tools of one run; everything happens in its workspace, in the sandbox."""

    def __init__(self, sandbox: Sandbox, assignment: Assignment, limits: Limits | None = None) -> None:
        self._sandbox = sandbox
        self._workspace = assignment.workspace
        self._limits = limits or Limits()
        self.working_directory = sandbox.place(assignment.workspace, WORKSPACE)
        self.skill_directory: str | None = None
        self._mounts: tuple[Mount, ...] = ()
        if assignment.skill:
            inside = f"/skill/{safe_name(assignment.skill.name)}"
            self.skill_directory = sandbox.place(assignment.skill.folder, inside)
            self._mounts = (Mount(assignment.skill.folder, inside),)
        self.home = _new(assignment.workspace.parent / "home")
        self.tmp = _new(assignment.workspace.parent / "tmp")
        self.places = Places(self.working_directory, sandbox.place(self.home, "/home/user"))

    def run(self, name: str, asked: Any, timeout_seconds: float) -> ToolResult:
        """Do what the model asks; what it asks wrongly is an answer too. Raises SandboxFailed."""
        complaint = _complaint(name, asked)
        if complaint:
            return ToolResult(complaint, is_error=True)
        if name == "Bash":
            return self._bash(asked, timeout_seconds)
        return self._file_tool(name, asked, min(timeout_seconds, _FILE_TOOL_SECONDS))

    def _bash(self, asked: dict[str, Any], timeout_seconds: float) -> ToolResult:
        wanted = asked.get("timeout")
        seconds = min(_BASH_MOST_SECONDS, wanted / 1000) if wanted and wanted > 0 else _BASH_SECONDS
        script = asked["command"]
        if "\0" in script or len(script.encode("utf-8", "surrogatepass")) > 90_000:
            return ToolResult("the command is too long or contains NUL; write it into a file and run that", True)
        finished = self._run(bash(script), b"", min(seconds, timeout_seconds), 1_000_000)
        text = finished.output.decode("utf-8", "replace").rstrip()
        ending = _ending(finished)
        return ToolResult("\n".join(part for part in (text, ending) if part) or "(no output)", bool(ending))

    def _file_tool(self, name: str, asked: dict[str, Any], timeout_seconds: float) -> ToolResult:
        roots = [self.working_directory, *([self.skill_directory] if self.skill_directory else [])]
        question = json.dumps({"tool": name, "input": asked, "roots": [*roots, self._sandbox.place(self.tmp, "/tmp")]})  # noqa: S108
        argv = ("python3", "-I", "-S", "-c", _helper())
        finished = self._run(argv, question.encode("utf-8", "surrogatepass"), timeout_seconds, _FILE_TOOL_BYTES)
        if finished.exit_code == 127:
            raise SandboxFailed("the sandbox has no python3, which the file tools need; install python3 below /usr")
        try:
            answer = json.loads(finished.stdout)
            return ToolResult(clean(str(answer["text"])), bool(answer["is_error"]))
        except (ValueError, KeyError, TypeError):
            return ToolResult(_ending(finished) or "the tool gave no answer", is_error=True)

    def _run(self, argv: tuple[str, ...], stdin: bytes, timeout_seconds: float, output_bytes: int) -> Finished:
        return self._sandbox.run(
            Command(
                argv=argv,
                workspace=self._workspace,
                mounts=self._mounts,
                stdin=stdin,
                timeout_seconds=timeout_seconds,
                output_bytes=output_bytes,
                limits=self._limits,
                home=self.home,
                tmp=self.tmp,
            )
        )


def safe_name(name: str) -> str:
    """A skill's name as a folder name."""
    kept = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in name)[:64]
    return kept or "skill"


def _new(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


@functools.cache
def _helper() -> str:
    return resources.files("service.runners").joinpath("filetools.py").read_text(encoding="utf-8")


def _ending(finished: Finished) -> str:
    """How a command ended, if not well."""
    if finished.timed_out:
        return f"(stopped after {finished.seconds:.0f} s: time limit)"
    if finished.stopped_by:
        return f"(stopped: {finished.stopped_by} limit)"
    return f"(exit code {finished.exit_code})" if finished.exit_code else ""


def _complaint(name: str, asked: Any) -> str | None:
    """What is wrong with a tool call, if anything."""
    schema = _SCHEMAS.get(name)
    if schema is None:
        return f"there is no tool {name}; there are {', '.join(NAMES)}"
    if not isinstance(asked, dict):
        return f"{name} needs an object as input"
    missing = [field for field in schema["required"] if field not in asked]
    if missing:
        return f"{name} needs {missing[0]}"
    for field, value in asked.items():
        wanted = schema["properties"].get(field)
        if wanted is None:
            return f"{name} does not know {field}"
        if not isinstance(value, _TYPES[wanted["type"]]):
            return f"{name}: {field} must be a {wanted['type']}"
    return None
