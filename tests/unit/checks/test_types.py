"""Every type, field, operator and edge with its verdict and its evidence, word by word.

A row is: type, fields, files, verdict, evidence.
"""

import pytest

from schemas.checks import CHECK_TYPES
from schemas.metrics import Metrics
from service.checks.table import CHECKS

TS = {"a.test.ts": "const a = vi.fn()\nexpect(a)\n", "src/b.ts": "// vi.fn() is banned\nonSubmit = vi.fn()\n"}
MD = {"notes.md": "# Heading TODO\ntext TODO here\n"}
ERROR_LINE = "x" * 30 + " Error: " + "y" * 100

FILES = [
    ("file_exists", {"pattern": "*.ts"}, TS, True, "Found: a.test.ts, src/b.ts"),
    ("file_exists", {"pattern": "src/*.ts"}, {"p/src/x.ts": ""}, True, "Found: p/src/x.ts"),
    ("file_exists", {"pattern": "**/*.ts"}, TS, True, "Found: a.test.ts, src/b.ts"),
    ("file_exists", {"pattern": "*.TS"}, TS, False, "No files matching '*.TS' in outputs"),
    ("file_exists", {"pattern": "src"}, TS, False, "No files matching 'src' in outputs"),
    ("file_exists", {"pattern": ".*"}, {".hidden": ""}, True, "Found: .hidden"),
    ("file_exists", {"pattern": "*"}, {f"{n}": "" for n in range(7)}, True, "Found: 0, 1, 2, 3, 4"),
    ("file_exists", {"pattern": "*"}, {}, False, "No files matching '*' in outputs"),
    ("file_count", {"pattern": "*.ts"}, TS, True, "Found 2 file(s) matching '*.ts' (expected >= 1)"),
    ("file_count", {"pattern": "*.js"}, TS, False, "Found 0 file(s) matching '*.js' (expected >= 1)"),
    ("file_count", {"pattern": "src"}, TS, False, "Found 0 file(s) matching 'src' (expected >= 1)"),
    *[
        ("file_count", {"pattern": "*.ts", "count": count, "operator": operator}, TS, passed,
         f"Found 2 file(s) matching '*.ts' (expected {operator} {count})")
        for operator, count, passed in [
            ("==", 2, True), ("==", 1, False), (">=", 2, True), (">=", 3, False), ("<=", 2, True), ("<=", 1, False),
            (">", 1, True), (">", 2, False), ("<", 3, True), ("<", 2, False), ("!=", 3, True), ("!=", 2, False),
        ]
    ],
    ("max_lines", {"pattern": "*.md", "max": 2}, MD, True,
     "notes.md has 2 line(s) (at most 2 allowed), the most of 1 file(s)"),
    ("max_lines", {"pattern": "*.md", "max": 1}, {"a.md": "x", "b.md": "x\ny"}, False,
     "b.md has 2 line(s) (at most 1 allowed), the most of 2 file(s)"),
    ("max_lines", {"pattern": "*.md", "max": 0}, {"a.md": ""}, True,
     "a.md has 0 line(s) (at most 0 allowed), the most of 1 file(s)"),
    ("max_lines", {"pattern": "*.md", "max": 9}, {}, False, "No files matching '*.md'"),
    ("max_words", {"pattern": "*.md", "max": 6}, MD, True,
     "notes.md has 6 word(s) (at most 6 allowed), the most of 1 file(s)"),
    ("max_words", {"pattern": "*.md", "max": 5}, MD, False,
     "notes.md has 6 word(s) (at most 5 allowed), the most of 1 file(s)"),
]  # fmt: skip

