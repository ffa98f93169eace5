"""Event streams: nothing twice, nothing missing, one look for many watchers, and an end."""

import asyncio
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from support.api import Served, archive, finish, make_parts, submit, work

from api.errors import TooMany
from api.watching import Hub
from cli.client import Client, parsed_events
from service.events import Watching


def read(client: httpx2.Client, batch_id: str, most: int | None = None, **headers: str) -> list[tuple]:
    """Events until the end, or so many."""
    found = []
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    with client.stream("GET", f"/v1/batches/{batch_id}/events", headers=named) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for event in parsed_events(answer.iter_lines()):
            found.append(event)
            if event[1] == "end" or (most and len(found) == most):
                return found
    return found


@pytest.fixture
def batch_id(client: httpx2.Client) -> str:
    """A batch of 6 runs; 3 stages each make 18 events."""
    return str(submit(client, archive(cases=3)).json()["batch_id"])


def test_a_watcher_sees_every_stage_once_and_the_end(served: Served, client: httpx2.Client, batch_id: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(read, client, batch_id, Last_Event_ID="0")
        work(served.parts, batch_id, "mine")
        finish(served.parts, batch_id)
        events = watching.result(30)

    stages = [event for event in events if event[1] == "stage"]
    assert Counter(data["stage"] for _, _, data in stages) == {"execute": 6, "check": 6, "judge": 6}
    assert len({event_id for event_id, _, _ in stages}) == 18
    assert events[-1][1:] == ("end", {"batch_id": batch_id, "state": "finished"})


def test_a_watcher_that_comes_back_gets_what_it_missed(served: Served, client: httpx2.Client, batch_id: str) -> None:
    work(served.parts, batch_id, "mine")
    finish(served.parts, batch_id)
    everything = [event for event in read(client, batch_id, Last_Event_ID="0") if event[1] == "stage"]

    seen = everything[10][0]
    rest = [event for event in read(client, batch_id, Last_Event_ID=str(seen)) if event[1] == "stage"]

    assert rest == everything[11:]


def test_a_batch_that_ended_says_so_at_once(served: Served, client: httpx2.Client, batch_id: str) -> None:
    client.post(f"/v1/batches/{batch_id}/cancel")
    served.parts.stages.aggregate(batch_id, served.parts.aggregate)

    kinds = [kind for _, kind, _ in read(client, batch_id)]

    assert kinds == ["progress", "end"]


def test_many_watchers_cost_the_database_as_much_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    look = Watching.look

    def counted(self: Watching, ids: list[str], after: int):
        looks.append(threading.get_ident())
        return look(self, ids, after)

    monkeypatch.setattr(Watching, "look", counted)
    parts = make_parts(tmp_path)
    with Served(parts) as running, running.client() as client, ThreadPoolExecutor(30) as pool:
        batch = submit(client, archive(cases=1)).json()["batch_id"]
        before = threading.active_count()
        watchers = [pool.submit(read, client, batch) for _ in range(30)]
        work(parts, batch, "default")
        finish(parts, batch)
        results = [watcher.result(30) for watcher in watchers]
    parts.close()

    assert all(events[-1][1] == "end" for events in results)
    # Some seconds of one look each half second, not thirty times that; and no thread per watcher beside the test's own.
    assert len(looks) < 40
    assert len(set(looks)) <= max(8, before)


def test_the_client_follows_a_batch_over_a_restart_of_the_api(tmp_path: Path) -> None:
    parts = make_parts(tmp_path)
    with Served(parts) as first:
        port = first.url.rsplit(":", 1)[1]
        with first.client() as client:
            batch = submit(client, archive(cases=2)).json()["batch_id"]
        seen: list[tuple[str, dict]] = []
        watcher = threading.Thread(target=lambda: seen.extend(Client(first.url).events(batch, 0)), daemon=True)
        watcher.start()
        work(parts, batch, "default", settle=2)
    with Served(parts, int(port)):
        work(parts, batch, "default")
        finish(parts, batch)
        watcher.join(30)
    parts.close()

    stages = [data["id"] for kind, data in seen if kind == "stage"]
    assert len(stages) == len(set(stages)) == 12
    assert seen[-1][0] == "end"


def test_progress_carries_the_counts(served: Served, client: httpx2.Client, batch_id: str) -> None:
    work(served.parts, batch_id, "mine", settle=2)

    _, kind, data = read(client, batch_id, most=1)[0]

    assert (kind, data["settled"], data["total"]) == ("progress", 2, 6)
    assert json.dumps(data)


def test_no_team_takes_the_places_of_all_others(tmp_path: Path) -> None:
    parts = make_parts(tmp_path, most_watchers=2)
    with Served(parts) as running:
        mine, theirs = running.client(running.token("mine")), running.client(running.token("theirs"))
        with mine, theirs:
            ids = [submit(one).json()["batch_id"] for one in (mine, theirs)]
            with mine.stream("GET", f"/v1/batches/{ids[0]}/events") as first:
                lines = first.iter_lines()  # a name for it, or it would be closed behind its first line
                next(lines)
                with mine.stream("GET", f"/v1/batches/{ids[0]}/events") as second:
                    pass
                with theirs.stream("GET", f"/v1/batches/{ids[1]}/events") as third:
                    statuses = [first.status_code, second.status_code, third.status_code]
    parts.close()

    assert statuses == [200, 429, 200]


def test_a_place_is_taken_when_it_is_given_not_when_the_answer_begins(tmp_path: Path) -> None:
    parts = make_parts(tmp_path)

    async def crowd() -> tuple[list[int], int]:
        hub = Hub(parts.watching, most=2)
        asked = await asyncio.gather(*(hub.stream("b", None, team) for team in "xyzx"), return_exceptions=True)
        refused = [number for number, one in enumerate(asked) if isinstance(one, TooMany)]
        del asked  # nobody reads them, as when clients went away at once
        while hub.watchers:
            await asyncio.sleep(0.01)
        again = await hub.stream("b", None, "z")
        watchers = hub.watchers
        await again.aclose()
        await hub.close()
        return refused, watchers

    refused, watchers = asyncio.run(crowd())
    parts.close()

    assert (refused, watchers) == ([2, 3], 1)
