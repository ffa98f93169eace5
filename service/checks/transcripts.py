"""Checks on what the agent said and did: its transcript and the counts of its tool calls."""

import re

from schemas.checks import NoErrors, ToolNotUsed, ToolUsed, TranscriptContains, TranscriptNotContains
from service.checks.evidence import excerpt, printable
from service.checks.searching import Text, banned_names, excuses, find, find_banned, found_banned, wanted
from service.checks.verdict import Given, Undecided, Verdict

_ERRORS = ("Error:", "FAILED", "Exception:", r"Traceback \(most recent", "Command failed")
_LINES_PER_PATTERN = 2
_TRANSCRIPT_FILE = "transcript.md"


def no_errors(_fields: NoErrors, given: Given) -> Verdict:
    """The transcript has no line that looks like an error; without a transcript that is true of nothing."""
    transcript = _any_transcript(given)
    if transcript is None:
        return Verdict(True, "No transcript found (skipped)")
    lines = transcript.split("\n")
    found: dict[int, str] = {}
    for pattern in _ERRORS:
        search = re.compile(pattern).search
        hits = [(number, line) for number, line in enumerate(lines, 1) if search(line)]
        found |= dict(hits[:_LINES_PER_PATTERN])
    if not found:
        return Verdict(True, "No error patterns found in transcript")
    first = [f"transcript:{number} — {excerpt(found[number], 60)}" for number in sorted(found)[:3]]
    return Verdict(False, "Found errors: " + "; ".join(first))


def transcript_contains(fields: TranscriptContains, given: Given) -> Verdict:
    """The transcript holds the text."""
    evidence = find(fields, [_transcript(given)], given.engine)
    return Verdict(True, evidence) if evidence else Verdict(False, f"{wanted(fields)} in the transcript")


def transcript_not_contains(fields: TranscriptNotContains, given: Given) -> Verdict:
    """No line of the transcript has the text; there are no comments in a transcript, headings count."""
    texts = [_transcript(given)]
    banned = find_banned(fields, fields.except_context or [], texts, given.engine, skip_comments=False)
    if banned.hits:
        return Verdict(False, found_banned(banned.hits))
    return Verdict(True, f"No matches for '{banned_names(fields)}' in the transcript{excuses(banned.excused, 0)}")


def tool_used(fields: ToolUsed, given: Given) -> Verdict:
    """The agent called the tool."""
    calls = _calls(fields.tool, given)
    return Verdict(calls > 0, _called(fields.tool, calls))


def tool_not_used(fields: ToolNotUsed, given: Given) -> Verdict:
    """The agent never called the tool."""
    calls = _calls(fields.tool, given)
    return Verdict(calls == 0, _called(fields.tool, calls))


def _any_transcript(given: Given) -> str | None:
    """The run's own transcript first: a file among the outputs is what the agent chose to write."""
    if given.transcript is not None:
        return given.transcript
    if _TRANSCRIPT_FILE in given.outputs.listing.files:
        return given.outputs.read_text(_TRANSCRIPT_FILE)
    return None


def _transcript(given: Given) -> Text:
    transcript = _any_transcript(given)
    if transcript is None:
        raise Undecided("there is no transcript of this run")
    return Text("transcript", "the transcript", transcript)


def _calls(tool: str, given: Given) -> int:
    if given.metrics is None or given.metrics.tool_calls is None:
        raise Undecided("the metrics of this run do not say which tools were called")
    return given.metrics.tool_calls.get(tool, 0)


def _called(tool: str, calls: int) -> str:
    return f"Tool '{printable(tool)}' was called {calls} time(s)"