CONTAINS = [
    ({"pattern": "*.ts", "match": "expect"}, TS, True, "Found 'expect' in a.test.ts:2 — expect(a)"),
    ({"match": "TODO"}, MD, True, "Found 'TODO' in notes.md:1 — # Heading TODO"),
    ({"pattern": "*.ts", "match": "EXPECT"}, TS, False, "None of ['EXPECT'] found in any matching file"),
    ({"pattern": "*.js", "match": "x"}, TS, False, "No files matching '*.js'"),
    ({"match_any": ["nope", "onSubmit"]}, TS, True, "Found 'onSubmit' in b.ts:2 — onSubmit = vi.fn()"),
    ({"match_any": ["nope", "never"]}, TS, False, "None of ['nope', 'never'] found in any matching file"),
    ({"match": "expect", "match_any": ["nope"]}, TS, False, "None of ['nope'] found in any matching file"),
    ({"match_regex": r"vi\.\w+"}, TS, True, "Regex matched 'vi.fn' in a.test.ts:1"),
    ({"match_regex": "^expect"}, TS, False, "Regex '^expect' not found in any matching file"),
    ({"match_regex": "(?m)^expect"}, TS, True, "Regex matched 'expect' in a.test.ts:2"),
    ({"match_regex": "(?i)EXPECT"}, TS, True, "Regex matched 'expect' in a.test.ts:2"),
    ({"match_regex": "nope", "match": "expect", "match_any": ["expect"]}, TS, False,
     "Regex 'nope' not found in any matching file"),
    ({"match_regex": r"\(\)\nexpect"}, TS, True, "Regex matched '() expect' in a.test.ts:1"),
    ({"match": "vi.fn()\nexpect"}, TS, False, r"None of ['vi.fn()\nexpect'] found in any matching file"),
    ({"match": "x"}, {"a/f.md": "x", "b/f.md": "x"}, True, "Found 'x' in a/f.md:1 — x"),
    ({"match": "two"}, {"f": b"one\r\ntwo\r\n"}, True, "Found 'two' in f:2 — two"),
    ({"match": "two"}, {"f": b"\xff\x00two\x1b"}, True, "Found 'two' in f:1 — �\\x00two\\x1b"),
    ({"match": "z"}, {"f": "  " + "z" * 300}, True, f"Found 'z' in f:1 — {'z' * 100}"),
    ({"match_regex": "z+"}, {"f": "z" * 300}, True, f"Regex matched '{'z' * 100}' in f:1"),
]  # fmt: skip

NOT_CONTAINS = [
    ({"pattern": "*.js", "match": "x"}, TS, True, "No files matching '*.js' (vacuously true)"),
    ({"match": "nope"}, TS, True, "No matches for 'nope' across 2 file(s)"),
    ({"match_any": ["no", "never"]}, {"f": "yes"}, True, "No matches for 'no, never' across 1 file(s)"),
    ({"match": "expect"}, TS, False, "Found banned pattern: a.test.ts:2 — expect(a)"),
    ({"match": "vi.fn"}, TS, False,
     "Found banned pattern: a.test.ts:1 — const a = vi.fn(); b.ts:2 — onSubmit = vi.fn()"),
    ({"match": "vi.fn", "except_context": ["onSubmit", "const"]}, TS, True,
     "No matches for 'vi.fn' across 2 file(s) (2 line(s) excused by except_context, 1 comment line(s) not counted)"),
    ({"match": "vi.fn", "except_context": ["expect"]}, {"a": "vi.fn()\nexpect\n"}, False,
     "Found banned pattern: a:1 — vi.fn()"),
    ({"match": "TODO"}, MD, False, "Found banned pattern: notes.md:2 — text TODO here"),
    ({"match": "Heading"}, MD, True, "No matches for 'Heading' across 1 file(s) (1 comment line(s) not counted)"),
    ({"match_regex": "Head.ng"}, MD, False, "Found banned pattern: notes.md:1 — # Heading TODO"),
    ({"match_regex": "Head.ng", "except_context": ["TODO"]}, MD, True,
     "No matches for 'Head.ng' across 1 file(s) (1 line(s) excused by except_context)"),
    ({"match_regex": "nope", "match": "text"}, MD, False, "Found banned pattern: notes.md:2 — text TODO here"),
    ({"match_regex": "here", "match": "nope"}, MD, False, "Found banned pattern: notes.md:2 — text TODO here"),
    ({"match_regex": "n.ver", "match": "nope"}, MD, True, "No matches for 'nope, n.ver' across 1 file(s)"),
    ({"match_regex": r"x\ny"}, {"f": "x\ny"}, True, r"No matches for 'x\ny' across 1 file(s)"),
    ({"match": "x"}, {"f": "x\n" * 5}, False, "Found banned pattern: f:1 — x; f:2 — x; f:3 — x (+2 more)"),
    ({"match": "x"}, {"f": "x" * 200}, False, f"Found banned pattern: f:1 — {'x' * 80}"),
]  # fmt: skip

