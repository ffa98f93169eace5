"""What the API says and hears about comparisons."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from api.documents import Heard, Name
from schemas.states import ComparisonState
from service.comparisons import Wanted
from service.storage.comparisons import ComparisonRow, Side

_COMPARISON = "01k3mz9c2hq4x7c9y2b6n0p1rs"
_SIDE = {
    "label": "csv-summary v1 (batch 01k3mz8w5tq4x7c9y2b6n0p1rs)",
    "batch_id": "01k3mz8w5tq4x7c9y2b6n0p1rs",
    "configuration": "with_skill",
}
_EXAMPLE: dict[str, Any] = {
    "id": _COMPARISON,
    "state": "finished",
    "challenger": _SIDE,
    "champion": {**_SIDE, "label": "csv-summary v0 (batch 01k3mz7a1tq4x7c9y2b6n0p1rs)"},
    "settings": {"judge_model": "claude-opus-5", "analysis": True, "max_cost_usd": None, "max_tokens": None},
    "result": "won",
    "files": ["analysis.json", "comparison-1.json", "summary.json"],
    "assignment": {"comparison-1.json": {"A": "champion", "B": "challenger"}},
    "error": None,
    "created_at": 1771790400.0,
    "finished_at": 1771790460.0,
}


class CompareBody(Heard):
    """Who is to be compared with whom: two batches, or two versions of a skill."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"skill": "csv-summary", "champion": "v0", "challenger": "v1"}]},
    )

    champion: Name = Field(description="The old side: BATCH or BATCH:CONFIGURATION; with a skill, a version.")
    challenger: Name = Field(description="The new side, named in the same way.")
    skill: Name | None = Field(None, description="Compare versions of this skill by their newest batches.")
    judge_model: Name | None = Field(None, description="That of the challenger's batch if not said.")
    analysis: bool = Field(True, description="Also say why the winner won.")
    allow_self_judge: bool = Field(False, description="The executor's model may compare its own work.")
    max_cost_usd: float | None = Field(None, gt=0, le=1e9)
    max_tokens: int | None = Field(None, gt=0, le=10**15)

    def wanted(self) -> Wanted:
        """The same in the service's words."""
        return Wanted(**self.model_dump())


class SideDocument(BaseModel):
    """One of the two."""

    label: str
    batch_id: str
    configuration: str

    @classmethod
    def of(cls, side: Side) -> "SideDocument":
        """A side as it is stored."""
        return cls(label=side.label, batch_id=side.batch_id, configuration=side.configuration)


class ComparisonDocument(BaseModel):
    """A comparison."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE]})

    id: str
    state: ComparisonState
    challenger: SideDocument
    champion: SideDocument
    settings: dict[str, Any]
    result: str | None = Field(description="won, lost or tie, from the challenger's side.")
    files: list[str]
    assignment: dict[str, dict[str, str]] | None = Field(description="Who was A and who was B, by file.")
    error: str | None
    created_at: float
    finished_at: float | None

    @classmethod
    def of(cls, row: ComparisonRow) -> "ComparisonDocument":
        """A comparison as it is stored."""
        return cls(
            id=row.id,
            state=row.state,
            challenger=SideDocument.of(row.challenger),
            champion=SideDocument.of(row.champion),
            settings=row.settings,
            result=row.result,
            files=sorted(row.files or {}),
            assignment=row.assignment,
            error=row.error,
            created_at=row.created_at,
            finished_at=row.finished_at,
        )


class ComparisonPage(BaseModel):
    """Some comparisons, newest first."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"comparisons": [_EXAMPLE], "next_before": None}]})

    comparisons: list[ComparisonDocument]
    next_before: str | None = Field(description="Ask with this as `before` for the next page; null at the end.")
