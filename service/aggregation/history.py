"""history.json from the stored versions of a skill: who is best, and how each fared against its parent."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.history import History, HistoryVersion
from service.aggregation.benchmark import Aggregates
from service.aggregation.figures import rounded
from service.aggregation.paired import Verdict

RESULTS = {Verdict.HELPS.value: "won", Verdict.HURTS.value: "lost"}


@dataclass(frozen=True, slots=True)
class VersionFacts:
    """One stored version and its own figures; None where it was never measured."""

    number: int
    created_at: str
    parent: int | None = None
    description: str | None = None
    git_hash: str | None = None
    path: str | None = None
    suite: str | None = None  # the digest of what it was measured with
    pass_rate: float | None = None  # of this version's own runs
    average_score: float | None = None  # criteria, 1-5, of this version's own runs
    result: str | None = None  # won, lost or tie against its parent; None when they were never compared

    @property
    def label(self) -> str:
        """v0, v1, …"""
        return f"v{self.number}"


def result_of(verdict: str) -> str:
    """How a benchmark of a version against its parent counts in a history; what is not certain is a tie."""
    return RESULTS.get(verdict, "tie")


def history_figures(found: Aggregates) -> dict[str, JsonValue]:
    """What a history needs of a batch, kept beside its benchmark so that nobody reads all its runs for it."""
    configurations: dict[str, JsonValue] = {
        name: {"pass_rate": rounded(tally.mean("pass_rate")), "average_score": _average_score(found, name)}
        for name, tally in found.tallies.configurations.items()
    }
    return {"verdict": found.verdict, "configurations": configurations}


def _average_score(found: Aggregates, configuration: str) -> float | None:
    """The mean over cases of a configuration's overall score, as in the cases dialect."""
    tallies = [case.arms[configuration] for case in found.tallies.cases.values() if configuration in case.arms]
    means = [mean for tally in tallies if (mean := tally.mean("overall_score")) is not None]
    return sum(means) / len(means) if means else None


def best_of(versions: Sequence[VersionFacts]) -> VersionFacts | None:
    """The version that beat the best before it.

    A branch off an older one must also have the higher pass rate, in the same suite: another asks other things.
    """
    best: VersionFacts | None = None
    for version in versions:
        if best is None or (version.result == "won" and _beats(version, best)):
            best = version
    return best


def _beats(version: VersionFacts, best: VersionFacts) -> bool:
    if version.parent == best.number:
        return True
    return version.suite == best.suite and (version.pass_rate or 0.0) > (best.pass_rate or 0.0)


def skill_creator_history(skill_name: str, versions: Sequence[VersionFacts]) -> History:
    """iterations with a result each; the first is the baseline."""
    best = best_of(versions)
    return History(
        started_at=versions[0].created_at if versions else None,
        skill_name=skill_name,
        current_best=best.label if best else None,
        versions=tuple(
            HistoryVersion(
                version=version.label,
                parent=None if version.parent is None else f"v{version.parent}",
                expectation_pass_rate=None if version.pass_rate is None else round(version.pass_rate, 4),
                # Nothing is said of a version that was never compared: a tie would be a result.
                grading_result="baseline" if index == 0 else version.result,
                is_current_best=best is not None and version.number == best.number,
            )
            for index, version in enumerate(versions)
        ),
    )


def cases_history(versions: Sequence[VersionFacts], current: int | None = None) -> History:
    """versions with their own average score each; `current` is the one being worked on, by default the newest."""
    newest = versions[-1].number if versions else 0
    return History(
        current_version=newest if current is None else current,
        versions=tuple(
            HistoryVersion(
                version=version.number,
                timestamp=version.created_at,
                description=version.description or ("baseline" if index == 0 else f"version {version.number}"),
                git_hash=version.git_hash,
                path=version.path or f"v{version.number}/skill",
                average_score=None if version.average_score is None else round(version.average_score, 1),
            )
            for index, version in enumerate(versions)
        ),
    )
