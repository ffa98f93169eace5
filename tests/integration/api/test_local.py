"""What a server answers, the data folder answers as well."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.api import RUNNER, Served, archive, make_parts

from cli.client import Client
from cli.desk import Desk
from cli.local import Local
from service.admission import choose


@pytest.fixture(params=["server", "folder"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Desk]:
    parts = make_parts(tmp_path)
    if request.param == "folder":
        yield Local(parts)
    else:
        with Served(parts) as served, Client(served.url) as client:
            yield client
    parts.close()


def test_an_archive_is_submitted_as_its_folder_would_be(desk: Desk, tmp_path: Path) -> None:
    packed = tmp_path / "tiny.zip"
    packed.write_bytes(archive(cases=2))

    previewed = desk.submit(packed, settings=RUNNER, dry_run=True)
    accepted = desk.submit(str(packed), settings=RUNNER, max_open=1, idempotency_key="k")
    again = desk.submit(packed, settings=RUNNER, max_open=1, idempotency_key="k")

    assert previewed["estimate"]["runs"] == accepted["runs"] == 4
    assert (again["batch_id"], again["is_new"]) == (accepted["batch_id"], False)
    assert desk.batch(accepted["batch_id"])["skill"] == "tiny"


def test_at_most_so_many_runs_of_a_batch_are_open_as_was_said(tmp_path: Path) -> None:
    packed = tmp_path / "tiny.zip"
    packed.write_bytes(archive(cases=3))
    parts = make_parts(tmp_path)
    with Served(parts) as served, Client(served.url) as client:
        ids = [one.submit(packed, settings=RUNNER, max_open=1)["batch_id"] for one in (Local(parts), client)]
        parts.store.dispatch.admit(1_000, choose)
        stages = [one["progress"]["stages"] for one in map(client.batch, ids)]
    parts.close()

    assert stages == [{"waiting": 5, "execute": 1}] * 2
