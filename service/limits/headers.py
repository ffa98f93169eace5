"""What a provider's headers say about its limits."""

from collections.abc import Mapping

from service.limits.port import Seen

PREFIXES = ("anthropic-ratelimit-", "x-ratelimit-")  # recorded, and documented: one of them is there
KINDS = {"requests": "requests", "input_tokens": "input-tokens", "output_tokens": "output-tokens"}


def seen_in(headers: Mapping[str, str]) -> Seen | None:
    """The limits in an answer's headers (names in lower case); None when it names none."""
    found: dict[str, int] = {}
    for kind, word in KINDS.items():
        for part in ("limit", "remaining"):
            values = [whole(headers.get(f"{prefix}{word}-{part}")) for prefix in PREFIXES]
            found |= {f"{kind}_{part}": value for value in values[::-1] if value is not None}
    return Seen(**found) if found else None


def whole(text: str | None) -> int | None:
    """A number that is not negative; None for anything else: headers are not ours."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else None
