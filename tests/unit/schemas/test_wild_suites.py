"""Suites as people write them: what is understood, and what is refused instead of guessed."""

import json
from typing import Any

import pytest

from schemas.dialects import Dialect, Kind, Reading, read, read_suite
from schemas.findings import Level
from schemas.suite import Case, Suite


def reading_of(value: Any) -> Reading:
    return read(json.dumps(value).encode())


def suite_of(value: Any) -> Suite:
    reading = reading_of(value)
    assert isinstance(reading.document, Suite), reading.findings
    return reading.document


def only_case(**keys: Any) -> Case:
    return suite_of({"skill_name": "s", "evals": [{"id": 1, "prompt": "p", **keys}]}).cases[0]


def codes_of(value: Any, level: Level | None = None) -> list[tuple[str, str]]:
    return [(one.path, one.code) for one in reading_of(value).findings if level in (None, one.level)]


CASE: dict[str, Any] = {"id": 1, "prompt": "p", "expectations": ["e"]}

CONTAINERS = {
    "a bare list": ([CASE], "bare_list"),
    "evaluations": ({"evaluations": [CASE]}, "renamed"),
    "test_cases": ({"test_cases": [CASE]}, "renamed"),
    "tests": ({"tests": [CASE]}, "renamed"),
    "one case per file": (CASE, "one_case"),
}


@pytest.mark.parametrize(("value", "code"), CONTAINERS.values(), ids=CONTAINERS.keys())
def test_a_suite_may_be_wrapped_in_many_ways(value: Any, code: str) -> None:
    reading = reading_of(value)

    assert (reading.kind, reading.dialect, reading.ok) == (Kind.EVALS, Dialect.WILD, True)
    assert code in [finding.code for finding in reading.findings]
    assert suite_of(value).cases[0].statements[0].text == "e"


@pytest.mark.parametrize("spelling", ["prompt", "query", "input", "task"])
def test_a_prompt_may_have_other_names(spelling: str) -> None:
    assert suite_of({"evals": [{"id": 1, spelling: "do it", "expectations": ["e"]}]}).cases[0].prompt == "do it"


def test_when_a_prompt_is_there_the_other_names_are_just_keys() -> None:
    case = only_case(task="something else")

    assert case.prompt == "p" and case.extra == {"task": "something else"}


TEXTS: dict[str, Any] = {
    "a text": "t",
    "text": {"text": "t", "id": "1.1"},
    "description": {"name": "label", "description": "t"},
    "assertion": {"assertion": "t"},
    "expectation": {"expectation": "t"},
    "criterion": {"criterion": "t"},
    "check": {"check": "t"},
    "name": {"name": "t"},
    "a remark beside it": {"text": "t", "trap": "many fall for it"},
}


@pytest.mark.parametrize("item", TEXTS.values(), ids=TEXTS.keys())
@pytest.mark.parametrize("key", ["expectations", "assertions", "expected_behavior"])
def test_a_statement_is_found_in_whatever_object_holds_it(key: str, item: Any) -> None:
    assert [one.text for one in only_case(**{key: ["first", item]}).statements] == ["first", "t"]


def test_keys_of_statements_survive() -> None:
    statement = only_case(assertions=[{"id": "1.1", "text": "t", "trap": "x"}]).statements[0]

    assert (statement.id, statement.extra) == ("1.1", {"trap": "x"})


def test_assertions_as_texts_are_the_public_variant() -> None:
    assert reading_of({"evals": [{"id": 1, "prompt": "p", "assertions": ["a"]}]}).dialect is Dialect.AGENTSKILLS


def test_assertions_and_expectations_that_agree_are_one_list() -> None:
    case = only_case(expectations=["a"], assertions=["a"])

    assert [one.text for one in case.statements] == ["a"]


def test_assertions_and_expectations_that_differ_are_an_error() -> None:
    value = {"evals": [{"id": 1, "prompt": "p", "expectations": ["a"], "assertions": ["b"]}]}

    assert codes_of(value, Level.ERROR) == [("evals[0].assertions", "two_lists")]


def test_one_text_of_expected_behaviour_is_the_expected_output() -> None:
    assert only_case(expected_behavior="it works").expected_output == "it works"


