"""Regrading: a new batch on the artifacts of an old one, and the two beside each other."""

import json
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from api.access import GuardedRoute, PartsHere, Reader, Submitter
from api.batches import BatchId, file_answer, validated, wrong_form
from api.documents import AcceptedDocument, RegradeBody, RegradeOptions
from service.regrade import RegradeRequest

router = APIRouter(prefix="/v1/batches", tags=["batches"], route_class=GuardedRoute)
_OCTETS = {"type": "string", "format": "binary"}
_BODY = {
    "requestBody": {
        "required": False,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/RegradeBody"},
                "example": {"settings": {"judge_model": "claude-opus-5-5"}},
            },
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "evals": {**_OCTETS, "description": "The suite; else the one the batch was graded with."},
                        "options": {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "description": "RegradeOptions as JSON: settings.",
                        },
                    },
                },
                "example": {"evals": "(evals.json)", "options": '{"settings": {"judge_model": "claude-opus-5-5"}}'},
            },
        },
    }
}


@dataclass(frozen=True)
class Incoming:
    """A regrade as it was sent."""

    options: RegradeOptions
    suite: bytes | None = None


async def incoming(request: Request, _caller: Submitter) -> Incoming:
    """What is different this time: nothing, JSON, or a form with the suite as a file."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        return await _form(request)
    data = await request.body()
    if not data.strip():
        return Incoming(RegradeOptions())
    if media_type != "application/json":
        raise HTTPException(415, "send application/json, or multipart/form-data with the suite as a file")
    body = validated(RegradeBody, data)
    return Incoming(body, None if body.suite is None else json.dumps(body.suite).encode())


async def _form(request: Request) -> Incoming:
    async with request.form(max_files=1, max_fields=2, max_part_size=2**20) as form:
        unknown = sorted(set(form) - {"evals", "options"})
        if unknown:
            raise wrong_form(unknown[0], "is no part of a regrade; send evals and options")
        evals, options = form.get("evals"), form.get("options")
        if evals is not None and not isinstance(evals, UploadFile):
            raise wrong_form("evals", "the suite must be sent as a file")
        if isinstance(options, UploadFile):
            raise wrong_form("options", "options must be sent as a field with JSON in it, not as a file")
        said = validated(RegradeOptions, (options or "{}").encode("utf-8", "surrogatepass"))
        return Incoming(said, await evals.read() if evals else None)


@router.post("/{batch_id}/regrade", status_code=202, openapi_extra=_BODY)
def regrade(
    parts: PartsHere,
    caller: Submitter,
    batch_id: BatchId,
    response: Response,
    sent: Annotated[Incoming, Depends(incoming)],
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=200, pattern=r"^[!-~]+$", description="The same key gives the same batch."),
    ] = None,
) -> AcceptedDocument:
    """Grade the artifacts of a batch that has ended anew, as a new batch; nothing is executed again.

    What was judged before by the same model with the same words is not asked again. The old batch stays as it was.
    """
    request = RegradeRequest(batch_id, caller.team, sent.suite, sent.options.settings.given(), idempotency_key)
    accepted = parts.desk.start_given(parts.regrade.accept(request))
    response.headers["Location"] = f"/v1/batches/{accepted.batch_id}"
    return AcceptedDocument.of(accepted)


@router.get(
    "/{batch_id}/regrade",
    response_class=Response,
    responses=file_answer("application/json", {"regrade_of": "0", "configurations": {}, "runs": []}),
)
def regraded(parts: PartsHere, caller: Reader, batch_id: BatchId) -> Response:
    """regrade.json of a regrade that has ended: figures and decisions, old beside new."""
    return Response(parts.desk.regraded(batch_id, caller.team), media_type="application/json")
