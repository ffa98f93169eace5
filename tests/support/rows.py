"""Rows to test with: a store with a batch in it."""

from collections.abc import Sequence
from typing import Any

from schemas.states import BatchState, Role
from service.storage.rows import NewRun, new_id
from service.storage.store import Store

SETTINGS = {"structural_gate": {"value": True, "source": "default"}}


def add_batch(
    store: Store, runs: int = 2, team: str = "default", planned: Sequence[NewRun] = (), **columns: Any
) -> str:
    """A batch of that many waiting runs of one case, or of the runs that are planned."""
    team_id = store.teams.named(team).id
    batch_id = new_id()
    with store.submit(team_id) as submit:
        version = submit.skill_version(skill="s", digest="d" * 64, description="", files={}, git_hash=None)
        suite_id = submit.suite({"digest": "e" * 64, "dialect": "skill_creator", "body": "{}"}, [("1", "{}")])
        row = {
            "id": batch_id,
            "suite_id": suite_id,
            "skill_version_id": version.id,
            "iteration": submit.next_iteration("s"),
            "state": BatchState.ACCEPTED,
            "settings": SETTINGS,
            "inputs": {},
            **columns,
        }
        arm = (Role.TREATMENT, "with_skill")
        submit.batch(row, planned or [NewRun(n, 0, "1", arm[1], arm[0], n + 1, version.id) for n in range(runs)])
    return batch_id
