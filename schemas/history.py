"""history.json: the versions of a skill and how they fared."""

from schemas.base import CaseId, Node, Number


class HistoryVersion(Node):
    """One version: "v0" in skill_creator, 0 in cases."""

    version: CaseId | None = None
    # skill_creator
    parent: str | None = None
    expectation_pass_rate: Number | None = None
    grading_result: str | None = None  # baseline, won, lost, tie
    is_current_best: bool | None = None
    # cases
    timestamp: str | None = None
    description: str | None = None
    git_hash: str | None = None
    path: str | None = None
    average_score: Number | None = None


class History(Node):
    """All versions, oldest first."""

    versions: tuple[HistoryVersion, ...] | None = None
    # skill_creator
    started_at: str | None = None
    skill_name: str | None = None
    current_best: str | None = None
    # cases: the version being worked on, which need not be the best
    current_version: int | None = None
