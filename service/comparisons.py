"""What a door may ask about comparisons: submit, look, list, fetch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.states import BatchState, ComparisonState
from service import log
from service.batch_settings import refuse_self_judge
from service.errors import BadInput, Conflict, NotFound
from service.queue import Broker
from service.settings import Settings
from service.storage.artifacts import ArtifactStore
from service.storage.comparisons import ComparisonRow, Side
from service.storage.rows import BatchRow, SkillVersionRow, new_id
from service.storage.store import Store, database_errors

ENDED = (ComparisonState.FINISHED, ComparisonState.FAILED)


@dataclass(frozen=True)
class Wanted:
    """Who is to be compared with whom: two batches, or two versions of a skill."""

    champion: str  # BATCH or BATCH:CONFIGURATION; with a skill, a version such as v0
    challenger: str
    skill: str | None = None
    judge_model: str | None = None  # that of the challenger's batch if not given
    analysis: bool = True
    allow_self_judge: bool = False
    max_cost_usd: float | None = None
    max_tokens: int | None = None


class ComparisonDesk:
    """Everything a team may ask of its comparisons; somebody else's is not there."""

    def __init__(self, settings: Settings, store: Store, artifacts: ArtifactStore, broker: Broker) -> None:
        self._settings = settings
        self._store = store
        self._artifacts = artifacts
        self._broker = broker

    def submit(self, wanted: Wanted, team: str) -> ComparisonRow:
        """Accept a comparison; a judge takes it up as soon as one is free."""
        with database_errors():
            team_id = self._store.teams.named(team).id
            challenger, champion = self._sides(wanted, team_id)
            batches = [self._batch(side, team_id) for side in (challenger, champion)]
            settings = self._settings_of(wanted, batches)
            new = {"id": new_id(), "team_id": team_id, "suite_id": batches[0].suite_id, "settings": settings}
            message = self._store.comparisons.add(new, challenger, champion)
        self._broker.send([message])
        log.info("comparison accepted", comparison=new["id"])
        return self.one(str(new["id"]), team)

    def one(self, comparison_id: str, team: str) -> ComparisonRow:
        """One comparison."""
        with database_errors():
            found = self._store.comparisons.one(comparison_id)
            if found is None or found.team_id != self._store.teams.named(team).id:
                raise NotFound(f"there is no comparison {comparison_id}")
        return found

    def list(self, team: str, before: str | None = None, limit: int = 50) -> Sequence[ComparisonRow]:
        """A page of comparisons, newest first."""
        with database_errors():
            return self._store.comparisons.of_team(self._store.teams.named(team).id, before, limit)

    def file(self, comparison_id: str, team: str, name: str) -> bytes:
        """One file of a finished comparison."""
        found = self.one(comparison_id, team)
        entry = (found.files or {}).get(name)
        if entry is None:
            there = ", ".join(sorted(found.files or {})) or "no files"
            raise NotFound(f"comparison {comparison_id} is {found.state} and has no {name!r}; it has {there}")
        with database_errors():
            return self._artifacts.get(entry["sha256"])

    def _sides(self, wanted: Wanted, team_id: str) -> tuple[Side, Side]:
        if wanted.skill is not None:
            return self._version_sides(wanted, team_id)
        challenger, champion = (self._arm(given, team_id) for given in (wanted.challenger, wanted.champion))
        if (challenger.batch_id, challenger.configuration) == (champion.batch_id, champion.configuration):
            raise BadInput("both sides are the same; name two batches, or two configurations as BATCH:CONFIGURATION")
        return challenger, champion

    def _batch(self, side: Side, team_id: str) -> BatchRow:
        batch = self._store.batches.one(side.batch_id)
        if batch is None or batch.team_id != team_id:
            raise NotFound(f"there is no batch {side.batch_id}")
        if batch.state is not BatchState.FINISHED:
            raise Conflict(f"batch {batch.id} is {batch.state}; compare it when it is finished")
        return batch

    def _arm(self, given: str, team_id: str) -> Side:
        """BATCH, which is its treatment, or BATCH:CONFIGURATION."""
        batch_id, _, configuration = given.partition(":")
        batch = self._store.batches.one(batch_id)
        if batch is None or batch.team_id != team_id:
            raise NotFound(f"there is no batch {batch_id}; to compare versions name the skill too")
        arms = _arms(batch)
        chosen = configuration or next(iter(arms))
        if chosen not in arms:
            raise BadInput(f"batch {batch_id} has no configuration {chosen!r}; it has {', '.join(arms)}")
        return self._side(batch_id, chosen, arms[chosen])

    def _side(self, batch_id: str, configuration: str, version_id: str | None) -> Side:
        version = self._store.teams.skill_version(version_id) if version_id else None
        name = f"{version.skill} {version.label}" if version else configuration
        return Side(batch_id, configuration, version_id, f"{name} (batch {batch_id})")

    def _version_sides(self, wanted: Wanted, team_id: str) -> tuple[Side, Side]:
        """The newest batches of both versions that ran the same suite."""
        versions = {one.label: one for one in self._store.teams.skill_versions(team_id, str(wanted.skill))}
        if not versions:
            raise NotFound(f"there is no skill {wanted.skill!r}")
        new, old = (self._version(label, versions, wanted) for label in (wanted.challenger, wanted.champion))
        if new.id == old.id:
            raise BadInput(f"both sides are {new.label}; name two versions, it has {', '.join(versions)}")
        theirs = self._store.comparisons.batch_of_version(old.id)
        for batch_id, configuration, suite_id in self._store.comparisons.batch_of_version(new.id):
            for other_id, other, other_suite in theirs:
                if suite_id == other_suite:
                    return self._side(batch_id, configuration, new.id), self._side(other_id, other, old.id)
        raise Conflict(
            f"{wanted.skill} {new.label} and {old.label} have no finished batches on the same suite; "
            "run the suite of one with the other first"
        )

    @staticmethod
    def _version(label: str, versions: dict[str, SkillVersionRow], wanted: Wanted) -> SkillVersionRow:
        if label not in versions:
            raise NotFound(f"{wanted.skill} has no version {label!r}; it has {', '.join(versions)}")
        return versions[label]

    def _settings_of(self, wanted: Wanted, batches: Sequence[BatchRow]) -> dict[str, Any]:
        if batches[0].suite_id != batches[1].suite_id:
            raise BadInput("the two batches ran different suites; compare batches of the same suite")
        judge = wanted.judge_model or _judge_of(batches[0].setting) or self._settings.judge_model
        if not judge:
            raise BadInput("a comparison needs a judge; name one with judge_model (--judge-model)")
        for batch in batches:
            refuse_self_judge(batch.setting("executor_model"), (judge,), wanted.allow_self_judge)
        limits = {"max_cost_usd": wanted.max_cost_usd, "max_tokens": wanted.max_tokens}
        return {"judge_model": judge, "analysis": wanted.analysis, **limits}


def _arms(batch: BatchRow) -> dict[str, str | None]:
    """The configurations of a batch and their skill versions, the treatment first."""
    if batch.control_version_id:
        return {"new_skill": batch.skill_version_id, "old_skill": batch.control_version_id}
    arms: dict[str, str | None] = {"with_skill": batch.skill_version_id}
    return {**arms, "without_skill": None} if batch.setting("baseline_comparison") else arms


def _judge_of(setting: Callable[[str], Any]) -> str | None:
    panel = setting("judge_models")
    return str(panel[0]) if panel else setting("judge_model")
