"""Takes out of a result what would tell whose it is: names of configurations, of skills and of their versions."""

import re
from collections.abc import Iterable

HIDDEN = "[hidden]"
# Nobody writes these by chance.
_CONFIGURATION = re.compile(r"(?:with|without|old|new)[_-]skill", re.IGNORECASE)


class Blinding:
    """Hides the names of both sides, in both results alike; a name that the task itself uses tells nothing."""

    def __init__(self, skills: Iterable[str], versions: Iterable[str], task: str) -> None:
        names = [_whole_word(name) for name in skills] + [_whole_version(label) for label in versions]
        telling = [name for name in dict.fromkeys(names) if not re.search(name, task, re.IGNORECASE)]
        # The longest first: a name may begin with another.
        telling.sort(key=len, reverse=True)
        self._names = re.compile("|".join(telling), re.IGNORECASE) if telling else None

    def __call__(self, text: str) -> str:
        """The text without them."""
        text = _CONFIGURATION.sub(HIDDEN, text)
        return self._names.sub(HIDDEN, text) if self._names else text


def _whole_word(name: str) -> str:
    """The name however its words are joined."""
    words = r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", name) if word)
    return rf"(?<![A-Za-z0-9]){words}(?![A-Za-z0-9])"


def _whole_version(label: str) -> str:
    """The label alone: v1, but neither v12 nor v1.2."""
    return rf"(?<![\w.-]){re.escape(label)}(?![\w-]|\.\d)"
