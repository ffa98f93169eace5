"""For any document whatever: nothing is lost, and nothing breaks."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.conversion import NotWritten, convert
from schemas.conversion.losses import plain
from schemas.dialects import Dialect, Kind, read
from schemas.dialects.place import Place, Unusable
from schemas.dialects.published import json_schema
from schemas.dialects.reading import DIALECTS
from schemas.dialects.wild import DEVIATIONS
from schemas.findings import Finding, Level

DOCUMENTS = [(dialect, kind) for dialect, shapes in DIALECTS.items() for kind in shapes]
QUICK = settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
words = st.text("abcdefgh", min_size=1, max_size=6)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
)
anything = st.recursive(
    scalars | texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)


def all_keys(schema: Any) -> set[str]:
    if isinstance(schema, dict):
        return set(schema.get("properties", {})).union(*map(all_keys, schema.values()))
    return set().union(*map(all_keys, schema)) if isinstance(schema, list) else set()


KNOWN = sorted({key for dialect, kind in DOCUMENTS for key in all_keys(json_schema(kind, dialect))})
known_keys = st.sampled_from([*KNOWN, "assertions", "query", "tests", "results", "should_trigger", "type"])
familiar = st.recursive(
    scalars | texts | known_keys,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(known_keys, inner, max_size=5),
    max_leaves=12,
)


@st.composite
def objects(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    """An object of a schema: keys in any order, optional ones there or not, null or wrong, and unknown ones."""
    value: dict[str, Any] = {}
    for name, part in schema.get("properties", {}).items():
        needed = name in schema.get("required", []) or (schema.get("anyOf") and name == "match")
        if needed or draw(st.booleans()):
            fitting = words if name == "pattern" else values(part)
            value[name] = draw(fitting if needed else st.one_of(fitting, fitting, fitting, anything))
    if "additionalProperties" in schema:
        value.update(draw(st.dictionaries(words, values(schema["additionalProperties"]), max_size=2)))
    value.update(draw(st.dictionaries(texts.map("x{}".format), anything, max_size=1)))
    return dict(draw(st.permutations(list(value.items()))))


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that satisfy one of our own schemas."""
    if "const" in schema:
        return st.just(schema["const"])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    for choice in ("oneOf", "anyOf"):
        if choice in schema and "properties" not in schema:
            return st.one_of(*map(values, schema[choice]))
    kinds = schema.get("type", [])
    return (
        st.one_of(*(of_type(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)))
        if kinds
        else anything
    )


def of_type(kind: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    least = max(schema.get("minimum", -(2**31)), schema.get("exclusiveMinimum", -(2**31)))
    match kind:
        case "object":
            return objects(schema)
        case "array":
            return st.lists(values(schema["items"]), min_size=schema.get("minItems", 0), max_size=2)
        case "string":
            return texts.map("t{}".format)
        case "integer":
            return st.integers(least + 1, 2**31)
        case "number":
            return st.integers(least + 1, 2**31) | st.floats(least + 1, 1e9)
        case "boolean":
            return st.booleans()
    return st.none()


def read_as(dialect: Dialect, kind: Kind, value: Any) -> tuple[Any, list[Finding]]:
    findings: list[Finding] = []
    try:
        return DIALECTS[dialect][kind].read(value, Place(findings)), findings
    except Unusable as unusable:
        for problem in unusable.problems:
            problem.place.error(problem.code, problem.message)
        return None, findings


def is_usable(document: Any, findings: list[Finding]) -> bool:
    return document is not None and not any(one.level is Level.ERROR for one in findings)


@pytest.mark.parametrize(("dialect", "kind"), DOCUMENTS)
@QUICK
@given(data=st.data())
def test_what_was_read_is_written_back_the_same(dialect: Dialect, kind: Kind, data: st.DataObject) -> None:
    value = data.draw(values(json_schema(kind, dialect)))

    document, findings = read_as(dialect, kind, value)

    if is_usable(document, findings) and not any(one.code in DEVIATIONS for one in findings):
        assert json.dumps(DIALECTS[dialect][kind].write(document)) == json.dumps(value)


@pytest.mark.parametrize(("dialect", "kind"), DOCUMENTS)
@QUICK
@given(data=st.data())
def test_a_document_of_ours_written_and_read_is_the_same_document(
    dialect: Dialect, kind: Kind, data: st.DataObject
) -> None:
    document, findings = read_as(dialect, kind, data.draw(values(json_schema(kind, dialect))))

    if is_usable(document, findings):
        ours = plain(document)
        again, found = read_as(dialect, kind, DIALECTS[dialect][kind].write(ours))
        assert is_usable(again, found)
        assert plain(again) == ours


@pytest.mark.parametrize(("dialect", "kind"), DOCUMENTS)
def test_the_properties_above_meet_documents_that_are_usable(dialect: Dialect, kind: Kind) -> None:
    usable = 0

    @QUICK
    @given(value=values(json_schema(kind, dialect)))
    def count(value: Any) -> None:
        nonlocal usable
        usable += is_usable(*read_as(dialect, kind, value))

    count()
    assert usable >= 8


@QUICK
@given(familiar | anything)
def test_reading_never_raises_whatever_the_json(value: Any) -> None:
    reading = read(json.dumps(value).encode())

    assert (reading.document is not None) == (reading.ok and reading.kind not in (Kind.TRIGGER, Kind.UNKNOWN))


@QUICK
@given(familiar)
def test_reading_a_suite_never_raises_whatever_its_cases(value: Any) -> None:
    for wrapped in (
        {"evals": [value, {"prompt": "p", "expectations": value}]},
        {"cases": [value]},
        [{"query": "q"}, value],
    ):
        read(json.dumps(wrapped).encode())


@QUICK
@given(st.binary(max_size=60) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_reading_never_raises_whatever_the_bytes(data: bytes) -> None:
    assert read(data).raw == data


@pytest.mark.parametrize("kind", [Kind.EVALS, Kind.GRADING, Kind.HISTORY])
@QUICK
@given(data=st.data())
def test_what_was_converted_can_be_read(kind: Kind, data: st.DataObject) -> None:
    source, target = data.draw(st.tuples(st.sampled_from(list(DIALECTS)), st.sampled_from(list(DIALECTS))))
    if kind not in DIALECTS[source]:
        return
    reading = read(json.dumps(data.draw(values(json_schema(kind, source)))).encode())
    if reading.document is None or reading.kind is not kind:
        return

    try:
        conversion = convert(reading, target)
    except NotWritten:
        assert kind not in DIALECTS[target]
        return

    assert is_usable(*read_as(target, kind, conversion.value))
