"""Batches: submit, look, stop, and fetch what they came to."""

import json
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from api.access import GuardedRoute, PartsHere, Reader, Submitter
from api.documents import (
    ID_PATTERN,
    AcceptedDocument,
    BatchDocument,
    BatchPage,
    BatchSummary,
    GatesDocument,
    Name,
    PreviewDocument,
    Retried,
    RetryBody,
    SubmitBody,
    SubmitOptions,
)
from api.downloads import PAGE_POLICY, STRICT_POLICY, built
from api.errors import TooLarge
from api.watching import Hub
from schemas.states import BatchState
from service.aggregation.gates import Gates
from service.aggregation.paired import Verdict
from service.storage.batches import RETRYABLE
from service.submitting import Submission
from service.uploads import Parcel

router = APIRouter(prefix="/v1/batches", tags=["batches"], route_class=GuardedRoute)
BatchId = Annotated[str, PathParameter(pattern=ID_PATTERN, description="The id of a batch.")]
Model = TypeVar("Model", bound=BaseModel)
_OCTETS = {"type": "string", "format": "binary"}
_SUBMIT_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/SubmitBody"},
                "example": SubmitBody.model_config["json_schema_extra"]["examples"][0],  # type: ignore[index]
            },
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["skill"],
                    "additionalProperties": False,
                    "properties": {
                        "skill": {**_OCTETS, "description": "The skill's folder as .zip, .skill or .tar.gz."},
                        "evals": {**_OCTETS, "description": "The suite; else evals/evals.json of the archive."},
                        "options": {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "description": "SubmitOptions as JSON: settings, against, priority, max_open.",
                        },
                    },
                },
                "example": {"skill": "(archive)", "options": '{"settings": {"runs_per_eval": 3}}'},
            },
        },
    }
}


def file_answer(media_type: str, example: Any) -> dict[int | str, dict[str, Any]]:
    """How the description names an answer that is a file."""
    schema = {"type": "string"} if isinstance(example, str) else {"type": "object"}
    return {200: {"description": "The file.", "content": {media_type: {"schema": schema, "example": example}}}}


@dataclass(frozen=True)
class Incoming:
    """A submit as it was sent: what to run and how, and perhaps an archive."""

    options: SubmitOptions
    suite: bytes | None
    reference: tuple[str, str | None] | None = None
    archive: UploadFile | None = None


async def incoming(request: Request, _caller: Submitter) -> AsyncIterator[Incoming]:
    """The submit, as JSON or as a form with an archive; only for those who may submit."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type == "multipart/form-data":
        async with _form(request) as sent:
            yield sent
    elif media_type == "application/json":
        body = validated(SubmitBody, await request.body())
        suite = None if body.suite is None else json.dumps(body.suite).encode()
        yield Incoming(body, suite, (body.skill.name, body.skill.version))
    else:
        raise HTTPException(415, "send application/json, or multipart/form-data with an archive")


@asynccontextmanager
async def _form(request: Request) -> AsyncIterator[Incoming]:
    async with request.form(max_files=2, max_fields=4, max_part_size=2**20) as form:
        archive, evals, options = _files(form)
        yield Incoming(validated(SubmitOptions, options), await evals.read() if evals else None, archive=archive)


def _files(form: FormData) -> tuple[UploadFile, UploadFile | None, bytes]:
    archive, evals, options = form.get("skill"), form.get("evals"), form.get("options")
    unknown = sorted(set(form) - {"skill", "evals", "options"})
    if unknown:
        raise wrong_form(unknown[0], "is no part of a submit; send skill, evals and options")
    if not isinstance(archive, UploadFile):
        raise wrong_form("skill", "an archive of the skill's folder must be sent as a file")
    if evals is not None and not isinstance(evals, UploadFile):
        raise wrong_form("evals", "the suite must be sent as a file")
    if isinstance(options, UploadFile):
        raise wrong_form("options", "options must be sent as a field with JSON in it, not as a file")
    return archive, evals, (options or "{}").encode("utf-8", "surrogatepass")


def validated(model: type[Model], data: bytes) -> Model:
    """A body or a field of a form as the document it should be."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("body", *one["loc"])} for one in error.errors()]) from error


def wrong_form(place: str, message: str) -> RequestValidationError:
    """A form that lacks a part, or has one too many."""
    return RequestValidationError([{"loc": ("body", place), "msg": message, "type": "form"}])


_EVENT = {"type": "object", "properties": {"event": {"enum": ["stage", "progress", "end"]}, "data": {"type": "string"}}}
_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events until the batch ends, or for some minutes.",
        "content": {"text/event-stream": {"schema": _EVENT, "example": {"event": "progress", "data": "{}"}}},
    }
}


