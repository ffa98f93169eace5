"""The skills of a team: their versions, and how each fared."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from schemas.dialects import Dialect, write
from service.aggregate import HISTORY_FIGURES
from service.aggregation.history import VersionFacts, cases_history, result_of, skill_creator_history
from service.errors import BadInput, NotFound
from service.storage.artifacts import ArtifactStore
from service.storage.comparisons import ComparisonRow
from service.storage.rows import BatchRow, SkillVersionRow
from service.storage.store import Store, database_errors
from service.storage.views import SkillLine, Views

HISTORIES = (Dialect.SKILL_CREATOR, Dialect.CASES)


class Catalogue:
    """What a team may ask about its skills."""

    def __init__(self, store: Store, artifacts: ArtifactStore) -> None:
        self._store = store
        self._artifacts = artifacts
        self._views = Views(store.engine)

    def skills(self, team: str, after: str = "", limit: int = 100) -> Sequence[SkillLine]:
        """A page of skills by name."""
        with database_errors():
            return self._views.skills(self._store.teams.named(team).id, after, limit)

    def versions(self, team: str, skill: str) -> Sequence[SkillVersionRow]:
        """All versions of a skill, oldest first."""
        with database_errors():
            found = self._store.teams.skill_versions(self._store.teams.named(team).id, skill)
        if not found:
            raise NotFound(f"there is no skill {skill!r}")
        return found

    def history(self, team: str, skill: str, dialect: Dialect = Dialect.SKILL_CREATOR) -> Any:
        """history.json: every version, its own figures, and how it did against its parent."""
        if dialect not in HISTORIES:
            raise BadInput(f"there is no history.json in {dialect}; choose {' or '.join(HISTORIES)}")
        versions = self.versions(team, skill)
        ids = [version.id for version in versions]
        with database_errors():
            past = Past(self._views.finished_batches(ids), self._store.comparisons.finished_between(ids))
        numbers = {version.id: version.number for version in versions}
        facts = [self._facts(version, numbers, past) for version in versions]
        made = cases_history(facts) if dialect is Dialect.CASES else skill_creator_history(skill, facts)
        return write(made, dialect)

    def _facts(self, version: SkillVersionRow, numbers: dict[str, int], past: "Past") -> VersionFacts:
        figures = self._own_figures(version, past)
        return VersionFacts(
            number=version.number,
            created_at=_moment(version.created_at),
            parent=numbers.get(version.parent_id or ""),
            git_hash=version.git_hash,
            suite=figures.suite,
            pass_rate=figures.pass_rate,
            average_score=figures.average_score,
            result=self._result(version, past),
        )

    def _own_figures(self, version: SkillVersionRow, past: "Past") -> "Figures":
        """From the newest batch of the version; as somebody else's control only if it has none of its own."""
        own = [batch for batch in past.batches if batch.skill_version_id == version.id]
        if own:
            return self._figures(own[-1], "new_skill" if own[-1].control_version_id else "with_skill")
        control = [batch for batch in past.batches if batch.control_version_id == version.id]
        return self._figures(control[-1], "old_skill") if control else Figures()

    def _figures(self, batch: BatchRow, configuration: str) -> "Figures":
        found = ((self._kept(batch) or {}).get("configurations") or {}).get(configuration) or {}
        with database_errors():
            suite = self._store.teams.suite(batch.suite_id)
        return Figures(found.get("pass_rate"), found.get("average_score"), suite["digest"] if suite else None)

    def _result(self, version: SkillVersionRow, past: "Past") -> str | None:
        """won, lost or tie against the parent, by the newest comparison or batch of both; None if neither was."""
        if version.parent_id is None:
            return None
        told = [
            (one.finished_at or 0.0, result)
            for one in past.comparisons
            if (result := _told(one, version.id, version.parent_id))
        ]
        for batch in reversed([one for one in past.batches if _is_between(one, version.id, version.parent_id)]):
            if told and told[-1][0] >= (batch.finished_at or 0.0):
                break
            if kept := self._kept(batch):
                return result_of(str(kept.get("verdict")))
        return told[-1][1] if told else None

    def _kept(self, batch: BatchRow) -> dict[str, Any] | None:
        """What a history needs of a batch; one that ended before this was kept is asked for its benchmark."""
        return self._file(batch, HISTORY_FIGURES) or figures_of(self._file(batch, "benchmark.json"))

    def _file(self, batch: BatchRow, name: str) -> dict[str, Any] | None:
        entry = (batch.aggregate or {}).get(name)
        if entry is None:
            return None
        with database_errors():
            found = json.loads(self._artifacts.get(entry["sha256"]))
        return found if isinstance(found, dict) else None


@dataclass(frozen=True)
class Past:
    """What happened to a skill's versions."""

    batches: Sequence[BatchRow]  # finished, oldest first
    comparisons: Sequence[ComparisonRow]  # the same


@dataclass(frozen=True)
class Figures:
    """What one version reached, and in which suite; None where it was not measured."""

    pass_rate: float | None = None
    average_score: float | None = None
    suite: str | None = None


def figures_of(benchmark: dict[str, Any] | None) -> dict[str, Any] | None:
    """What a history needs, out of a whole benchmark."""
    if benchmark is None:
        return None
    summary = benchmark.get("run_summary") or {}
    configurations = {
        name: {"pass_rate": (figures.get("pass_rate") or {}).get("mean"), "average_score": _score(benchmark, name)}
        for name, figures in summary.items()
        if name != "delta"
    }
    return {"verdict": (benchmark.get("statistics") or {}).get("verdict"), "configurations": configurations}


def _score(benchmark: dict[str, Any], configuration: str) -> float | None:
    """A configuration's average score over its cases, as in the cases dialect."""
    by_case: dict[Any, list[float]] = {}
    for run in benchmark.get("runs") or []:
        score = (run.get("result") or {}).get("overall_score")
        if run.get("configuration") == configuration and score is not None:
            by_case.setdefault((type(run["eval_id"]).__name__, run["eval_id"]), []).append(float(score))
    means = [sum(scores) / len(scores) for scores in by_case.values()]
    return sum(means) / len(means) if means else None


def _told(one: ComparisonRow, version_id: str, parent_id: str) -> str | None:
    """A comparison's result from the version's side; None if it was between others."""
    sides = (one.challenger.version_id, one.champion.version_id)
    if one.result is None or set(sides) != {version_id, parent_id}:
        return None
    return one.result if sides[0] == version_id else {"won": "lost", "lost": "won"}.get(one.result, one.result)


def _is_between(batch: BatchRow, version_id: str, parent_id: str) -> bool:
    return batch.skill_version_id == version_id and batch.control_version_id == parent_id


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
