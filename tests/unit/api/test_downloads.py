"""Files go out with the right range, and nothing that could run is shown."""

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from api.downloads import asked_range, content, disposition


def request(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "method": "GET", "path": "/", "headers": raw})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("bytes=0-3", (0, 3)),
        ("bytes=4-", (4, 9)),
        ("bytes=-3", (7, 9)),
        ("bytes=-30", (0, 9)),
        ("bytes=8-100", (8, 9)),
        (None, None),
        ("bytes=-", None),
        ("lines=1-2", None),
        ("bytes=0-1,3-4", None),
    ],
)
def test_a_range_is_what_the_standard_says(asked: str | None, expected: tuple[int, int] | None) -> None:
    assert asked_range(asked, 10, None, '"x"') == expected


@pytest.mark.parametrize("asked", ["bytes=10-", "bytes=5-3", "bytes=99-100"])
def test_a_range_outside_the_file_is_refused(asked: str) -> None:
    with pytest.raises(HTTPException) as refusal:
        asked_range(asked, 10, None, '"x"')

    assert refusal.value.status_code == 416


def test_a_range_of_another_version_of_the_file_gives_the_whole() -> None:
    assert asked_range("bytes=0-3", 10, '"old"', '"new"') is None


@pytest.mark.parametrize("name", ["page.html", "drawing.svg", "script.js", "paper.pdf", "data.xml", "no-suffix"])
def test_anything_active_is_offered_for_saving_only(name: str) -> None:
    answer = content(request(), b"<script>alert(1)</script>", f"outputs/{name}", "0" * 64)

    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "sandbox" in answer.headers["content-security-policy"]


def test_a_known_file_is_not_sent_again() -> None:
    answer = content(request(if_none_match=f'"{"0" * 64}"'), b"abc", "a.txt", "0" * 64)

    assert (answer.status_code, answer.body) == (304, b"")


def test_no_file_name_breaks_out_of_its_header() -> None:
    header = disposition('outputs/a"\r\nSet-Cookie: x=1;é\udcff.txt', is_shown=True)

    assert "\r" not in header and "\n" not in header and header.isascii()
    assert header.count('"') == 2
