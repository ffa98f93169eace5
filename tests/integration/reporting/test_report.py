"""The page in a real browser, with content that wants to get out of it."""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from support.judged_runs import grading, passing, plan, run

from schemas.grading import DimensionScore, EvalFeedback, Grading, Suggestion, UserNotes
from schemas.states import Outcome
from service.aggregation.benchmark import aggregate
from service.aggregation.records import CaseFacts, RunRecord
from service.reporting.excerpts import Limits
from service.reporting.page import write_report

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    '<img src=x onerror="window.pwned=2">',
    '" onmouseover="window.pwned=3" x=\'',
    "</style></title><svg onload=window.pwned=4>",
    '{{ 7*7 }}{% raw %}<iframe src="javascript:window.parent.pwned=5">',
    "שלום \u202egnp.exe 😀👩‍👩‍👧 \x00\x1b[31m $x^{ \ud800 ]]> <!-- &amp;",
)
TRANSCRIPT = ("".join(HOSTILE) + "\n").encode("utf-8", "replace")


class HostileFiles:
    """A 5 MB transcript and outputs with names and contents nobody should trust."""

    def __init__(self) -> None:
        self.files = {
            "transcript.md": TRANSCRIPT * (5 * 2**20 // len(TRANSCRIPT) + 1),
            "outputs/<script>window.pwned=6<script>.html": b"<script>window.pwned=7</script>",
            "outputs/evil.svg": b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=8'/>",
            "outputs/fake.png": b"<script>window.pwned=9</script>",
            "outputs/blob.bin": b"\0\1\2",
        }

    def names(self, run: RunRecord) -> Iterable[str]:
        return self.files if run.run_number == 1 else ()

    def open(self, run: RunRecord, name: str) -> IO[bytes]:
        assert run.run_number == 1
        return BytesIO(self.files[name])


def hostile_records() -> list[RunRecord]:
    records = []
    for number, text in enumerate(HOSTILE):
        facts = CaseFacts(text if number % 2 else number, text, prompt=text * 3, weights={text: 1.0})
        for arm, passed in (("with_skill", True), ("without_skill", False)):
            for k in (1, 2):
                judged = grading(passed, k == 1, texts=(text, f"{text} again")).model_copy(
                    update={
                        "rubric_scores": (DimensionScore(name=text, score=4 if passed else 2, evidence=text),),
                        "user_notes": UserNotes(uncertainties=(text,)),
                        "eval_feedback": EvalFeedback(suggestions=(Suggestion(assertion=text, reason=text),)),
                    }
                )
                records.append(run(facts, arm, k, judged, seconds=1.5, tokens=100 * k))
        records.append(run(facts, "with_skill", 3, outcome=Outcome.EXECUTOR_ERROR, reason=text))
    return records


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    records = hostile_records()
    batch = plan()
    aggregates = aggregate(records, batch)
    path = tmp_path_factory.mktemp("report") / "report.html"
    with path.open("wb") as out:
        write_report(aggregates, records, HostileFiles(), out)
    aggregates.close()
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        # As for servers: absent at home is a skip that says so, absent in CI is a failure.
        refuse = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        refuse("chromium is not installed; install the package chromium")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


def opened(browser: Browser, path: Path, **options: object) -> Page:
    page = browser.new_context(**options).new_page()  # type: ignore[arg-type]
    page.goto(path.as_uri())
    return page


def test_nothing_in_the_page_executes_and_nothing_is_fetched(browser: Browser, page_file: Path) -> None:
    context = browser.new_context()
    page = context.new_page()
    requests: list[str] = []
    dialogs: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    page.goto(page_file.as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.wait_for_load_state("networkidle")

    assert page.evaluate("window.pwned") is None
    assert dialogs == []
    assert [url for url in requests if not url.startswith(("file:", "data:"))] == []
    counts = page.evaluate(
        "['script','iframe','object','embed','link','form'].map(t => document.getElementsByTagName(t).length)"
    )
    assert counts == [0, 0, 0, 0, 0, 0]
    handlers = (
        "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes]).filter(a => /^on/i.test(a.name)).length"
    )
    assert page.evaluate(handlers) == 0


def test_hostile_text_is_shown_as_text(browser: Browser, page_file: Path) -> None:
    page = opened(browser, page_file)
    body = page.evaluate("document.body.textContent")
    for text in HOSTILE[:5]:
        assert text in body
    assert "{{ 7*7 }}" in body
    assert "fake.png" in body
    assert "שלום" in body and "😀" in body


def test_a_five_megabyte_transcript_is_cut_in_the_middle_and_says_so(browser: Browser, page_file: Path) -> None:
    assert page_file.stat().st_size < 3 * 2**20
    page = opened(browser, page_file)
    assert "bytes left out" in page.evaluate("document.body.textContent")


def test_the_verdict_is_said_in_words_on_top(browser: Browser, page_file: Path) -> None:
    page = opened(browser, page_file)
    assert page.locator("#verdict .word").inner_text() == "The skill helps"
    assert "with_skill helps: overall score +0." in page.locator("#verdict .sentence").inner_text()
    assert page.locator("#verdict").bounding_box()["y"] < 400  # type: ignore[index]


def test_charts_are_drawings_in_the_pages_own_colours(browser: Browser, page_file: Path) -> None:
    page = opened(browser, page_file)
    assert page.locator("svg.forest").is_visible()
    assert not page.locator("svg.forest-narrow").is_visible()
    source = page_file.read_text(encoding="utf-8")
    assert "var(--treatment)" in source
    assert "#040404" not in source


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_differ_and_both_can_be_read(browser: Browser, page_file: Path, scheme: str) -> None:
    page = opened(browser, page_file, color_scheme=scheme)
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        ".map(c => c.match(/\\d+/g).slice(0, 3).map(Number).reduce((a, b) => a + b) / 765)"
    )
    assert abs(ink - paper) > 0.6
    assert (paper > 0.5) == (scheme == "light")


def test_a_phone_needs_no_sideways_scrolling_and_gets_its_own_chart(browser: Browser, page_file: Path) -> None:
    page = opened(browser, page_file, viewport={"width": 360, "height": 740})
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert page.locator("svg.forest-narrow").is_visible()
    assert not page.locator("svg.forest").is_visible()


def test_the_keyboard_reaches_and_opens_everything(browser: Browser, page_file: Path) -> None:
    page = opened(browser, page_file)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdict"
    page.locator("details.case > summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.case").first.get_attribute("open") is not None
    run_summary = page.locator("details.run > summary").first
    run_summary.focus()
    page.keyboard.press("Space")
    assert page.locator("details.run").first.locator("ul.checks").first.is_visible()


def test_printing_gives_pages_without_navigation(browser: Browser, page_file: Path, tmp_path: Path) -> None:
    page = opened(browser, page_file, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    data = page.pdf(path=str(tmp_path / "report.pdf"))
    assert data.startswith(b"%PDF")


def test_a_batch_without_any_score_still_has_a_page() -> None:
    records = [run(1, arm, 1, outcome=Outcome.TIMEOUT) for arm in ("with_skill", "without_skill")]
    out = BytesIO()
    write_report(aggregate(records, plan()), records, HostileFiles(), out)
    assert "No comparison" in out.getvalue().decode()


def test_an_interim_simulated_batch_says_both_before_the_verdict() -> None:
    from dataclasses import replace

    records = [replace(run(1, arm, 1, passing(1, 2)), simulated=True) for arm in ("with_skill", "without_skill")]
    found = aggregate(records, replace(plan(), is_interim=True))
    out = BytesIO()
    write_report(found, records, HostileFiles(), out)
    text = out.getvalue().decode()
    assert text.index("Interim.") < text.index("Simulated.") < text.index('class="word"')


def test_gradings_without_expectations_do_not_break_the_page() -> None:
    records = [run(1, "with_skill", 1, Grading(rubric_scores=(DimensionScore(name="clarity", score=3),)))]
    out = BytesIO()
    write_report(aggregate(records, plan()), records, HostileFiles(), out)
    assert "clarity" in out.getvalue().decode()


def test_long_evidence_takes_no_case_out_of_the_page_and_what_is_left_out_is_counted() -> None:
    records = [
        run(case, arm, number, grading(True, texts=["x" * 5_000]))
        for case in range(5)
        for arm in ("with_skill", "without_skill")
        for number in range(1, 4)
    ]
    out = BytesIO()
    write_report(aggregate(records, plan()), records, HostileFiles(), out, Limits(words_bytes=100_000))
    text = out.getvalue().decode()
    shown = [int(number) for number in re.findall(r'<span class="small">(\d) of 6 runs</span>', text)]
    assert len(shown) == 5
    assert f"{sum(shown)} of 30 runs shown: the page is large enough" in text
    assert "Every run" not in text


def test_a_page_that_holds_every_run_says_so() -> None:
    records = [run(1, arm, 1, passing(1, 2)) for arm in ("with_skill", "without_skill")]
    out = BytesIO()
    write_report(aggregate(records, plan()), records, HostileFiles(), out)
    assert "2 of 2 runs shown." in out.getvalue().decode()