@router.post(
    "", status_code=202, response_model=AcceptedDocument | PreviewDocument, openapi_extra=_SUBMIT_BODY, name="submit"
)
def submit(
    parts: PartsHere,
    caller: Submitter,
    response: Response,
    sent: Annotated[Incoming, Depends(incoming)],
    dry_run: Annotated[bool, Query(description="Only say what it would find and take.")] = False,
    idempotency_key: Annotated[
        str | None,
        Header(min_length=1, max_length=200, pattern=r"^[!-~]+$", description="The same key gives the same batch."),
    ] = None,
) -> AcceptedDocument | PreviewDocument:
    """Submit a batch: a suite for a known skill as JSON, or a skill as an archive in a form.

    The same `Idempotency-Key` with the same content gives the same batch; with other content it is a conflict.
    """
    submission = Submission(
        skill=Path(),
        suite=sent.suite,
        team=caller.team,
        settings=sent.options.settings.given(),
        against=sent.options.against,
        priority=sent.options.priority,
        max_open=sent.options.max_open,
        idempotency_key=idempotency_key,
    )
    with on_disk(sent.archive, parts.settings.upload_max_bytes) as archive:
        parcel = _parcel(sent, archive)
        if dry_run:
            response.status_code = 200
            return PreviewDocument.of(parts.uploads.preview(parcel, submission))
        accepted = parts.uploads.submit(parcel, submission)
    response.headers["Location"] = f"/v1/batches/{accepted.batch_id}"
    return AcceptedDocument.of(accepted)


def _parcel(sent: Incoming, archive: Path | None) -> Parcel:
    if archive is not None and sent.archive is not None:
        return Parcel(archive, sent.archive.filename or "skill.zip")
    skill, version = sent.reference or ("", None)
    return Parcel(skill=skill, version=version)


@contextmanager
def on_disk(file: UploadFile | None, cap: int) -> Iterator[Path | None]:
    """An uploaded file as a path, for the length of the block."""
    if file is None:
        yield None
        return
    if (file.size or 0) > cap:
        raise TooLarge(f"the archive has {file.size:,} bytes, more than {cap:,}; see ASSAY_UPLOAD_MAX_BYTES")
    with tempfile.NamedTemporaryFile(prefix="assay-archive-") as copy:
        file.file.seek(0)
        shutil.copyfileobj(file.file, copy)
        copy.flush()
        yield Path(copy.name)