JSON = {"a.json": '{"name": "x", "list": [1, {"b": null}], "odd key": true, "0": "zero", "n": 1.0}'}
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
JSON_FILES = [
    ("json_valid", {"pattern": "*.json"}, JSON, True, "Valid JSON: a.json"),
    ("json_valid", {"pattern": "*.json"}, {}, False, "No files matching '*.json'"),
    ("json_valid", {"pattern": "*.json"}, {"a.json": "{", **JSON}, True, "Valid JSON: a.json"),
    ("json_valid", {"pattern": "*.json"}, {**JSON, "b.json": "{\n x}"}, False,
     "b.json: Expecting property name enclosed in double quotes at line 2 column 2"),
    ("json_valid", {"pattern": "*"}, {"a": "[NaN]"}, False, "a: NaN is not JSON"),
    ("json_valid", {"pattern": "*"}, {"a": ""}, False, "a: Expecting value at line 1 column 1"),
    ("json_valid", {"pattern": "*"}, {"a": b"\xef\xbb\xbf1"}, True, "Valid JSON: a"),
    ("json_valid", {"pattern": "*"}, {"a": b'"\xff"'}, False, "a: is not UTF-8 text"),
    ("json_valid", {"pattern": "*"}, {"a": "1" * 5000}, True, "Valid JSON: a"),
    *[
        ("json_path", {"pattern": "*.json", **fields}, JSON, passed, evidence)
        for fields, passed, evidence in [
            ({"path": "$.name", "exists": True}, True, "$.name exists: a.json"),
            ({"path": "name", "equals": "x"}, True, "name has the expected value: a.json"),
            ({"path": "name", "equals": "y"}, False, 'a.json: name is "x"'),
            ({"path": "$.list[1].b", "equals": None}, True, "$.list[1].b has the expected value: a.json"),
            ({"path": "list.1.b", "exists": True}, True, "list.1.b exists: a.json"),
            ({"path": "list[-1]", "equals": {"b": None}}, True, "list[-1] has the expected value: a.json"),
            ({"path": "$['odd key']", "equals": True}, True, "$['odd key'] has the expected value: a.json"),
            ({"path": '$["odd key"]', "equals": 1}, False, 'a.json: $["odd key"] is true'),
            ({"path": "0", "equals": "zero"}, True, "0 has the expected value: a.json"),
            ({"path": "n", "equals": 1}, True, "n has the expected value: a.json"),
            ({"path": "none", "exists": True}, False, "a.json: has nothing at none"),
            ({"path": "none", "equals": None}, False, "a.json: has nothing at none"),
            ({"path": "none", "exists": False}, True, "none does not exist: a.json"),
            ({"path": "name", "exists": False}, False, "a.json: has name, which should not be there"),
            ({"path": "list[2]", "exists": True}, False, "a.json: has nothing at list[2]"),
            ({"path": "$", "exists": True}, True, "$ exists: a.json"),
        ]
    ],
    ("json_path", {"pattern": "*", "path": "a", "exists": True}, {}, False, "No files matching '*'"),
    ("json_path", {"pattern": "*", "path": "a", "exists": True}, {"a": "x"}, False,
     "a: is not JSON: Expecting value at line 1 column 1"),
    ("json_path", {"pattern": "*", "path": "a", "exists": True}, {"1": '{"a": 1}', "2": "{}"}, False,
     "2: has nothing at a"),
    ("file_matches_schema", {"pattern": "*", "schema": SCHEMA}, {}, False, "No files matching '*'"),
    ("file_matches_schema", {"pattern": "*", "schema": SCHEMA}, {"a": '{"name": "x"}'}, True,
     "Satisfies the schema: a"),
    ("file_matches_schema", {"pattern": "*", "schema": SCHEMA}, {"a": "{}"}, False,
     "a: $: 'name' is a required property"),
    ("file_matches_schema", {"pattern": "*", "schema": SCHEMA}, {"a": '{"name": 1}'}, False,
     "a: $.name: 1 is not of type 'string'"),
    ("file_matches_schema", {"pattern": "*", "schema": SCHEMA}, {"a": "{"}, False,
     "a: is not JSON: Expecting property name enclosed in double quotes at line 1 column 2"),
    ("file_matches_schema", {"pattern": "*", "schema": {"items": {"type": "string"}}}, {"a": "[1, 2, 3, 4, 5]"}, False,
     "a: $[0]: 1 is not of type 'string'; $[1]: 2 is not of type 'string'; $[2]: 3 is not of type 'string' (+2 more)"),
]  # fmt: skip

