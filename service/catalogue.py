"""The skills of a team: their versions, and how each fared."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from schemas.dialects import Dialect, write
from service.aggregation.history import VersionFacts, result_of, skill_creator_history
from service.errors import NotFound
from service.storage.artifacts import ArtifactStore
from service.storage.rows import BatchRow, SkillVersionRow
from service.storage.store import Store, database_errors
from service.storage.views import SkillLine, Views


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

    def history(self, team: str, skill: str) -> Any:
        """history.json: every version, its pass rate, and how it did against its parent."""
        versions = self.versions(team, skill)
        with database_errors():
            batches = self._views.finished_batches([version.id for version in versions])
        numbers = {version.id: version.number for version in versions}
        facts = [self._facts(version, numbers, batches) for version in versions]
        return write(skill_creator_history(skill, facts), Dialect.SKILL_CREATOR)

    def _facts(self, version: SkillVersionRow, numbers: dict[str, int], batches: list[BatchRow]) -> VersionFacts:
        own = [batch for batch in batches if batch.skill_version_id == version.id]
        against = [batch for batch in own if batch.control_version_id and batch.control_version_id == version.parent_id]
        newest = self._benchmark(own[-1]) if own else None
        compared = self._benchmark(against[-1]) if against else None
        return VersionFacts(
            number=version.number,
            created_at=datetime.fromtimestamp(version.created_at, UTC).isoformat(timespec="seconds"),
            parent=numbers.get(version.parent_id or ""),
            description=version.description,
            git_hash=version.git_hash,
            pass_rate=_pass_rate(newest),
            result=result_of(str((compared.get("statistics") or {}).get("verdict"))) if compared else None,
        )

    def _benchmark(self, batch: BatchRow) -> dict[str, Any] | None:
        entry = (batch.aggregate or {}).get("benchmark.json")
        if entry is None:
            return None
        with database_errors():
            found = json.loads(self._artifacts.get(entry["sha256"]))
        return found if isinstance(found, dict) else None


def _pass_rate(benchmark: dict[str, Any] | None) -> float | None:
    """The treatment's mean pass rate; it is the first configuration of the summary."""
    summary = (benchmark or {}).get("run_summary") or {}
    first: Any = next(iter(summary.values()), {})
    rate = (first.get("pass_rate") or {}).get("mean") if isinstance(first, dict) else None
    return float(rate) if rate is not None else None
