"""Evidence that can be printed, stored and believed: short, one line, whatever was in the file."""

from collections import Counter
from collections.abc import Iterable

from service.sandbox.reader import shown

MAX_CHARS = 600
_BLANKS = str.maketrans("\n\r\t", "   ")


def excerpt(text: str, chars: int) -> str:
    """A piece of a file on one line; what is cut is not marked, as in the format we follow."""
    return printable(text.strip()[:chars])


def printable(text: str) -> str:
    """Text without control characters and half characters: neither JSON, databases nor terminals like them."""
    if text.isprintable():
        return text
    text = text.translate(_BLANKS)
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def capped(text: str) -> str:
    """A whole evidence sentence."""
    return text if len(text) <= MAX_CHARS else text[: MAX_CHARS - 1] + "…"


def labels(paths: Iterable[str]) -> dict[str, str]:
    """What to call files: their name alone where it is the only one of that name, else the whole path."""
    known = list(paths)
    names = Counter(path.rpartition("/")[2] for path in known)
    return {path: shown(name if names[name := path.rpartition("/")[2]] == 1 else path) for path in known}


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
