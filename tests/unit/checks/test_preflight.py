"""What is refused at submit, with its place."""

import pytest

from schemas.suite import Case, StructuralExpectation, Suite
from service.checks import preflight
from service.errors import Unavailable


def _unavailable():
    raise Unavailable("bubblewrap is not installed; install the package bubblewrap")


def _never():
    raise AssertionError("a sandbox was opened without need")


def _findings(engine, type_, open_sandbox=_never, **params):
    good = StructuralExpectation(id="S1", type="no_errors")
    bad = StructuralExpectation(id="S2", type=type_, params=params)
    suite = Suite(cases=(Case(id=1, prompt="p"), Case(id=2, prompt="p", structural=(good, bad))))
    return [(one.path, one.code, one.message) for one in preflight(suite, engine, open_sandbox)]


PLACE = "evals[1].structural_expectations[1]"


@pytest.mark.parametrize(
    ("type_", "params", "field", "code", "message"),
    [
        ("file_contains", {"match_regex": "a(b"}, "match_regex", "bad_regex", "not valid at position 1: missing )"),
        ("file_not_contains", {"match_regex": "*"}, "match_regex", "bad_regex", "at position 0: nothing to repeat"),
        ("transcript_contains", {"match_regex": r"\p{L}"}, "match_regex", "bad_regex", r"position 0: bad escape \p"),
        ("file_contains", {"match_regex": "x" * 2001}, "match_regex", "bad_regex", "2001 characters, more than 2000"),
        ("file_contains", {"match_regex": "(" * 1500}, "match_regex", "bad_regex", "nested too deeply"),
        ("file_contains", {"match_regex": "a{99999999999}"}, "match_regex", "bad_regex", "not valid"),
        ("file_exists", {"pattern": "x" * 2000}, "pattern", "bad_pattern", "longer than 1000 characters"),
        ("json_path", {"pattern": "*", "path": "a[*]", "exists": True}, "path", "bad_path", "cannot be read at '[*]'"),
        ("json_path", {"pattern": "*", "path": "a..b", "exists": True}, "path", "bad_path", "cannot be read at '..b'"),
        ("file_matches_schema", {"pattern": "*", "schema": {"type": "strange"}}, "schema", "bad_schema", "$.type"),
    ],
)
def test_a_mistake_is_found_with_its_place(engine, type_, params, field, code, message):
    [(path, found_code, found)] = _findings(engine, type_, **params)
    assert (path, found_code) == (f"{PLACE}.{field}", code)
    assert message in found


def test_scripts_are_refused_where_no_sandbox_works(engine):
    [(path, code, message)] = _findings(engine, "custom_script", _unavailable, script="true")
    assert (path, code) == (f"{PLACE}.script", "no_sandbox")
    assert message == ("scripts cannot be run safely here: bubblewrap is not installed; install the package bubblewrap")
    assert _findings(engine, "command_succeeds", _unavailable, command="true")[0][0] == f"{PLACE}.command"


def test_scripts_must_be_short_and_quick(engine):
    findings = _findings(engine, "custom_script", lambda: None, script="x" * 200_000, timeout_seconds=1e6)
    assert [(path.rpartition(".")[2], code) for path, code, _ in findings] == [
        ("script", "bad_script"),
        ("timeout_seconds", "bad_timeout"),
    ]


def test_a_good_suite_has_no_findings_and_opens_no_sandbox(engine):
    assert _findings(engine, "file_contains", pattern="**/*.ts", match_regex=r"(?i)describe\(") == []


def test_fields_that_the_schema_refuses_are_left_to_it(engine):
    assert _findings(engine, "file_exists") == []
    assert _findings(engine, "unheard_of") == []
