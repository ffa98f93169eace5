"""The types of structural expectation and the fields each one takes: one class per type, one table.

A new type is a class here, its line in `CHECK_TYPES`, and its function in `service/checks`; the JSON Schema of evals
follows from the table.
"""

import re
from functools import cache
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, ValidationError, WithJsonSchema, model_validator
from pydantic_core import ErrorDetails

from schemas.base import Number, Word

Operator: TypeAlias = Literal["==", ">=", "<=", ">", "<", "!="]

_BRACES = re.compile(r"\{[^{}]*,[^{}]*\}")


def _inside_outputs(pattern: str) -> str:
    """Refuse what would look outside the run's outputs, or what globs here do not know."""
    if pattern.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", pattern):
        raise ValueError("must be relative to the run's outputs")
    if ".." in re.split(r"[\\/]", pattern):
        raise ValueError("must not leave the run's outputs with '..'")
    if _BRACES.search(pattern):
        raise ValueError("has {a,b}, which globs here do not know; write two checks")
    return pattern


Pattern: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(_inside_outputs)]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Texts: TypeAlias = Annotated[list[Text], Field(min_length=1)]


class Check(Word):
    """The fields of one type, without the id, description and critical that every type has."""

    model_config = ConfigDict(populate_by_name=True)


def _any_of(*names: str) -> ConfigDict:
    """Tells the JSON Schema what a validator below tells Python: one of these must be there."""
    return ConfigDict(json_schema_extra={"anyOf": [{"required": [name]} for name in names]})


class Matching(Check):
    """Looks for text: `match_regex` wins over `match_any`, which wins over `match`."""

    model_config = _any_of("match", "match_any", "match_regex")

    match: Text | None = None
    match_any: Texts | None = None
    match_regex: Text | None = None

    @model_validator(mode="after")
    def _one_matcher(self) -> Self:
        if self.match is None and self.match_any is None and self.match_regex is None:
            raise ValueError("needs match, match_any or match_regex")
        return self


class FileExists(Check):
    """At least one file matches the glob."""

    pattern: Pattern


class FileContains(Matching):
    """One of the files contains the text."""

    pattern: Pattern = "*"


class FileNotContains(Matching):
    """None of the files contains the text, except on lines that also hold one of `except_context`."""

    pattern: Pattern = "*"
    except_context: list[str] | None = None


class NoErrors(Check):
    """The transcript shows no error."""


class FileCount(Check):
    """So many files match the glob."""

    pattern: Pattern
    count: Annotated[int, Field(ge=0)] = 1
    operator: Operator = ">="


class CustomScript(Check):
    """A bash script in the outputs exits with 0."""

    script: Text
    timeout_seconds: Annotated[Number, Field(gt=0)] = 30
    writable: bool = False


class JsonValid(Check):
    """Every matching file is JSON, and there is one."""

    pattern: Pattern


class JsonPath(Check):
    """The place `path` of a matching JSON file is there (`exists`) or has the value `equals`, which may be null."""

    model_config = _any_of("equals", "exists")

    pattern: Pattern
    path: Text
    equals: Annotated[JsonValue, WithJsonSchema({})] = None
    exists: bool | None = None

    @model_validator(mode="after")
    def _one_question(self) -> Self:
        if "equals" not in self.model_fields_set and self.exists is None:
            raise ValueError("needs equals or exists")
        return self


class FileMatchesSchema(Check):
    """Every matching JSON file satisfies the JSON Schema, and there is one."""

    pattern: Pattern
    json_schema: Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object"})] = Field(alias="schema")


class MaxLines(Check):
    """Every matching file has at most `max` lines, and there is one."""

    pattern: Pattern
    max: Annotated[int, Field(ge=0)]


class MaxWords(Check):
    """Every matching file has at most `max` words, and there is one."""

    pattern: Pattern
    max: Annotated[int, Field(ge=0)]


class CommandSucceeds(Check):
    """`custom_script` under the name other tools use."""

    command: Text
    timeout_seconds: Annotated[Number, Field(gt=0)] = 30
    writable: bool = False


class TranscriptContains(Matching):
    """The transcript contains the text."""


class TranscriptNotContains(Matching):
    """The transcript does not contain the text, except on lines that also hold one of `except_context`."""

    except_context: list[str] | None = None


class ToolUsed(Check):
    """The agent called the tool."""

    tool: Text


class ToolNotUsed(Check):
    """The agent never called the tool."""

    tool: Text


CHECK_TYPES: dict[str, type[Check]] = {
    "file_exists": FileExists,
    "file_contains": FileContains,
    "file_not_contains": FileNotContains,
    "no_errors": NoErrors,
    "file_count": FileCount,
    "custom_script": CustomScript,
    "json_valid": JsonValid,
    "json_path": JsonPath,
    "file_matches_schema": FileMatchesSchema,
    "max_lines": MaxLines,
    "max_words": MaxWords,
    "command_succeeds": CommandSucceeds,
    "transcript_contains": TranscriptContains,
    "transcript_not_contains": TranscriptNotContains,
    "tool_used": ToolUsed,
    "tool_not_used": ToolNotUsed,
}


@cache
def fields_of(check_type: str) -> frozenset[str]:
    """The JSON names of a known type's own fields."""
    fields = CHECK_TYPES[check_type].model_fields
    return frozenset(field.alias or name for name, field in fields.items())


def parse_check(check_type: str, params: dict[str, JsonValue]) -> Check:
    """The typed fields of one expectation; raises KeyError for an unknown type, ValidationError for bad fields."""
    return CHECK_TYPES[check_type].model_validate(params)


def check_problems(check_type: str, params: dict[str, JsonValue]) -> list[tuple[str, str]]:
    """What is wrong with the fields of a known type: (field or "", sentence), in order."""
    try:
        parse_check(check_type, params)
    except ValidationError as error:
        told = [_problem(check_type, detail) for detail in error.errors()]
        # A union complains once per member.
        return list({field or message: (field, message) for field, message in reversed(told)}.values())[::-1]
    return []


def _problem(check_type: str, detail: ErrorDetails) -> tuple[str, str]:
    """One pydantic error as our sentence."""
    names = [str(part) for part in detail["loc"]]
    field = names[0] if names else ""
    if detail["type"] == "missing":
        return "", f"{check_type} needs {field}"
    if detail["type"] == "value_error":
        return field, " ".join(filter(None, [field or check_type, str(detail["ctx"]["error"])]))
    return field, f"{field} cannot be {_shown(detail['input'])}: {detail['msg'][0].lower()}{detail['msg'][1:]}"


def _shown(value: object) -> str:
    """A value short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