@router.get("")
def list_batches(
    parts: PartsHere,
    caller: Reader,
    state: Annotated[BatchState | None, Query(description="Only batches in this state.")] = None,
    skill: Annotated[Name | None, Query(description="Only batches of this skill.")] = None,
    before: Annotated[str | None, Query(pattern=ID_PATTERN, description="Only batches older than this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> BatchPage:
    """List the team's batches, newest first."""
    found = parts.desk.find(caller.team, before, limit, state, skill)
    next_before = found[-1].batch.id if len(found) == limit else None
    return BatchPage(batches=[BatchSummary.of(line) for line in found], next_before=next_before)


@router.get("/{batch_id}")
def get_batch(parts: PartsHere, caller: Reader, batch_id: BatchId) -> BatchDocument:
    """One batch: state, counts by stage and outcome, cost, time left."""
    status = parts.desk.status(batch_id, caller.team)
    skill, spent = parts.desk.skill_label(status.batch), parts.desk.spent(batch_id, caller.team)
    return BatchDocument.about(status, skill, spent)


@router.get(
    "/{batch_id}/events",
    response_class=StreamingResponse,
    responses=_EVENTS,
)
async def events(
    request: Request,
    parts: PartsHere,
    caller: Reader,
    batch_id: BatchId,
    last_event_id: Annotated[
        str, Header(description="The id of the last event that was seen; 0 is all, anything else what is to come.")
    ] = "",
) -> StreamingResponse:
    """Follow a batch: `stage` whenever a stage of a run ends, `progress` whenever counts change, `end` at the end."""
    hub: Hub = request.app.state.hub
    await run_in_threadpool(parts.desk.status, batch_id, caller.team)
    after = int(last_event_id) if re.fullmatch("[0-9]{1,18}", last_event_id) else None
    return StreamingResponse(await hub.stream(batch_id, after, caller.team), media_type="text/event-stream")


@router.post("/{batch_id}/cancel")
def cancel(parts: PartsHere, caller: Submitter, batch_id: BatchId) -> BatchDocument:
    """Stop everything that has not ended; what is finished is aggregated."""
    parts.desk.cancel(batch_id, caller.team)
    return get_batch(parts, caller, batch_id)


@router.post("/{batch_id}/pause")
def pause(parts: PartsHere, caller: Submitter, batch_id: BatchId) -> BatchDocument:
    """Let no waiting run start; those at work end their stage."""
    parts.desk.pause(batch_id, caller.team)
    return get_batch(parts, caller, batch_id)


@router.post("/{batch_id}/resume")
def resume(parts: PartsHere, caller: Submitter, batch_id: BatchId) -> BatchDocument:
    """Let a paused batch go on."""
    parts.desk.resume(batch_id, caller.team)
    return get_batch(parts, caller, batch_id)


@router.post("/{batch_id}/retry")
def retry(parts: PartsHere, caller: Submitter, batch_id: BatchId, body: RetryBody | None = None) -> Retried:
    """Continue runs that ended without a score at the stage that failed."""
    body = body or RetryBody()
    outcomes = tuple(body.outcomes) if body.outcomes else RETRYABLE
    return Retried(runs=parts.desk.retry(batch_id, caller.team, outcomes, body.max_cost_usd, body.max_tokens))


@router.get(
    "/{batch_id}/benchmark",
    response_class=Response,
    responses=file_answer("application/json", {"metadata": {}, "runs": []}),
)
def benchmark(parts: PartsHere, caller: Reader, batch_id: BatchId) -> Response:
    """benchmark.json; of a batch that still runs an interim one."""
    return _file(parts, caller, batch_id, "benchmark.json", "application/json")


@router.get("/{batch_id}/benchmark.md", response_class=Response, responses=file_answer("text/plain", "# csv-summary"))
def benchmark_page(parts: PartsHere, caller: Reader, batch_id: BatchId) -> Response:
    """benchmark.md; of a batch that still runs an interim one."""
    return _file(parts, caller, batch_id, "benchmark.md", "text/plain; charset=utf-8")


@router.get(
    "/{batch_id}/feedback", response_class=Response, responses=file_answer("application/json", {"suggestions": []})
)
def feedback(parts: PartsHere, caller: Reader, batch_id: BatchId) -> Response:
    """eval_feedback_aggregate.json: what the judges say about the suite, so far."""
    return _file(parts, caller, batch_id, "eval_feedback_aggregate.json", "application/json")


def _file(
    parts: PartsHere, caller: Reader, batch_id: str, name: str, media_type: str, policy: str = STRICT_POLICY
) -> Response:
    """A file of the aggregate, kept or built."""
    return built(lambda out: parts.results.file(batch_id, caller.team, name, out), media_type, name, policy)


@router.get(
    "/{batch_id}/reviews",
    response_class=Response,
    responses=file_answer("application/json", {"reviews": [], "status": "complete"}),
)
def reviews(parts: PartsHere, caller: Reader, batch_id: BatchId) -> Response:
    """feedback.json: what people say about the runs."""
    status = parts.desk.status(batch_id, caller.team)
    document = parts.reviews.document(batch_id, status.is_ended)
    return Response(json.dumps(document), media_type="application/json")


@router.get("/{batch_id}/report", response_class=Response, responses=file_answer("text/html", "<!doctype html>"))
def report(parts: PartsHere, caller: Reader, batch_id: BatchId) -> Response:
    """The page about a batch; one that still runs gives an interim page."""
    return _file(parts, caller, batch_id, "report.html", "text/html; charset=utf-8", PAGE_POLICY)


@router.get("/{batch_id}/export.zip", response_class=Response, responses=file_answer("application/zip", "(zip)"))
def export(parts: PartsHere, caller: Reader, batch_id: BatchId) -> Response:
    """The batch as a skill-creator workspace."""
    return built(lambda out: parts.results.export(batch_id, caller.team, out), "application/zip", f"{batch_id}.zip")


def asked_gates(
    fail_under: Annotated[float | None, Query(ge=0, le=1, description="Gate: the treatment's score.")] = None,
    min_delta: Annotated[float | None, Query(ge=-1, le=1, description="Gate: the difference.")] = None,
    no_regression: Annotated[bool, Query(description="Gate: not worse by the margin.")] = False,
    require_verdict: Annotated[Verdict | None, Query(description="Gate: the verdict must be this.")] = None,
) -> Gates:
    """The gates that a request names."""
    return Gates(fail_under, min_delta, no_regression, require_verdict)


AskedGates = Annotated[Gates, Depends(asked_gates)]


@router.get("/{batch_id}/gates")
def gates(parts: PartsHere, caller: Reader, batch_id: BatchId, asked: AskedGates) -> GatesDocument:
    """What the gates say of a batch, with the exit code for CI; undecided while it runs."""
    return GatesDocument.of(parts.results.gates(batch_id, caller.team, asked))


@router.get("/{batch_id}/junit", response_class=Response, responses=file_answer("application/xml", "<testsuites/>"))
def junit(parts: PartsHere, caller: Reader, batch_id: BatchId, asked: AskedGates) -> Response:
    """Gates and cases as JUnit XML, for CI."""
    return built(lambda out: parts.results.junit(batch_id, caller.team, asked, out), "application/xml", "junit.xml")
