"""Skills and schemas: upload, versions, history, and the published forms of documents."""

from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi import Path as PathParameter
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from api.access import GuardedRoute, PartsHere, Reader, Submitter
from api.batches import file_answer, on_disk, wrong_form
from api.documents import SchemaList, SkillDocument, SkillPage, VersionDocument, VersionList
from schemas.dialects import Dialect, Kind
from schemas.dialects.published import dialects_of, json_schema
from service.documents import to_json
from service.errors import NotFound
from service.uploads import Parcel

router = APIRouter(prefix="/v1", tags=["skills"], route_class=GuardedRoute)
SkillName = Annotated[
    str, PathParameter(min_length=1, max_length=200, pattern=r"^[^\x00/]+$", description="The skill's name.")
]
_UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["skill"],
                    "additionalProperties": False,
                    "properties": {"skill": {"type": "string", "format": "binary"}},
                },
                "example": {"skill": "(archive)"},
            }
        },
    }
}
_PUBLISHED = {kind: [dialect.value for dialect in dialects_of(kind)] for kind in Kind if dialects_of(kind)}


@router.get("/skills")
def list_skills(
    parts: PartsHere,
    caller: Reader,
    after: Annotated[str, Query(max_length=200, pattern=r"^[^\x00]*$", description="Only names behind this.")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> SkillPage:
    """List the team's skills by name."""
    found = parts.catalogue.skills(caller.team, after, limit)
    skills = [SkillDocument(name=line.name, versions=line.versions, newest_at=line.newest_at) for line in found]
    return SkillPage(skills=skills, next_after=found[-1].name if len(found) == limit else None)


async def sent_archive(request: Request, _caller: Submitter) -> AsyncIterator[UploadFile]:
    """The archive of a form; nothing is read from those who may not submit."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise HTTPException(415, "send multipart/form-data with the archive as the file skill")
    async with request.form(max_files=1, max_fields=0) as form:
        skill = form.get("skill")
        if not isinstance(skill, UploadFile):
            raise wrong_form("skill", "an archive of the skill's folder must be sent as a file")
        yield skill


@router.post("/skills", status_code=201, openapi_extra=_UPLOAD_BODY)
def upload_skill(
    parts: PartsHere, caller: Submitter, skill: Annotated[UploadFile, Depends(sent_archive)]
) -> VersionDocument:
    """Keep a skill as a version, without a batch; the same skill twice is one version."""
    with on_disk(skill, parts.settings.upload_max_bytes) as archive:
        parcel = Parcel(archive, skill.filename or "skill.zip")
        return VersionDocument.of(parts.uploads.add_skill(parcel, caller.team))


@router.get("/skills/{skill}/versions")
def list_versions(parts: PartsHere, caller: Reader, skill: SkillName) -> VersionList:
    """List all versions of a skill, oldest first."""
    return VersionList(versions=[VersionDocument.of(row) for row in parts.catalogue.versions(caller.team, skill)])


@router.get(
    "/skills/{skill}/history",
    response_class=Response,
    responses=file_answer("application/json", {"skill_name": "csv-summary", "current_best": "v0", "iterations": []}),
)
def history(
    parts: PartsHere,
    caller: Reader,
    skill: SkillName,
    dialect: Annotated[
        Literal[Dialect.SKILL_CREATOR, Dialect.CASES], Query(description="Whose history.json it is.")
    ] = Dialect.SKILL_CREATOR,
) -> Response:
    """history.json: every version, its figures, and how it did against its parent."""
    return Response(to_json(parts.catalogue.history(caller.team, skill, dialect)), media_type="application/json")


@router.get("/schemas", tags=["schemas"])
def list_schemas(_caller: Reader) -> SchemaList:
    """List the documents that have a published JSON Schema, and their dialects."""
    return SchemaList(schemas=dict(_PUBLISHED))


@router.get(
    "/schemas/{document}",
    tags=["schemas"],
    response_class=Response,
    responses=file_answer("application/schema+json", {"type": "object"}),
)
def get_schema(
    _caller: Reader,
    document: Annotated[Kind, PathParameter(description="Which document.")],
    dialect: Annotated[
        Dialect | None, Query(description="In whose way it is written; the richest if not said.")
    ] = None,
) -> Response:
    """The JSON Schema of a document."""
    offered = dialects_of(document)
    if not offered or (dialect is not None and dialect not in offered):
        known = ", ".join(offered) or "no dialect"
        raise NotFound(f"there is no schema of {document} in {dialect or 'any dialect'}; it is written in {known}")
    return Response(to_json(json_schema(document, dialect or offered[0])), media_type="application/schema+json")
