"""Writes docs/cli.md from the command line itself: python tools/generate_cli_reference.py. A test finds drift."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from pydantic import SecretStr
from pydantic_core import PydanticUndefined

from cli.main import app
from service.settings import Settings

TARGET = Path(__file__).parent.parent / "docs" / "cli.md"
HEAD = """# Command line

Generated from the program by `python tools/generate_cli_reference.py`; do not edit.

Exit codes: 0 it worked, 1 a gate or a check failed, 2 the work ran and nothing can be said, 3 what was given cannot be
used, 4 a part does not answer. An error is one sentence on stderr.
"""
SETTINGS_HEAD = """## Settings

Read from the environment, or from a file of the same name in lower case in the secrets folder (`/run/secrets`, or the
one named by `ASSAY_SECRETS`). An empty one counts as unset.

| setting | default | |
|---|---|---|"""


def reference() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    sections = [HEAD, *[_section(f"assay {name}", command) for name, command in _commands(root)], _settings()]
    return "\n".join(sections)


def _commands(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    for name in sorted(group.commands):
        command = group.commands[name]
        if getattr(command, "commands", None):
            yield from _commands(command, f"{before}{name} ")
        elif not command.hidden:
            yield f"{before}{name}", command


def _section(name: str, command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.name != "help"]
    words = " ".join([name, *[_argument(one) for one in arguments], *(["[OPTIONS]"] if options else [])])
    lines = [f"## {name}", "", f"`{words}`", "", inspect.cleandoc(command.help or "").replace("\b\n", ""), ""]
    if arguments or options:
        lines += ["| | |", "|---|---|"]
        lines += [_row(f"`{_argument(one)}`", one) for one in arguments]
        lines += [_row(", ".join(f"`{word}`" for word in [*one.opts, *one.secondary_opts]), one) for one in options]
        lines += [""]
    if command.epilog:
        lines += ["```", *[line.strip() for line in command.epilog.splitlines() if line.startswith("  ")], "```", ""]
    return "\n".join(lines)


def _argument(parameter: Any) -> str:
    word = (parameter.metavar or parameter.name).strip("[]").upper()
    word = f"{word}..." if parameter.nargs == -1 else word
    return word if parameter.required else f"[{word}]"


def _row(name: str, parameter: Any) -> str:
    default = parameter.default
    shown = "" if default in (None, False, (), []) or callable(default) else f" (default {default})"
    return f"| {name} | {(parameter.help or '').replace('|', '/')}{shown} |"


def _settings() -> str:
    rows = []
    for name, field in Settings.model_fields.items():
        said = field.validation_alias or f"ASSAY_{name.upper()}"
        default = field.get_default(call_default_factory=True, validated_data={})
        shown = "" if default in (None, PydanticUndefined) or isinstance(default, SecretStr) else f"`{default}`"
        rows.append(f"| `{said}` | {shown} | {field.description} |")
    return "\n".join([SETTINGS_HEAD, *rows, ""])


if __name__ == "__main__":
    TARGET.write_text(reference())
    print(f"wrote {TARGET}")