STRUCTURAL: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "file_exists": ({"type": "file_exists", "pattern": "*.md"}, "file_exists", {"pattern": "*.md"}),
    "file-exists": ({"type": "file-exists", "path": "a.txt"}, "file_exists", {"pattern": "a.txt"}),
    "fileExists": ({"type": "fileExists", "file": "a.txt"}, "file_exists", {"pattern": "a.txt"}),
    "a path is no pattern": ({"type": "file-exists", "path": "[a].txt"}, "file_exists", {"pattern": "[[]a].txt"}),
    "contains": (
        {"type": "contains", "file": "a.txt", "value": "x"},
        "file_contains",
        {"pattern": "a.txt", "match": "x"},
    ),
    "not_contains": (
        {"type": "not_contains", "path": "a.txt", "value": "x"},
        "file_not_contains",
        {"pattern": "a.txt", "match": "x"},
    ),
    "regex-match in a file": (
        {"type": "regex-match", "pattern": "TO.*DO", "target": {"file": "n.txt"}},
        "file_contains",
        {"pattern": "n.txt", "match_regex": "TO.*DO"},
    ),
    "regex with flags": (
        {"type": "regex", "regex": "x", "flags": "i", "path": "n.txt"},
        "file_contains",
        {"pattern": "n.txt", "match_regex": "(?i)x"},
    ),
    "tool_called": ({"type": "tool_called", "tool": "Read"}, "tool_used", {"tool": "Read"}),
    "valid_json": ({"type": "valid_json", "path": "o.json"}, "json_valid", {"pattern": "o.json"}),
    "max_lines": ({"type": "max_lines", "pattern": "*.md", "max": 9}, "max_lines", {"pattern": "*.md", "max": 9}),
}


@pytest.mark.parametrize(("item", "check", "params"), STRUCTURAL.values(), ids=STRUCTURAL.keys())
def test_typed_objects_that_are_exactly_a_check_become_one(
    item: dict[str, Any], check: str, params: dict[str, Any]
) -> None:
    case = only_case(assertions=[item])

    assert [(one.type, one.params) for one in case.structural] == [(check, params)]
    assert case.statements == ()


STATEMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "no such check": ({"type": "semantic", "text": "is kind"}, "is kind"),
    "text in the answer, not in a file": ({"type": "contains", "value": "x"}, "contains: value x"),
    "a regex over the answer": ({"type": "regex-match", "pattern": "x"}, "regex-match: pattern x"),
    "flags Python has not": (
        {"type": "regex", "pattern": "x", "flags": "gy", "path": "a", "description": "d"},
        "d",
    ),
    "a field no check has": ({"type": "file_exists", "path": "a", "min_size": 3, "description": "d"}, "d"),
    "a pattern that leaves": ({"type": "file_exists", "pattern": "../a", "description": "d"}, "d"),
}


@pytest.mark.parametrize(("item", "text"), STATEMENTS.values(), ids=STATEMENTS.keys())
def test_typed_objects_that_are_not_exactly_a_check_become_statements(item: dict[str, Any], text: str) -> None:
    case = only_case(assertions=[item])

    assert [one.text for one in case.statements] == [text]
    assert case.structural == ()


def test_a_note_says_what_each_typed_object_became() -> None:
    items = [{"type": "file-exists", "path": "a"}, {"type": "semantic", "text": "t"}]
    value = {"evals": [{"id": 1, "prompt": "p", "assertions": items}]}

    notes = [one.message for one in reading_of(value).findings if one.code == "typed"]

    assert notes == [
        "type file-exists: read as the structural check file_exists",
        "type semantic: no check is exactly that; read as a statement for the judge",
    ]


def test_criteria_in_a_list_of_statements_stay_criteria() -> None:
    case = only_case(expectations=["a", {"criterion": "c", "description": "d", "required": True}])

    assert [one.criterion for one in case.criteria] == ["c"]
    assert [one.text for one in case.statements] == ["a"]


def test_statements_in_the_cases_dialect_are_read_with_a_note() -> None:
    value = {"cases": [{"id": "a", "prompt": "p", "expectations": ["t"]}]}

    assert [one.text for one in suite_of(value).cases[0].statements] == ["t"]
    assert reading_of(value).dialect is Dialect.WILD


@pytest.mark.parametrize("own", [0, 1, -1, "1", "slug", ""])
def test_an_id_keeps_its_type(own: int | str) -> None:
    case = suite_of({"evals": [{**CASE, "id": own}]}).cases[0]

    assert case.id == own and type(case.id) is type(own)


def test_a_number_and_its_text_are_different_ids() -> None:
    assert [case.id for case in suite_of({"evals": [CASE, {**CASE, "id": "1"}]}).cases] == [1, "1"]


