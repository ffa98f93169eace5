"""What happens to batches while people watch: one look at the database for everybody who watches anything."""

from collections.abc import Sequence
from dataclasses import dataclass

from service.batches import Status
from service.storage.store import Store, database_errors
from service.storage.views import RunEvent, Views

# Two transactions may commit in the other order than their ids; a moment later both are there.
_SETTLE_SECONDS = 0.5
PAGE = 1_000


@dataclass(frozen=True)
class Look:
    """What one look saw: where each batch stands, and the stages that ended since the look before."""

    statuses: dict[str, Status]
    events: list[RunEvent]


class Watching:
    """Looks for many batches at once; keeps nothing between two looks."""

    def __init__(self, store: Store) -> None:
        self._views = Views(store.engine)

    def look(self, batch_ids: Sequence[str], after: int) -> Look:
        """State of the batches, and events with an id above `after`."""
        with database_errors():
            # Events first: a batch seen as ended has all its events in an earlier or in this look, bar the last moment.
            events = self._views.events(batch_ids, after, _SETTLE_SECONDS, PAGE)
            found = self._views.states(batch_ids)
        return Look({name: Status(*parts) for name, parts in found.items()}, events)

    def events(self, batch_id: str, after: int, is_ended: bool = False) -> list[RunEvent]:
        """A page of one batch's events; nothing is written out of order any more once it has ended."""
        with database_errors():
            return self._views.events([batch_id], after, -60.0 if is_ended else _SETTLE_SECONDS, PAGE)

    def newest(self) -> int:
        """Where to begin for somebody who wants only what is to come."""
        with database_errors():
            return self._views.newest_event(_SETTLE_SECONDS)