TRANSCRIPTS = [
    ("no_errors", {}, None, True, "No transcript found (skipped)"),
    ("no_errors", {}, "all went well\nno error here", True, "No error patterns found in transcript"),
    ("no_errors", {}, "fine\nAssertionError: x", False, "Found errors: transcript:2 — AssertionError: x"),
    ("no_errors", {}, "3 FAILED", False, "Found errors: transcript:1 — 3 FAILED"),
    ("no_errors", {}, "java Exception: x", False, "Found errors: transcript:1 — java Exception: x"),
    ("no_errors", {}, "Traceback (most recent call last)", False,
     "Found errors: transcript:1 — Traceback (most recent call last)"),
    ("no_errors", {}, "Command failed", False, "Found errors: transcript:1 — Command failed"),
    ("no_errors", {}, ERROR_LINE, False, f"Found errors: transcript:1 — {ERROR_LINE[:60]}"),
    ("no_errors", {}, "Error: 1\nError: 2\nError: 3\nFAILED 4\nFAILED 5", False,
     "Found errors: transcript:1 — Error: 1; transcript:2 — Error: 2; transcript:4 — FAILED 4"),
    ("transcript_contains", {"match": "npm test"}, "ran\nnpm test", True,
     "Found 'npm test' in transcript:2 — npm test"),
    ("transcript_contains", {"match_any": ["a", "b"]}, "xyz", False, "None of ['a', 'b'] found in the transcript"),
    ("transcript_contains", {"match_regex": "n.m"}, "ran\nnpm", True, "Regex matched 'npm' in transcript:2"),
    ("transcript_contains", {"match_regex": "n.m"}, "x", False, "Regex 'n.m' not found in the transcript"),
    ("transcript_not_contains", {"match": "sudo"}, "ok", True, "No matches for 'sudo' in the transcript"),
    ("transcript_not_contains", {"match": "sudo"}, "# sudo rm", False,
     "Found banned pattern: transcript:1 — # sudo rm"),
    ("transcript_not_contains", {"match_regex": "s.do", "except_context": ["never"]}, "never sudo", True,
     "No matches for 's.do' in the transcript (1 line(s) excused by except_context)"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "fields", "files", "passed", "evidence"), FILES + JSON_FILES)
def test_files(decide, type_, fields, files, passed, evidence):
    checked = decide(type_, files, **fields)
    assert (checked.passed, checked.evidence, checked.error) == (passed, evidence, None)


@pytest.mark.parametrize(("fields", "files", "passed", "evidence"), CONTAINS)
def test_file_contains(decide, fields, files, passed, evidence):
    checked = decide("file_contains", files, **fields)
    assert (checked.passed, checked.evidence, checked.error) == (passed, evidence, None)


@pytest.mark.parametrize(("fields", "files", "passed", "evidence"), NOT_CONTAINS)
def test_file_not_contains(decide, fields, files, passed, evidence):
    checked = decide("file_not_contains", files, **fields)
    assert (checked.passed, checked.evidence, checked.error) == (passed, evidence, None)


@pytest.mark.parametrize(("type_", "fields", "transcript", "passed", "evidence"), TRANSCRIPTS)
def test_transcripts(decide, type_, fields, transcript, passed, evidence):
    checked = decide(type_, {}, transcript, **fields)
    assert (checked.passed, checked.evidence, checked.error) == (passed, evidence, None)


