"""Every error of ours has its place in the one table, and says where it happened."""

from api.errors import TABLE, json_path, kind_of
from service.errors import AssayError, BadInput, Conflict, NotFound, Unavailable
from service.sandbox.archive import BadArchive
from service.tokens import Forbidden, Unauthorized


def test_special_errors_are_not_told_as_general_ones() -> None:
    expected = {
        Unauthorized: 401,
        Forbidden: 403,
        NotFound: 404,
        Conflict: 409,
        BadArchive: 422,
        BadInput: 422,
        Unavailable: 503,
        AssayError: 500,
    }

    assert {cls: kind_of(cls("x")).status for cls in expected} == expected


def test_no_line_of_the_table_is_hidden_by_one_above_it() -> None:
    for index, (cls, _kind) in enumerate(TABLE):
        assert not any(issubclass(cls, above) for above, _ in TABLE[:index]), cls


def test_what_is_no_error_of_ours_is_told_as_internal() -> None:
    assert kind_of(ZeroDivisionError()).status == 500


def test_a_place_is_written_as_a_json_path() -> None:
    assert json_path(("body", "evals", 2, "prompt")) == "evals[2].prompt"
    assert json_path(("query", "limit")) == "limit"
    assert json_path(("body",)) == ""
