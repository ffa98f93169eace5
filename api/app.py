"""The API: puts routes, errors and limits around the parts of a process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel

from api import batches, comparison_documents, comparisons, documents, errors, health, regrading, runs, skills, webhooks
from api.access import Rate
from api.documents import Problem, RegradeBody, SubmitBody
from api.metrics import Metrics
from api.middleware import BodyCap, Envelope
from api.watching import Hub
from service.bootstrap import Parts
from service.webhooks import Courier

_ABOUT = """Teams submit batches, watch them and fetch what they came to.

Times are seconds since 1970, ids are opaque. Errors are problem documents (RFC 9457) with a stable `type`."""
_STATUSES = (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 500, 503)


def create_app(parts: Parts) -> FastAPI:
    """The application over these parts; the database must be there and migrated."""
    app = FastAPI(
        title="Assay",
        version=version("skill-assay"),
        description=_ABOUT,
        lifespan=_lifespan,
        openapi_url="/v1/openapi.json",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        responses={status: _problem_answer() for status in _STATUSES},
    )
    app.state.parts = parts
    app.state.rate = Rate(parts.settings.requests_per_minute)
    app.state.strangers = Rate(parts.settings.requests_per_minute, whose="an address without a good token")
    app.state.metrics = Metrics(parts.monitoring)
    app.state.hub = Hub(parts.watching, parts.settings.most_watchers)
    for room in (batches, comparisons, regrading, runs, skills, webhooks, health):
        app.include_router(room.router)
    errors.install(app)
    app.add_middleware(BodyCap, settings=parts.settings)
    app.add_middleware(Envelope, count=app.state.metrics.count)
    app.openapi = lambda: _description(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    courier = Courier(app.state.parts.webhooks)
    courier.start()
    yield
    courier.stop()
    await app.state.hub.close()


def _problem_answer() -> dict[str, Any]:
    content = {errors.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": "A problem.", "content": content}


def _description(app: FastAPI) -> dict[str, Any]:
    """OpenAPI, with the models that routes read or answer by themselves."""
    if app.openapi_schema is None:
        from fastapi.openapi.utils import get_openapi

        found = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        for model in (SubmitBody, RegradeBody, Problem):
            made = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas.update(made.pop("$defs", {}))
            schemas[model.__name__] = made
        _restore_nulls(schemas)
        app.openapi_schema = found
    return app.openapi_schema


def _restore_nulls(schemas: dict[str, Any]) -> None:
    """Put the examples of our models in again: the framework drops what is null, also where it must be said."""
    for model in (*vars(documents).values(), *vars(comparison_documents).values()):
        if isinstance(model, type) and issubclass(model, BaseModel) and model.__name__ in schemas:
            extra = model.model_config.get("json_schema_extra")
            if isinstance(extra, dict):
                schemas[model.__name__].update(extra)
