"""Fixtures for runs of a small skill: simulator, client, sandbox, workspace. Import them into a conftest."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from service.models import ClientSettings, ModelClient
from service.models.attempts import Patience
from service.runners.arms import canary_of, plant
from service.runners.port import Assignment, SkillFolder
from service.sandbox import Sandbox, open_sandbox
from simulator import Simulator, start

CANARY = canary_of("secret", "batch-1", "digest")
SKILL = """---
name: release-notes
description: Use when writing release notes.
---
# Release notes

- Group changes under Added, Changed and Fixed
- Name the version in the first heading
- See references/tone.md for the tone
"""


@pytest.fixture(scope="session")
def sandbox(bubblewrap: str) -> Sandbox:
    """The real one."""
    assert bubblewrap
    return open_sandbox("bwrap")


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """A simulator of this test alone."""
    with start() as running:
        yield running


@pytest.fixture
def models(simulator: Simulator) -> Iterator[ModelClient]:
    """Our client in front of it; tries once more."""
    patience = Patience(max_retries=1, retry_after_cap_seconds=0.5, first_pause_seconds=0.02)
    client = ModelClient(ClientSettings("sk-the-real-key", simulator.url, 16, patience))
    yield client
    client.close()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder that other users may pass through, as the sandbox wants it when we are root."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder == tmp_path or folder.name.startswith("pytest-"):
            folder.chmod(0o755)
    return tmp_path


Assign = Callable[..., Assignment]


@pytest.fixture
def assign(work: Path) -> Assign:
    """Makes an assignment with a workspace of its own."""
    count = iter(range(1, 100))

    def make(prompt: str = "Write release notes into NOTES.md", skill: bool = True, **changes: Any) -> Assignment:
        number = next(count)
        folder = work / f"run-{number}"
        workspace = folder / "workspace"
        workspace.mkdir(parents=True)
        for name in changes.get("inputs", ()):
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text("- fixed a crash\n- added a button\n")
        given: dict[str, Any] = {
            "run_id": number,
            "batch_id": "batch-1",
            "case_id": 1,
            "configuration": "with_skill" if skill else "without_skill",
            "run_number": number,
            "prompt": prompt,
            "workspace": workspace,
            "inputs": (),
            "skill": stage_skill(folder / "skill" / "release-notes") if skill else None,
            "model": "simulated",
            "timeout_seconds": 60.0,
            "canary" if skill else "other_canary": CANARY,
        }
        assignment = Assignment(**{**given, **changes})
        if assignment.skill:
            plant(assignment.skill.folder, CANARY)  # as the stage does for every runner
        return assignment

    return make


def stage_skill(folder: Path) -> SkillFolder:
    """A skill as a stage lays it out."""
    (folder / "references").mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    (folder / "references" / "tone.md").write_text("# Tone\n\n- Plain words\n")
    return SkillFolder(folder, "release-notes", "Use when writing release notes.", "digest")
