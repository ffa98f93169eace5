"""Runs: lists, the whole story of one, its artifacts, and what people say about it."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi import Path as PathParameter

from api.access import GuardedRoute, PartsHere, Reader, Submitter
from api.batches import BatchId
from api.documents import (
    ArtifactDocument,
    ArtifactList,
    AttemptDocument,
    Name,
    ReviewBody,
    ReviewDocument,
    RunDocument,
    RunPage,
    RunStory,
)
from api.downloads import FILE_TYPES, content
from schemas.states import Outcome, Stage
from service.bootstrap import Parts
from service.errors import NotFound

router = APIRouter(prefix="/v1", tags=["runs"], route_class=GuardedRoute)
RunId = Annotated[int, PathParameter(ge=1, le=2**62, description="The number of a run.")]
_FILE = {"schema": {"type": "string", "format": "binary"}, "example": "..."}
_JSON_FILE = {"schema": {}, "example": {"total_tokens": 1200}}
_BYTES = {
    200: {
        "description": "The file, as what it is where a browser shows that and never runs it.",
        "content": {kind: _JSON_FILE if kind == "application/json" else _FILE for kind in FILE_TYPES},
    },
    206: {"description": "The range that was asked for."},
    304: {"description": "You have it already."},
    416: {"description": "The file does not have that range."},
}


@router.get("/batches/{batch_id}/runs")
def list_runs(
    parts: PartsHere,
    caller: Reader,
    batch_id: BatchId,
    stage: Annotated[Stage | None, Query(description="Only runs at this stage.")] = None,
    outcome: Annotated[Outcome | None, Query(description="Only runs that ended so.")] = None,
    configuration: Annotated[Name | None, Query(description="Only runs of this arm.")] = None,
    case: Annotated[Name | None, Query(description="Only runs of the case of this id.")] = None,
    after: Annotated[int, Query(ge=-1, le=2**31 - 1, description="Only runs behind this position.")] = -1,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> RunPage:
    """List a batch's runs in the order of admission."""
    asked = {"stage": stage, "outcome": outcome, "configuration": configuration, "case": case}
    found = parts.desk.find_runs(batch_id, caller.team, after=after, limit=limit, **asked)
    next_after = found[-1].position if len(found) == limit else None
    return RunPage(runs=[RunDocument.of(run) for run in found], next_after=next_after)


@router.get("/runs/{run_id}")
def get_run(parts: PartsHere, caller: Reader, run_id: RunId) -> RunStory:
    """One run with its whole story: every stage, attempt, worker and error."""
    run = parts.desk.run(run_id, caller.team)
    steps = [AttemptDocument.model_validate(step) for step in parts.desk.story(run_id, caller.team)]
    return RunStory.about(run, steps, parts.desk.artifacts(run_id, caller.team), _reviews(parts, run_id))


@router.get("/runs/{run_id}/artifacts")
def list_artifacts(parts: PartsHere, caller: Reader, run_id: RunId) -> ArtifactList:
    """List the files of a run."""
    found = parts.desk.artifacts(run_id, caller.team)
    return ArtifactList(artifacts=[ArtifactDocument.of(name, blob) for name, blob in found.items()])


@router.get("/runs/{run_id}/artifacts/{name:path}", response_class=Response, responses=_BYTES)  # type: ignore[arg-type]
def get_artifact(
    request: Request,
    parts: PartsHere,
    caller: Reader,
    run_id: RunId,
    name: Annotated[str, PathParameter(min_length=1, max_length=1024, pattern=r"^[^\x00]+$")],
) -> Response:
    """Download a file of a run; one byte range may be asked for."""
    blob = parts.desk.artifact(run_id, caller.team, name)
    return content(request, parts.desk.content(blob), name, blob.sha256)


@router.put("/runs/{run_id}/reviews")
def put_review(parts: PartsHere, caller: Submitter, run_id: RunId, body: ReviewBody) -> ReviewDocument:
    """Say something about a run; the same author says it anew."""
    run = parts.desk.run(run_id, caller.team)
    parts.reviews.put(run_id, run.batch_id, body.author, body.feedback)
    return next(one for one in _reviews(parts, run_id) if one.author == body.author)


@router.delete("/runs/{run_id}/reviews", status_code=204)
def delete_review(
    parts: PartsHere, caller: Submitter, run_id: RunId, author: Annotated[Name, Query(description="Who said it.")]
) -> None:
    """Take back what somebody said."""
    parts.desk.run(run_id, caller.team)
    if not parts.reviews.remove(run_id, author):
        raise NotFound(f"{author!r} said nothing about run {run_id}")


def _reviews(parts: Parts, run_id: int) -> list[ReviewDocument]:
    return [
        ReviewDocument(author=row.author, feedback=row.feedback, updated_at=row.updated_at)
        for row in parts.reviews.of_run(run_id)
    ]
