"""Event streams: one look at the database serves everybody who watches; no thread belongs to a watcher."""

import asyncio
import json
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict

from api.documents import ProgressDocument
from api.errors import TooMany
from service import log
from service.batches import Status
from service.errors import Unavailable
from service.events import PAGE, Look, Watching
from service.storage.views import RunEvent

_EVERY_SECONDS = 0.5
_KEEP_ALIVE_SECONDS = 15.0
# Then the client comes back by itself, and its token is looked at again.
_LONGEST_SECONDS = 300.0
_RECENT = 2 * PAGE


class Channel:
    """What is known about one watched batch: its last status and its recent events."""

    def __init__(self) -> None:
        self.watchers = 0
        self.status: Status | None = None
        self.floor: int | None = None  # every event above it is in `recent`, unless too many came
        self.recent: deque[RunEvent] = deque(maxlen=_RECENT)
        self.changed = asyncio.Condition()

    def take(self, status: Status | None, events: list[RunEvent], floor: int) -> bool:
        """Remember a look; says whether there is anything new."""
        is_new = bool(events) or (status is not None and status != self.status) or self.floor is None
        if self.floor is None:
            self.floor = floor
        overflow = len(self.recent) + len(events) - _RECENT
        if overflow > 0:
            pushed_out = [*self.recent, *events][overflow - 1]
            self.floor = pushed_out.id
        self.recent.extend(events)
        if status is not None and status != self.status:
            self.status = status
        return is_new


class Hub:
    """All watched batches of this process."""

    def __init__(self, watching: Watching, most: int, every_seconds: float = _EVERY_SECONDS) -> None:
        self._watching = watching
        self._most = most
        self._every_seconds = every_seconds
        self._channels: dict[str, Channel] = {}
        self._of_team: Counter[str] = Counter()
        self._poller: asyncio.Task[None] | None = None

    @property
    def watchers(self) -> int:
        """How many watch now."""
        return sum(channel.watchers for channel in self._channels.values())

    async def stream(self, batch_id: str, after: int | None, team: str) -> AsyncGenerator[bytes]:
        """Events of a batch until it ends, once a place is taken; `after` is the last event the client has seen."""
        events = self._events(batch_id, after, team)
        # Begun here, not when the answer is sent: all who ask at once would find the same place free.
        return _continued(await anext(events), events)

    def _is_full(self, team: str) -> bool:
        """Whether one more of a team would be too many; no team takes more than half of all places."""
        return self.watchers >= self._most or self._of_team[team] >= (self._most + 1) // 2

    async def _events(self, batch_id: str, after: int | None, team: str) -> AsyncGenerator[bytes]:
        if self._is_full(team):
            raise TooMany(
                "too many event streams are open in this process; come again or ask for the batch itself", 5.0
            )
        channel = self._join(batch_id)
        self._of_team[team] += 1
        try:
            async for piece in Watcher(self._watching, batch_id, channel, after).pieces():
                yield piece
        finally:
            self._of_team[team] -= 1
            self._leave(batch_id, channel)

    async def close(self) -> None:
        """Stop looking."""
        if self._poller:
            self._poller.cancel()
            await asyncio.gather(self._poller, return_exceptions=True)

    def _join(self, batch_id: str) -> Channel:
        channel = self._channels.setdefault(batch_id, Channel())
        channel.watchers += 1
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        return channel

    def _leave(self, batch_id: str, channel: Channel) -> None:
        channel.watchers -= 1
        if channel.watchers == 0 and self._channels.get(batch_id) is channel:
            del self._channels[batch_id]

    async def _poll(self) -> None:
        """Look while anybody watches; a slow database is asked less often."""
        cursor: int | None = None
        while self._channels:
            began = time.monotonic()
            try:
                if cursor is None:
                    cursor = await asyncio.to_thread(self._watching.newest)
                ids = list(self._channels)
                look = await asyncio.to_thread(self._watching.look, ids, cursor)
                await self._tell(ids, look, cursor)
                cursor = max([cursor, *(event.id for event in look.events)])
            except Unavailable as error:
                log.warning("watching waits", reason=str(error))
                await asyncio.sleep(1.0)
            except Exception:  # noqa: BLE001  everybody's eyes: whatever one look meets, the next one is tried
                log.error("watching broke, trying again", with_traceback=True)
                await asyncio.sleep(1.0)
            await asyncio.sleep(max(self._every_seconds, 5 * (time.monotonic() - began)))

    async def _tell(self, ids: list[str], look: Look, floor: int) -> None:
        by_batch: dict[str, list[RunEvent]] = {}
        for event in look.events:
            by_batch.setdefault(event.batch_id, []).append(event)
        for batch_id in ids:
            channel = self._channels.get(batch_id)
            if channel and channel.take(look.statuses.get(batch_id), by_batch.get(batch_id, []), floor):
                async with channel.changed:
                    channel.changed.notify_all()


class Watcher:
    """One client's way through a channel: catch up from the database, then follow what is new."""

    def __init__(self, watching: Watching, batch_id: str, channel: Channel, after: int | None) -> None:
        self._watching = watching
        self._batch_id = batch_id
        self._channel = channel
        self._cursor = after
        self._shown: Status | None = None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Everything to be sent, until the batch ends or the stream is old."""
        began = time.monotonic()
        yield b"retry: 1000\n\n"
        while time.monotonic() - began < _LONGEST_SECONDS:
            if self._channel.floor is not None:
                async for piece in self._news(self._channel.floor):
                    yield piece
                status = self._channel.status
                if status is not None and status.is_ended and status is self._shown:
                    async for piece in self._rest():
                        yield piece
                    yield _piece("end", {"batch_id": self._batch_id, "state": status.batch.state})
                    return
            if not await self._wait():
                yield b": still here\n\n"

    async def _news(self, floor: int) -> AsyncIterator[bytes]:
        """What this client has not seen: events first, then where the batch stands."""
        if self._cursor is None:
            self._cursor = floor
        while self._cursor < (self._channel.floor or 0):
            page = await asyncio.to_thread(self._watching.events, self._batch_id, self._cursor)
            for event in page:
                yield self._event(event)
            if len(page) < PAGE:
                self._cursor = max(self._cursor, floor)
                break
        for event in [event for event in self._channel.recent if event.id > self._cursor]:
            yield self._event(event)
        status = self._channel.status
        if status is not None and status is not self._shown:
            yield _piece("progress", ProgressDocument.of(status).model_dump(mode="json"))
        self._shown = status

    async def _rest(self) -> AsyncIterator[bytes]:
        """The last moment of a batch that has ended."""
        while page := await asyncio.to_thread(self._watching.events, self._batch_id, self._cursor or 0, True):
            for event in page:
                yield self._event(event)

    async def _wait(self) -> bool:
        """Until something changes; False after a while in which nothing did."""
        try:
            async with asyncio.timeout(_KEEP_ALIVE_SECONDS), self._channel.changed:
                if self._channel.status is not self._shown or self._has_news():
                    return True
                await self._channel.changed.wait()
        except TimeoutError:
            return False
        return True

    def _has_news(self) -> bool:
        newest = self._channel.recent[-1].id if self._channel.recent else 0
        return self._cursor is not None and newest > self._cursor

    def _event(self, event: RunEvent) -> bytes:
        self._cursor = max(self._cursor or 0, event.id)
        return _piece("stage", asdict(event), event.id)


async def _continued(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    async with aclosing(rest):
        yield first
        async for piece in rest:
            yield piece


def _piece(kind: str, data: object, event_id: int | None = None) -> bytes:
    name = f"id: {event_id}\n" if event_id is not None else ""
    return f"{name}event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
