"""The prompts, one file per purpose. The first line of a file is its version; the digest of the rest belongs to it."""

import functools
import hashlib
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True)
class Prompt:
    """A prompt's text and its version, for example `judge-1.3fa94c21`."""

    name: str
    version: str
    text: str


@functools.cache
def prompt(name: str) -> Prompt:
    """The prompt of that name."""
    first, _, text = (files(__package__) / f"{name}.md").read_text(encoding="utf-8").partition("\n")
    number = first.removeprefix("version:").strip()
    # The digest is part of the version: a text that was changed and kept its number is still another prompt.
    digest = hashlib.sha256(text.strip().encode()).hexdigest()[:8]
    return Prompt(name, f"{name}-{number}.{digest}", text.strip())