def test_an_id_that_is_missing_is_made_and_stays_the_same_when_cases_move() -> None:
    first, second = {"name": "Ocean View", "prompt": "a"}, {"prompt": "b"}

    one_way = [case.id for case in suite_of([first, second]).cases]
    other_way = [case.id for case in suite_of([second, first]).cases]

    assert one_way[0] == "ocean-view" and str(one_way[1]).startswith("case-")
    assert other_way == one_way[::-1]
    assert ("[0]", "generated_id") in codes_of([first, second])


def test_two_made_ids_are_kept_apart() -> None:
    ids = [case.id for case in suite_of([{"prompt": "same"}, {"prompt": "same"}, {"prompt": "same"}]).cases]

    assert len(set(ids)) == 3


@pytest.mark.parametrize("own", [1.5, True, [], {}])
def test_an_id_of_another_type_is_refused(own: Any) -> None:
    assert ("evals[0].id", "wrong_type") in codes_of({"evals": [{**CASE, "id": own}]}, Level.ERROR)


REFUSED: dict[str, tuple[Any, str, str]] = {
    "no prompt": ({"evals": [{"id": 1, "expectations": ["e"]}]}, "evals[0]", "missing_prompt"),
    "a prompt in another file": ({"evals": [{"id": 1, "prompt_file": "p.md"}]}, "evals[0]", "missing_prompt"),
    "an empty prompt": ({"evals": [{**CASE, "prompt": " \n"}]}, "evals[0].prompt", "missing_prompt"),
    "a prompt that is null": ({"evals": [{**CASE, "prompt": None}]}, "evals[0]", "missing_prompt"),
    "a prompt that is a list": ({"evals": [{**CASE, "prompt": ["p"]}]}, "evals[0].prompt", "wrong_type"),
    "a text for expectations": ({"evals": [{**CASE, "expectations": "e"}]}, "evals[0].expectations", "wrong_type"),
    "a text for files": ({"evals": [{**CASE, "files": "a.txt"}]}, "evals[0].files", "wrong_type"),
    "a text for evals": ({"skill_name": "s", "evals": "later"}, "evals", "wrong_type"),
    "a text for a case": ({"evals": [CASE, "case"]}, "evals[1]", "wrong_type"),
    "a number among expectations": (
        {"evals": [{**CASE, "expectations": ["e", 3]}]},
        "evals[0].expectations[1]",
        "wrong_type",
    ),
    "an object without a text": (
        {"evals": [{**CASE, "expectations": [{"a": 1}]}]},
        "evals[0].expectations[0]",
        "missing_text",
    ),
    "an empty statement": ({"evals": [{**CASE, "expectations": [" "]}]}, "evals[0]", "empty_text"),
    "an id twice": ({"evals": [CASE, CASE]}, "evals[1].id", "duplicate_id"),
    "an id twice in a bare list": ([CASE, CASE], "[1].id", "duplicate_id"),
    "a structural type nobody knows": (
        {"evals": [{**CASE, "structural_expectations": [{"id": "S1", "type": "file_smells"}]}]},
        "evals[0].structural_expectations[0].type",
        "unknown_check",
    ),
    "a structural check without its field": (
        {"evals": [{**CASE, "structural_expectations": [{"id": "S1", "type": "file_exists"}]}]},
        "evals[0].structural_expectations[0]",
        "bad_check",
    ),
    "a structural check with a bad field": (
        {"evals": [{**CASE, "structural_expectations": [{"id": "S1", "type": "file_exists", "pattern": "/etc/*"}]}]},
        "evals[0].structural_expectations[0].pattern",
        "bad_check",
    ),
    "two structural checks with one id": (
        {"evals": [{**CASE, "structural_expectations": [{"id": "S1", "type": "no_errors"}] * 2}]},
        "evals[0]",
        "duplicate_name",
    ),
    "a dimension without a name": (
        {"evals": [{**CASE, "quality_rubric": {"dimensions": [{"id": "Q1"}]}}]},
        "evals[0].quality_rubric.dimensions[0]",
        "missing_name",
    ),
    "a negative weight": (
        {"evals": [{**CASE, "quality_rubric": {"dimensions": [{"name": "a", "weight": -1}]}}]},
        "evals[0]",
        "bad_weight",
    ),
    "runs as a text": (
        {"eval_config": {"runs_per_eval": "3"}, "evals": [CASE]},
        "eval_config.runs_per_eval",
        "wrong_type",
    ),
    "no run at all": (
        {"eval_config": {"runs_per_eval": 0}, "evals": [CASE]},
        "eval_config.runs_per_eval",
        "out_of_range",
    ),
    "two criteria with one name": (
        {"cases": [{"id": "a", "prompt": "p", "expectations": [{"criterion": "c", "required": True}] * 2}]},
        "cases[0]",
        "duplicate_name",
    ),
}


