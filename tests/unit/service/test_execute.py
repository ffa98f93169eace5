"""The stage `execute`: what an arm holds before and after its run, and what is kept of one that was none."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.metrics import Metrics
from schemas.states import BatchState, Outcome, Role, Stage
from schemas.suite import Case, Statement
from service.errors import StageFailed
from service.execute import Execute
from service.jobs import Job
from service.leases import Held
from service.runners.port import Assignment, Execution
from service.settings import Settings
from service.stages import End
from service.storage.artifacts import FilesystemArtifacts
from service.storage.rows import BatchRow, Claim, SkillVersionRow

RULES = "Always count syllables: five, seven, five. Mention a season word in the first line.\n"
OLD_RULES = "Count nothing at all and write whatever comes to mind, but write it in the present tense.\n"
Agent = Callable[[Assignment], str | None]


class Scripted:
    """A runner whose agent is a function; what it gives back is the transcript."""

    def __init__(self, agent: Agent, name: str = "scripted") -> None:
        self.name = name
        self._agent = agent

    def run(self, assignment: Assignment) -> Execution:
        said = self._agent(assignment) or "nothing"
        return Execution(f"## Eval Prompt\n\n{said}", Metrics(), 0.0, transcript_events=b'{"type": "prompt"}\n')


@pytest.fixture
def artifacts(tmp_path: Path) -> FilesystemArtifacts:
    return FilesystemArtifacts(tmp_path / "artifacts", 1_000_000)


class Bench:
    """Versions of a skill, and runs of their arms."""

    def __init__(self, artifacts: FilesystemArtifacts) -> None:
        self._artifacts = artifacts
        self.old = self._version(0, {"SKILL.md": f"# Haiku\n{OLD_RULES}", "references/old.md": OLD_RULES})
        self.new = self._version(1, {"SKILL.md": f"# Haiku\n{RULES}", "references/new.md": RULES})

    def _kept(self, text: str) -> dict[str, Any]:
        blob = self._artifacts.put(text.encode())
        return {"sha256": blob.sha256, "size": blob.size, "executable": False}

    def _version(self, number: int, files: dict[str, str]) -> SkillVersionRow:
        kept = {path: self._kept(text) for path, text in files.items()}
        digest = hashlib.sha256(str(number).encode()).hexdigest()
        return SkillVersionRow(f"version-{number}", "team", "haiku", number, digest, None, None, "", kept, 0.0)

    def run(
        self,
        agent: Agent,
        skill: SkillVersionRow | None,
        other: SkillVersionRow | None,
        inputs: dict[str, str] | None = None,
        batch_id: str = "batch",
        command: tuple[str, ...] = (),
    ) -> End:
        """One run of an arm."""
        staged = [{"name": name, **self._kept(text)} for name, text in (inputs or {}).items()]
        settings = {"runner": "scripted", "executor_model": None, "execute_timeout_seconds": 9.0, "command": command}
        entries = {name: {"value": value, "source": "submit"} for name, value in settings.items()}
        batch = batch_row(entries, {"0": staged})
        claim = Claim(1, batch_id, Stage.EXECUTE, 1, 1, 0, 0, "1", "an_arm", Role.CONTROL, 1, None, {}, 0.0, "worker")
        job = Job(
            claim, batch, Case(id=1, prompt="p", statements=(Statement(text="e"),)), "skill_creator", skill, 1, other
        )
        runner = Scripted(agent, "command" if command else "scripted")
        return Execute(Settings(), self._artifacts, lambda _: runner)(job, Held(claim))


def batch_row(settings: dict[str, Any], inputs: dict[str, Any]) -> BatchRow:
    fields = {"id": "batch", "team_id": "team", "suite_id": "suite", "settings": settings, "inputs": inputs}
    known = {**fields, "iteration": 1, "state": BatchState.RUNNING, "priority": 0, "skill_version_id": "version-1"}
    return BatchRow(**{name: known.get(name) for name in BatchRow.__dataclass_fields__})


@pytest.fixture
def stage(artifacts: FilesystemArtifacts) -> Bench:
    return Bench(artifacts)


def leave(path: str, text: str) -> Agent:
    """An agent that writes one file, at a path of its run's folder."""

    def agent(assignment: Assignment) -> None:
        file = assignment.workspace.parent / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    return agent


def idle(_: Assignment) -> None:
    """An agent that does nothing."""


