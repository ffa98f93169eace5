"""Live progress of a batch: a few lines that redraw on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from schemas.states import Stage
from service.batches import Status

_STAGES = (Stage.WAITING, Stage.EXECUTE, Stage.CHECK, Stage.JUDGE, Stage.SETTLED)
_PLAIN_SECONDS = 2.0


class Pace:
    """Runs per second since we began to watch, and the time left at that pace."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._settled_at_first = 0

    def words(self, status: Status) -> str:
        """`12.3 runs/s, 40 s left`, or nothing while it is too early to say."""
        now, settled = time.monotonic(), status.progress.settled
        if self._began is None:
            self._began, self._settled_at_first = now, settled
        done, seconds = settled - self._settled_at_first, now - self._began
        if done < 1 or seconds < 0.5:
            return ""
        left = (status.progress.total - settled) * seconds / done
        return f"{done / seconds:.1f} runs/s, {left:.0f} s left"


def _counts(counts: dict[str, int]) -> str:
    return " ".join(f"{name} {count}" for name, count in counts.items() if count)


def plain_line(status: Status, pace: str) -> str:
    """One line for logs."""
    stages = {stage.value: status.progress.stages.get(stage, 0) for stage in _STAGES[:-1]}
    outcomes = dict(sorted(status.progress.outcomes.items()))
    head = f"{status.batch.state:11} {status.progress.settled}/{status.progress.total} settled"
    return "  ".join(part for part in (head, _counts(stages), _counts(outcomes), pace) if part)


def _drawing(status: Status, pace: str) -> Group:
    table = Table.grid(padding=(0, 2))
    for _ in _STAGES:
        table.add_column(justify="right")
    table.add_row(*(Text(stage.value, style="dim") for stage in _STAGES))
    table.add_row(*(str(status.progress.stages.get(stage, 0)) for stage in _STAGES))
    bar = ProgressBar(total=max(1, status.progress.total), completed=status.progress.settled, width=60)
    outcomes = _counts(dict(sorted(status.progress.outcomes.items())))
    return Group(bar, table, Text(outcomes), Text(f"{status.batch.state}  {pace}", style="dim"))


class ProgressView:
    """Shows status after status."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, transient=True) if self._console.is_terminal else None
        self._pace = Pace()
        self._last = ("", 0.0)

    def __enter__(self) -> "ProgressView":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, status: Status) -> None:
        """Redraw, or print a line if something changed and the last one is a while ago."""
        pace = self._pace.words(status)
        if self._live:
            self._live.update(_drawing(status, pace))
            return
        line, now = plain_line(status, pace), time.monotonic()
        text, when = self._last
        if line != text and (status.is_ended or now - when >= _PLAIN_SECONDS):
            print(line, file=sys.stderr, flush=True)
            self._last = (line, now)


def watch(
    ask: Callable[[], Status],
    view: ProgressView,
    every_seconds: float = 0.1,
    must_hold: Callable[[], None] = lambda: None,
) -> Status:
    """Show a batch until it ends; gives its last status. `must_hold` raises when waiting has become pointless."""
    while True:
        must_hold()
        status = ask()
        view.show(status)
        if status.is_ended:
            return status
        time.sleep(every_seconds)