@pytest.mark.parametrize(("value", "path", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_understood_is_refused_with_the_place(value: Any, path: str, code: str) -> None:
    reading = reading_of(value)

    assert (path, code) in [(one.path, one.code) for one in reading.findings if one.level is Level.ERROR]
    assert reading.kind is Kind.EVALS and not reading.ok and reading.document is None


def test_every_case_without_a_prompt_is_named() -> None:
    found = codes_of({"evals": [{"id": 1}, CASE | {"id": 2}, {"id": 3}]}, Level.ERROR)

    assert found == [("evals[0]", "missing_prompt"), ("evals[2]", "missing_prompt")]


WARNED: dict[str, tuple[Any, str, str]] = {
    "no cases": ({"skill_name": "s", "evals": []}, "evals", "no_cases"),
    "nothing required": (
        {"cases": [{"id": "a", "prompt": "p", "expectations": [{"criterion": "c", "required": False}]}]},
        "cases[0]",
        "no_required",
    ),
    "the same statement twice": ({"evals": [{**CASE, "expectations": ["e", "e"]}]}, "evals[0]", "duplicate_statement"),
    "a name that is a number": ({"evals": [{**CASE, "name": 7}]}, "evals[0].name", "wrong_type"),
    "a field no check has": (
        {"evals": [{**CASE, "structural_expectations": [{"id": "S", "type": "no_errors", "patern": "*"}]}]},
        "evals[0].structural_expectations[0].patern",
        "unknown_field",
    ),
    "an anchor for a score of 7": (
        {"evals": [{**CASE, "quality_rubric": {"dimensions": [{"name": "a", "scoring": {"7": "x"}}]}}]},
        "evals[0]",
        "bad_anchor",
    ),
}


@pytest.mark.parametrize(("value", "path", "code"), WARNED.values(), ids=WARNED.keys())
def test_what_is_strange_but_usable_is_a_warning(value: Any, path: str, code: str) -> None:
    assert (path, code) in codes_of(value, Level.WARNING)
    assert reading_of(value).ok


def test_a_case_with_nothing_to_decide_is_noted() -> None:
    assert codes_of({"evals": [{"id": 1, "prompt": "p"}]}) == [("evals[0]", "nothing_to_decide")]


TRIGGERS: dict[str, Any] = {
    "should_trigger": [{"query": "q", "should_trigger": True}],
    "expected skill": [{"id": 1, "query": "q", "expected": "some-skill"}],
    "inside evals": {"skill_name": "s", "evals": [{"query": "q", "should_trigger": False}]},
    "two lists": {"should_trigger": ["q"], "should_not_trigger": ["r"]},
}


@pytest.mark.parametrize("value", TRIGGERS.values(), ids=TRIGGERS.keys())
def test_a_trigger_suite_is_named_as_such_and_not_run(value: Any) -> None:
    reading = reading_of(value)

    assert (reading.kind, reading.ok, reading.document) == (Kind.TRIGGER, True, None)
    assert reading.findings[0].message == "a trigger suite: not something Assay runs"
    assert not read_suite(json.dumps(value).encode()).ok


def test_a_query_with_expectations_is_a_case_and_no_trigger() -> None:
    assert reading_of([{"query": "q", "expectations": ["e"]}]).kind is Kind.EVALS


def test_a_suite_is_asked_for_and_another_document_is_an_error() -> None:
    reading = read_suite(b'{"duration_ms": 3}')

    assert [finding.code for finding in reading.findings] == ["not_a_suite"]
    assert read_suite(json.dumps({"evals": [CASE]}).encode()).ok


def test_the_same_note_is_given_once_with_a_count() -> None:
    value = {"evals": [{"id": number, "prompt": "p", "assertions": ["a"]} for number in range(50)]}

    [note] = reading_of(value).findings

    assert (note.path, note.message) == ("evals[0].assertions", "read as expectations (and at 49 more places)")


def test_a_hundred_errors_of_a_kind_are_enough() -> None:
    findings = reading_of({"evals": [{"id": number} for number in range(5000)]}).findings
    errors = [finding for finding in findings if finding.code == "missing_prompt"]

    assert len(errors) == 101 and errors[-1].message == "4900 more of this kind"
