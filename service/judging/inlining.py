"""How much of which text is shown: all of it up to a budget, then head and tail with what was left out."""

from collections.abc import Sequence

LEAST_CHARS = 400  # of a text that must be shortened


def shares(lengths: Sequence[int], budget: int) -> list[int]:
    """How many characters each text may have: short ones whole, the long ones an equal part of what is left."""
    given = [0] * len(lengths)
    left, waiting = budget, len(lengths)
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        given[index] = min(lengths[index], max(left // waiting, 0))
        left, waiting = left - given[index], waiting - 1
    return given


def shortened(text: str, most: int) -> str:
    """The text, or its head and tail around a line that says how much is missing."""
    if len(text) <= most:
        return text
    keep = max(most, LEAST_CHARS)
    head, tail = keep * 2 // 3, keep - keep * 2 // 3
    gone = len(text) - head - tail
    if gone <= 0:
        return text
    lines = text[head : len(text) - tail].count("\n")
    return f"{text[:head]}\n[... {gone:,} characters with {lines:,} line breaks left out here ...]\n{text[-tail:]}"