def test_a_clean_run_of_each_arm_goes_on(stage: Bench) -> None:
    for skill, other in ((stage.new, None), (None, stage.new), (stage.new, stage.old), (stage.old, stage.new)):
        end = stage.run(leave("workspace/out.md", "a haiku"), skill, other, {"in.txt": "a season"})

        assert end.to is Stage.JUDGE and end.files["outputs/out.md"] == b"a haiku"


def test_an_input_that_is_a_file_of_the_skill_is_no_excuse_for_the_arm_without_it(stage: Bench) -> None:
    with pytest.raises(
        StageFailed, match=r"workspace/in.md is a copy of the skill's references/new.md before"
    ) as raised:
        stage.run(idle, None, stage.new, {"in.md": RULES})

    assert raised.value.outcome is Outcome.CONTAMINATED


def test_between_two_versions_an_input_may_be_what_the_old_one_brought_along(stage: Bench) -> None:
    assert stage.run(idle, stage.new, stage.old, {"in.md": OLD_RULES}).to is Stage.JUDGE


@pytest.mark.parametrize("place", ["workspace/out.md", "home/.cache/x", "tmp/x"])
def test_what_an_agent_leaves_anywhere_is_looked_at(stage: Bench, place: str) -> None:
    for skill, other, text in ((None, stage.new, RULES), (stage.old, stage.new, RULES)):
        with pytest.raises(StageFailed, match=f"{place} is a copy of the skill's references/new.md after"):
            stage.run(leave(place, text), skill, other)


def test_a_contaminated_run_keeps_what_was_said(stage: Bench) -> None:
    def agent(assignment: Assignment) -> str:
        leave("tmp/x", RULES)(assignment)
        return "I found the rules lying about."

    with pytest.raises(StageFailed) as raised:
        stage.run(agent, None, stage.new)

    assert raised.value.outcome is Outcome.CONTAMINATED
    assert b"lying about" in raised.value.files["transcript.md"]
    assert raised.value.files["transcript.jsonl"] == b'{"type": "prompt"}\n'


def test_a_run_that_leaves_too_much_keeps_what_was_said(stage: Bench) -> None:
    def agent(assignment: Assignment) -> str:
        for number in range(2_001):
            (assignment.workspace / f"{number}.txt").touch()
        return "I wrote a lot."

    with pytest.raises(StageFailed, match="more than 2000 files") as raised:
        stage.run(agent, stage.new, None)

    assert b"I wrote a lot." in raised.value.files["transcript.md"]


def canaries(stage: Bench, skill: SkillVersionRow | None, other: SkillVersionRow | None, batch_id: str) -> list[Any]:
    """What a run's assignment carries, and what is planted in its own skill."""
    seen: list[Any] = []

    def agent(assignment: Assignment) -> None:
        page = (assignment.skill.folder / "SKILL.md").read_text() if assignment.skill else ""
        seen.extend([assignment.canary, assignment.other_canary, page])

    stage.run(agent, skill, other, batch_id=batch_id)
    return seen


def test_each_skill_of_a_batch_has_a_canary_that_is_the_same_in_every_run(stage: Bench) -> None:
    new, old, page = canaries(stage, stage.new, stage.old, "batch-1")

    assert new in page and old not in page
    assert canaries(stage, stage.old, stage.new, "batch-1")[:2] == [old, new]
    assert canaries(stage, None, stage.new, "batch-1")[:2] == [None, new]
    assert new not in canaries(stage, stage.new, stage.old, "batch-2")
    assert len({new, old}) == 2


def test_an_arm_that_shows_the_canary_of_the_other_version_is_contaminated(stage: Bench) -> None:
    for skill, other in ((stage.new, stage.old), (stage.old, stage.new), (None, stage.new)):
        with pytest.raises(StageFailed, match="other skill's canary is in the transcript"):
            stage.run(lambda assignment: f"I read {assignment.other_canary}", skill, other)


def test_a_program_that_is_a_file_of_the_skill_is_seen_before_the_arm_without_it_runs(
    stage: Bench, tmp_path: Path
) -> None:
    (tmp_path / "agent.md").write_text(RULES)
    command = ("/bin/cat", str(tmp_path / "agent.md"))

    with pytest.raises(StageFailed, match=r"agent.md is a copy of the skill's references/new.md before"):
        stage.run(idle, None, stage.new, command=command)

    assert stage.run(idle, stage.new, None, command=command).to is Stage.JUDGE
