"""Comparisons: submit one, look at it, fetch what it came to."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi import Path as PathParameter

from api.access import GuardedRoute, PartsHere, Reader, Submitter
from api.batches import file_answer
from api.comparison_documents import CompareBody, ComparisonDocument, ComparisonPage
from api.documents import ID_PATTERN

router = APIRouter(prefix="/v1", tags=["comparisons"], route_class=GuardedRoute)
ComparisonId = Annotated[str, PathParameter(pattern=ID_PATTERN, description="The comparison's id.")]
FileName = Annotated[
    str,
    PathParameter(
        max_length=100,
        pattern=r"^[a-z0-9.-]+$",
        description="summary.json, analysis.json, or comparison-N.json for the N-th case of the suite.",
    ),
]


@router.post("/comparisons", status_code=202)
def submit_comparison(parts: PartsHere, caller: Submitter, body: CompareBody) -> ComparisonDocument:
    """Compare two sides of a suite blind; a judge takes it up as soon as one is free."""
    return ComparisonDocument.of(parts.comparisons.submit(body.wanted(), caller.team))


@router.get("/comparisons")
def list_comparisons(
    parts: PartsHere,
    caller: Reader,
    before: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only older ones than this.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> ComparisonPage:
    """List the team's comparisons, newest first."""
    found = parts.comparisons.list(caller.team, before, limit)
    return ComparisonPage(
        comparisons=[ComparisonDocument.of(row) for row in found],
        next_before=found[-1].id if len(found) == limit else None,
    )


@router.get("/comparisons/{comparison_id}")
def get_comparison(parts: PartsHere, caller: Reader, comparison_id: ComparisonId) -> ComparisonDocument:
    """Say how far a comparison is, and who won."""
    return ComparisonDocument.of(parts.comparisons.one(comparison_id, caller.team))


@router.get(
    "/comparisons/{comparison_id}/files/{file}",
    response_class=Response,
    responses=file_answer("application/json", {"winner": "A", "reasoning": "A leaves nothing out."}),
)
def comparison_file(parts: PartsHere, caller: Reader, comparison_id: ComparisonId, file: FileName) -> Response:
    """One file of a finished comparison, in the form of the suite's dialect."""
    return Response(parts.comparisons.file(comparison_id, caller.team, file), media_type="application/json")
