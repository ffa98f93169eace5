"""What a stopping worker does with the runs it holds."""

from dataclasses import dataclass, field
from typing import Any, cast

from sqlalchemy.exc import OperationalError

from schemas.states import Role, Stage
from service.leases import Leases
from service.storage.rows import Claim
from service.storage.runs import Runs


@dataclass
class FullDisk:
    """A database that can be asked and not written."""

    asked: list[int] = field(default_factory=list)

    def hand_back(self, claim: Claim, *_: Any, **__: Any) -> None:
        self.asked.append(claim.run_id)
        raise OperationalError("UPDATE runs", {}, Exception("database or disk is full"))


def claim(run_id: int) -> Claim:
    return Claim(run_id, "b", Stage.EXECUTE, 1, 1, 0, 0, "1", "with_skill", Role.TREATMENT, 1, None, {}, 0.0, "me")


def test_a_worker_stops_although_the_database_cannot_be_written() -> None:
    disk = FullDisk()
    leases = Leases(cast(Runs, disk), lease_seconds=60, heartbeat_seconds=60)

    with leases.hold(claim(1)) as first, leases.hold(claim(2)) as second:
        count = leases.hand_back_all()

    assert count == 2 and disk.asked == [1, 2]
    assert first.is_lost() and second.is_lost()