def test_a_transcript_among_the_outputs_is_used_where_the_run_has_none(decide):
    files = {"transcript.md": "Error: in the file"}
    assert decide("no_errors", files).evidence == "Found errors: transcript:1 — Error: in the file"
    assert decide("no_errors", files, "all is well").passed is True


@pytest.mark.parametrize(
    ("type_", "tool", "passed", "evidence"),
    [
        ("tool_used", "Bash", True, "Tool 'Bash' was called 2 time(s)"),
        ("tool_used", "Write", False, "Tool 'Write' was called 0 time(s)"),
        ("tool_not_used", "Bash", False, "Tool 'Bash' was called 2 time(s)"),
        ("tool_not_used", "Write", True, "Tool 'Write' was called 0 time(s)"),
    ],
)
def test_tools(decide, type_, tool, passed, evidence):
    checked = decide(type_, metrics=Metrics(tool_calls={"Bash": 2}), tool=tool)
    assert (checked.passed, checked.evidence) == (passed, evidence)


def test_every_type_with_fields_has_its_function():
    assert CHECKS.keys() == CHECK_TYPES.keys()


UNDECIDED = [
    ("tool_used", {"tool": "Bash"}, {}, "the metrics of this run do not say which tools were called"),
    ("transcript_contains", {"match": "x"}, {}, "there is no transcript of this run"),
    ("transcript_not_contains", {"match": "x"}, {}, "there is no transcript of this run"),
    ("custom_script", {"script": "true"}, {}, "there is no sandbox in this test"),
    ("command_succeeds", {"command": "true"}, {}, "there is no sandbox in this test"),
    ("unheard_of", {}, {}, "no structural check is called 'unheard_of'"),
    ("file_exists", {}, {}, "the fields of this file_exists are not valid: Field required"),
    ("file_count", {"pattern": "*", "operator": "~"}, {}, "the fields of this file_count are not valid"),
    ("file_contains", {"match": "x"}, {"big": "y" * 200_000}, "big has 200000 bytes, more than 100000"),
    ("file_not_contains", {"match": "x"}, {"big": "y" * 200_000}, "big has 200000 bytes, more than 100000"),
    ("max_lines", {"pattern": "*", "max": 1}, {"big": "y" * 200_000}, "big has 200000 bytes, more than 100000"),
    ("json_valid", {"pattern": "*"}, {"deep": "[" * 90_000}, "deep: looking at it is nested too deeply"),
    ("file_contains", {"match_regex": "("}, {"f": "x"}, "the regex is not valid at position 0"),
    ("file_matches_schema", {"pattern": "*", "schema": {"$ref": "http://127.0.0.1:9/x"}}, {"a": "1"},
     "a: looking at it refers to 'http://127.0.0.1:9/x', which is not in it"),
]  # fmt: skip


@pytest.mark.parametrize(("type_", "fields", "files", "reason"), UNDECIDED)
def test_what_cannot_be_decided_is_neither_passed_nor_failed(decide, type_, fields, files, reason):
    checked = decide(type_, files, **fields)
    assert checked.passed is None
    assert reason in checked.error
    assert checked.evidence == f"Could not be decided: {checked.error}"


def test_a_file_that_cannot_be_read_does_not_matter_once_another_one_decides(decide):
    files = {"big": "y" * 200_000, "small": "x"}
    assert decide("file_contains", files, match="x").passed is True
    assert decide("file_not_contains", files, match="x").passed is False


def test_links_are_no_files(decide, tmp_path):
    (tmp_path / "outputs").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "outputs" / "link").symlink_to(tmp_path / "secret")
    assert decide("file_exists", pattern="link").passed is False
    assert decide("file_contains", match="secret").evidence == "No files matching '*'"
    assert decide("file_count", pattern="*", count=0, operator="==").passed is True


def test_evidence_has_an_end(decide):
    checked = decide("file_exists", {f"{n}" + "x" * 240: "" for n in range(5)}, pattern="*")
    assert len(checked.evidence) == 600
    assert checked.evidence.endswith("…")
