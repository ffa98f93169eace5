"""Typed assertion objects found in the wild, turned into structural expectations when that is exactly what they ask."""

import glob
import re
from typing import Final

from pydantic import JsonValue

from schemas.checks import CHECK_TYPES, check_problems, fields_of
from schemas.suite import StructuralExpectation

_TYPE_NAMES: Final = {
    "exists": "file_exists",
    "file_exist": "file_exists",
    "file_present": "file_exists",
    "contains": "file_contains",
    "string_contains_in_file": "file_contains",
    "file_includes": "file_contains",
    "not_contains": "file_not_contains",
    "string_not_contains_in_file": "file_not_contains",
    "file_excludes": "file_not_contains",
    "regex": "file_contains",
    "regex_match": "file_contains",
    "matches_regex": "file_contains",
    "file_matches": "file_contains",
    "valid_json": "json_valid",
    "tool_called": "tool_used",
    "tool_not_called": "tool_not_used",
}
_REGEX_TYPES: Final = {"regex", "regex_match", "matches_regex", "file_matches"}
_PATHS: Final = ("path", "file", "filename", "file_path")
_SEARCHED: Final = {"file_contains", "file_not_contains"}
_TERMS: Final = ("value", "substring", "string", "contains")
_WORDS: Final = ("description", "text", "name", "label")
# Remarks of the author that do not change what is asked.
_REMARKS: Final = {"category", "evidence", "guidance", "notes", "rationale", "severity", "trap", "weight"}


def structural_of(item: dict[str, JsonValue], number: int) -> StructuralExpectation | None:
    """The structural expectation this object asks for, or None if no check is exactly that."""
    kind = _kind(item.get("type"))
    check_type = _TYPE_NAMES.get(kind, kind)
    if check_type not in CHECK_TYPES:
        return None
    asked = dict(item)
    del asked["type"]
    params = _params(check_type, kind, asked)
    description = next((asked.pop(word) for word in _WORDS if isinstance(asked.get(word), str)), None)
    own_id, critical = asked.pop("id", None), asked.pop("critical", None)
    if not asked.keys() <= _REMARKS or params is None or check_problems(check_type, params):
        return None
    return StructuralExpectation(
        id=str(own_id) if isinstance(own_id, str | int) else f"S{number}",
        type=check_type,
        description=description if isinstance(description, str) else None,
        critical=critical if isinstance(critical, bool) else None,
        params=params,
        extra=asked,
    )


def _kind(value: JsonValue) -> str:
    """file-exists, fileExists and "File exists" are one type."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", value) if isinstance(value, str) else ""
    return re.sub(r"[\s-]+", "_", words.strip()).lower()


def _params(check_type: str, kind: str, asked: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """Take the type's own fields out of what is asked, under whatever name; None if they cannot be had."""
    file = _take_file(asked)
    if kind in _REGEX_TYPES and not _as_match_regex(asked):
        return None
    params = {name: asked.pop(name) for name in fields_of(check_type) if name in asked}
    if file is not None:
        # A path is a name, not a pattern.
        params["pattern"] = glob.escape(file)
    if check_type in _SEARCHED and "pattern" not in params:
        return None  # the text may be meant to stand in the answer rather than in a file
    if check_type in _SEARCHED and not params.keys() & {"match", "match_any", "match_regex"}:
        params.update(("match", asked.pop(name)) for name in _TERMS if name in asked)
    return params


def _take_file(asked: dict[str, JsonValue]) -> str | None:
    """The one file the object is about, if it names one."""
    target = asked.get("target")
    if isinstance(target, dict) and len(target) == 1 and next(iter(target)) in _PATHS:
        asked.update(target)
        del asked["target"]
    named = [name for name in _PATHS if isinstance(asked.get(name), str)]
    file = asked.pop(named[0]) if len(named) == 1 else None
    return file if isinstance(file, str) else None


def _as_match_regex(asked: dict[str, JsonValue]) -> bool:
    """Spell a regex object's pattern and flags our way; False if it has none or flags Python lacks."""
    regex = asked.pop("regex", None) or asked.pop("pattern", None) or asked.pop("match_regex", None)
    flags = asked.pop("flags", "")
    if not isinstance(regex, str) or not isinstance(flags, str) or not set(flags) <= set("ims"):
        return False
    asked["match_regex"] = f"(?{''.join(sorted(set(flags)))}){regex}" if flags else regex
    return True
