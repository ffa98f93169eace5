"""Ctrl-C that is never lost."""

import signal
from types import FrameType, TracebackType


class CtrlC:
    """Remembers that Ctrl-C was pressed: its exception alone is lost when it comes while an object is cleared away."""

    def __init__(self) -> None:
        self._is_pressed = False

    def __enter__(self) -> "CtrlC":
        self._before = signal.signal(signal.SIGINT, self._remember)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.signal(signal.SIGINT, self._before)

    def _remember(self, _number: int, _frame: FrameType | None) -> None:
        self._is_pressed = True
        raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt if it was pressed."""
        if self._is_pressed:
            raise KeyboardInterrupt
