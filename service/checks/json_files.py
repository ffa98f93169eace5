"""Checks on JSON files. Each asks every matching file, and that there is one."""

from collections.abc import Callable, Iterator

from schemas.checks import FileMatchesSchema, JsonPath, JsonValid
from service.checks.evidence import excerpt, printable
from service.checks.files import no_files
from service.checks.json_paths import parse_path
from service.checks.verdict import Given, Undecided, Verdict
from service.errors import BadInput
from service.sandbox.reader import shown

_NOT_UTF8 = "is not UTF-8 text"


def json_valid(fields: JsonValid, given: Given) -> Verdict:
    """Every matching file is JSON."""
    return _of_every(fields.pattern, given, lambda text: given.engine.json_problem(text), "Valid JSON")


def json_path(fields: JsonPath, given: Given) -> Verdict:
    """In every matching file the place is there, or not, or has the value."""
    try:
        keys = parse_path(fields.path)
    except BadInput as error:
        raise Undecided(str(error)) from error
    return _of_every(fields.pattern, given, lambda text: _path_problem(fields, keys, text, given), _fine(fields))


def file_matches_schema(fields: FileMatchesSchema, given: Given) -> Verdict:
    """Every matching file satisfies the schema."""

    def problem(text: str) -> str | None:
        reply = given.engine.validate(text, fields.json_schema)
        if "problem" in reply:
            return f"is not JSON: {reply['problem']}"
        more = f" (+{reply['more']} more)" if reply.get("more") else ""
        return "; ".join(reply["errors"]) + more if reply["errors"] else None

    return _of_every(fields.pattern, given, problem, "Satisfies the schema")


def _of_every(pattern: str, given: Given, problem: Callable[[str], str | None], fine: str) -> Verdict:
    """Ask each file what is wrong with it; the first that has an answer fails the check."""
    found = given.outputs.matching(pattern)
    if not found:
        return Verdict(False, no_files(pattern))
    for path, text in _texts(found, given):
        try:
            wrong = _NOT_UTF8 if text is None else problem(text)
        except Undecided as error:
            raise Undecided(f"{shown(path)}: looking at it {error}") from error
        if wrong:
            return Verdict(False, f"{shown(path)}: {excerpt(wrong, 400)}")
    return Verdict(True, f"{fine}: {', '.join(shown(path) for path in found[:5])}")


def _texts(paths: list[str], given: Given) -> Iterator[tuple[str, str | None]]:
    """Path and text; None where the bytes are no text."""
    for path in paths:
        given.seconds_left()
        try:
            yield path, given.outputs.read_bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            yield path, None


def _path_problem(fields: JsonPath, keys: list[str | int], text: str, given: Given) -> str | None:
    reply = given.engine.look_up(text, keys, fields.equals)
    if "problem" in reply:
        return f"is not JSON: {reply['problem']}"
    asks_value = "equals" in fields.model_fields_set
    should_exist = fields.exists if fields.exists is not None else True
    if reply["exists"] != should_exist:
        return f"has nothing at {fields.path}" if should_exist else f"has {fields.path}, which should not be there"
    if asks_value and reply["exists"] and not reply["equal"]:
        return f"{fields.path} is {reply['value']}"
    return None


def _fine(fields: JsonPath) -> str:
    path = printable(fields.path)
    if "equals" in fields.model_fields_set and fields.exists is not False:
        return f"{path} has the expected value"
    return f"{path} exists" if fields.exists else f"{path} does not exist"
