"""What is wrong with a suite's structural expectations that can be known before anything runs."""

from collections.abc import Callable, Iterator

from pydantic import ValidationError

from schemas.checks import (
    Check,
    CommandSucceeds,
    CustomScript,
    FileMatchesSchema,
    JsonPath,
    Matching,
    parse_check,
)
from schemas.findings import Finding, Level
from schemas.suite import StructuralExpectation, Suite
from service.checks.engine import Engine
from service.checks.json_paths import parse_path
from service.checks.table import CHECKS
from service.checks.verdict import Undecided
from service.errors import BadInput, Unavailable
from service.sandbox.globs import compile_glob
from service.sandbox.port import MAX_ARGUMENT_BYTES, Sandbox

MAX_SCRIPT_SECONDS = 600

Problem = tuple[str, str, str]  # field, code, message


def preflight(suite: Suite, engine: Engine, open_sandbox: Callable[[], Sandbox]) -> list[Finding]:
    """Findings of level error that `schemas` cannot see: regexes, globs, paths, schemas, and scripts without a sandbox.

    Fields that `schemas` refuses already are passed over. The sandbox is opened only if there is a script.
    """
    findings = []
    for place, expectation in _placed(suite):
        for field, code, message in _problems(expectation, engine, open_sandbox):
            path = f"{place}.{field}" if field else place
            findings.append(Finding(level=Level.ERROR, path=path, message=message, code=code))
    return findings


def _placed(suite: Suite) -> Iterator[tuple[str, StructuralExpectation]]:
    for case_number, case in enumerate(suite.cases):
        for number, expectation in enumerate(case.structural):
            yield f"evals[{case_number}].structural_expectations[{number}]", expectation


def _problems(
    expectation: StructuralExpectation, engine: Engine, open_sandbox: Callable[[], Sandbox]
) -> Iterator[Problem]:
    if expectation.type not in CHECKS:
        return
    try:
        fields = parse_check(expectation.type, expectation.params)
    except ValidationError:
        return
    yield from _place_problems(fields)
    yield from _engine_problems(fields, engine)
    if isinstance(fields, CustomScript):
        yield from _script_problems("script", fields.script, fields.timeout_seconds, open_sandbox)
    if isinstance(fields, CommandSucceeds):
        yield from _script_problems("command", fields.command, fields.timeout_seconds, open_sandbox)


def _place_problems(fields: Check) -> Iterator[Problem]:
    """Globs and paths into JSON."""
    pattern = getattr(fields, "pattern", None)
    try:
        if isinstance(pattern, str):
            compile_glob(pattern)
    except BadInput as error:
        yield "pattern", "bad_pattern", str(error)
    try:
        if isinstance(fields, JsonPath):
            parse_path(fields.path)
    except BadInput as error:
        yield "path", "bad_path", str(error)


def _engine_problems(fields: Check, engine: Engine) -> Iterator[Problem]:
    """Regexes and JSON Schemas; one that cannot even be read within the caps is refused too."""
    field, code, problem = "", "", None
    try:
        if isinstance(fields, Matching) and fields.match_regex is not None:
            field, code = "match_regex", "bad_regex"
            problem = engine.regex_problem(fields.match_regex)
        elif isinstance(fields, FileMatchesSchema):
            field, code = "schema", "bad_schema"
            problem = engine.schema_problem(fields.json_schema)
    except Undecided as error:
        problem = f"reading it {error}"
    if problem:
        yield field, code, problem


def _script_problems(field: str, script: str, seconds: float, open_sandbox: Callable[[], Sandbox]) -> Iterator[Problem]:
    if "\0" in script or len(script.encode("utf-8", "replace")) > MAX_ARGUMENT_BYTES:
        yield field, "bad_script", f"the script has a NUL or more than {MAX_ARGUMENT_BYTES} bytes"
    if seconds > MAX_SCRIPT_SECONDS:
        yield (
            "timeout_seconds",
            "bad_timeout",
            f"a script may take {MAX_SCRIPT_SECONDS} seconds at most, not {seconds:g}",
        )
    try:
        open_sandbox()
    except Unavailable as error:
        yield field, "no_sandbox", f"scripts cannot be run safely here: {error}"
