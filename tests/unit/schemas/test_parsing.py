"""What is refused before anybody looks at its meaning, and where."""

import hashlib

import pytest

from schemas.dialects import Kind, read
from schemas.dialects.parsing import MAX_BYTES, parse
from schemas.findings import Unreadable

REFUSED = {
    "an empty file": (b"", "1:1", "empty"),
    "white space": (b" \n", "1:1", "empty"),
    "broken JSON": (b'{\n  "evals": [\n    {"id": 1,}\n  ]\n}', "3:14", "broken_json"),
    "a trailing comment": (b'{"a": 1} // no', "1:10", "broken_json"),
    "a key said twice": (b'{"evals": [{"id": 1, "prompt": "a", "id": 2}]}', "evals[0]", "duplicate_key"),
    "NaN": (b'{"evals": [1, NaN]}', "evals[1]", "no_number"),
    "Infinity": (b'{"a": {"b c": -Infinity}}', 'a["b c"]', "no_number"),
    "a float beyond floats": (b"[1e999]", "[0]", "no_number"),
    "an integer beyond 64 bits": (b'{"id": 9223372036854775808}', "id", "no_number"),
    "an endless integer": (b'{"id": ' + b"1" * 5000 + b"}", "id", "no_number"),
    "half a surrogate pair": (b'["\\ud800"]', "[0]", "bad_text"),
    "a NUL in a value": (b'{"prompt": "a\\u0000b"}', "prompt", "bad_text"),
    "a NUL in a key": (b'{"a\\u0000": 1}', '["a?"]', "bad_text"),
    "latin-1": ("[\n'é']".replace("'", '"').encode("latin-1"), "2:2", "wrong_encoding"),
    "utf-16": ("{}".encode("utf-16"), "1:1", "wrong_encoding"),
    "utf-32": ("{}".encode("utf-32"), "1:1", "wrong_encoding"),
    "65 levels": (b"[" * 65 + b"]" * 65, "[0]" * 64, "too_deep"),
    "100,000 levels": (b"[" * 100_000, "1:65", "too_deep"),
    "more than 10 MiB": (b'"' + b"a" * MAX_BYTES + b'"', "", "too_large"),
}


@pytest.mark.parametrize(("data", "path", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_bytes_that_others_could_read_otherwise_are_refused_with_the_place(data: bytes, path: str, code: str) -> None:
    with pytest.raises(Unreadable) as refusal:
        parse(data)

    assert (refusal.value.finding.path, refusal.value.finding.code) == (path, code)


@pytest.mark.parametrize(("data", "path", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_reading_gives_the_refusal_as_a_finding_and_keeps_the_bytes(data: bytes, path: str, code: str) -> None:
    reading = read(data)

    assert (reading.kind, reading.document, reading.ok) == (Kind.UNKNOWN, None, False)
    assert [(finding.path, finding.code) for finding in reading.findings] == [(path, code)]
    assert reading.raw == data and reading.sha256 == hashlib.sha256(data).hexdigest()


def test_sixty_four_levels_are_read() -> None:
    assert parse(b"[" * 64 + b"]" * 64) is not None


def test_a_byte_order_mark_is_skipped_with_a_note() -> None:
    reading = read(b'\xef\xbb\xbf{"evals": [{"id": 1, "prompt": "p", "expectations": ["e"]}]}')

    assert reading.ok
    assert [finding.code for finding in reading.findings] == ["byte_order_mark"]


def test_a_full_surrogate_pair_is_text_like_any_other() -> None:
    assert parse(b'["\\ud83d\\ude00"]') == ["\U0001f600"]
