"""The fields of structural checks, and the sentences about wrong ones."""

from typing import Any

import pytest

from schemas.checks import CHECK_TYPES, FileMatchesSchema, JsonPath, check_problems, fields_of, parse_check

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("file_exists", {"pattern": "*.md"}),
    ("file_contains", {"match": "a"}),
    ("file_contains", {"pattern": "src/*.ts", "match_any": ["a", "b"]}),
    ("file_not_contains", {"pattern": "*", "match_regex": "a+", "except_context": ["x"]}),
    ("no_errors", {}),
    ("file_count", {"pattern": "*"}),
    ("file_count", {"pattern": "*", "count": 0, "operator": "!="}),
    ("custom_script", {"script": "true", "timeout_seconds": 1.5, "writable": True}),
    ("json_valid", {"pattern": "*.json"}),
    ("json_path", {"pattern": "a.json", "path": "$.a", "equals": None}),
    ("json_path", {"pattern": "a.json", "path": "$.a", "exists": False}),
    ("file_matches_schema", {"pattern": "a.json", "schema": {"type": "object"}}),
    ("max_lines", {"pattern": "*.md", "max": 500}),
    ("max_words", {"pattern": "*.md", "max": 0}),
    ("command_succeeds", {"command": "make"}),
    ("transcript_contains", {"match": "a"}),
    ("transcript_not_contains", {"match_any": ["a"], "except_context": []}),
    ("tool_used", {"tool": "Read"}),
    ("tool_not_used", {"tool": "Bash"}),
]


@pytest.mark.parametrize(("check_type", "params"), GOOD)
def test_the_fields_of_a_type_are_accepted(check_type: str, params: dict[str, Any]) -> None:
    assert check_problems(check_type, params) == []


def test_every_type_is_tried() -> None:
    assert {check_type for check_type, _ in GOOD} == set(CHECK_TYPES)


BAD: list[tuple[str, dict[str, Any], str, str]] = [
    ("file_exists", {}, "", "file_exists needs pattern"),
    ("file_exists", {"pattern": ""}, "pattern", "pattern cannot be ''"),
    ("file_exists", {"pattern": "/etc/passwd"}, "pattern", "pattern must be relative to the run's outputs"),
    ("file_exists", {"pattern": "C:\\a"}, "pattern", "pattern must be relative to the run's outputs"),
    ("file_exists", {"pattern": "a/../../b"}, "pattern", "pattern must not leave the run's outputs with '..'"),
    (
        "file_exists",
        {"pattern": "*.{ts,js}"},
        "pattern",
        "pattern has {a,b}, which globs here do not know; write two checks",
    ),
    ("file_contains", {"pattern": "*"}, "", "file_contains needs match, match_any or match_regex"),
    ("file_contains", {"match_any": []}, "match_any", "match_any cannot be []"),
    ("file_contains", {"match_any": "a"}, "match_any", "match_any cannot be 'a'"),
    ("file_count", {"pattern": "*", "count": -1}, "count", "count cannot be -1"),
    ("file_count", {"pattern": "*", "count": True}, "count", "count cannot be True"),
    ("file_count", {"pattern": "*", "operator": "~"}, "operator", "operator cannot be '~'"),
    ("custom_script", {"script": "x", "timeout_seconds": 0}, "timeout_seconds", "timeout_seconds cannot be 0"),
    ("json_path", {"pattern": "a", "path": "b"}, "", "json_path needs equals or exists"),
    ("max_lines", {"pattern": "a"}, "", "max_lines needs max"),
]


@pytest.mark.parametrize(("check_type", "params", "field", "sentence"), BAD)
def test_a_wrong_field_is_named(check_type: str, params: dict[str, Any], field: str, sentence: str) -> None:
    [(named, message)] = check_problems(check_type, params)

    assert named == field and message.startswith(sentence)


def test_a_value_to_compare_with_may_be_null() -> None:
    check = parse_check("json_path", {"pattern": "a", "path": "b", "equals": None})

    assert isinstance(check, JsonPath) and "equals" in check.model_fields_set


def test_the_schema_of_a_file_goes_by_its_json_name() -> None:
    check = parse_check("file_matches_schema", {"pattern": "a", "schema": {"type": "array"}})

    assert isinstance(check, FileMatchesSchema) and check.json_schema == {"type": "array"}
    assert fields_of("file_matches_schema") == {"pattern", "schema"}
