"""Whether it lives, whether it can work, and figures for those who run it."""

from collections.abc import Callable
from importlib.metadata import version

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.access import Administrator, PartsHere
from api.documents import Health, Readiness
from service.errors import AssayError
from service.storage.schema import current, require_newest

router = APIRouter(tags=["health"])
_METRICS = {200: {"description": "Figures.", "content": {"text/plain": {"schema": {"type": "string"}, "example": "…"}}}}


@router.get("/healthz")
def healthz() -> Health:
    """Whether the process answers."""
    return Health(status="ok", version=version("skill-assay"))


@router.get("/readyz", responses={503: {"model": Readiness, "description": "A part does not work."}})
def readyz(parts: PartsHere, response: Response) -> Readiness:
    """Whether database, migrations and broker are as they must be."""
    found = Readiness(
        database=_try(lambda: current(parts.store.engine)),
        migrations=_try(lambda: require_newest(parts.store.engine)),
        broker=_try(parts.broker.check),
    )
    if {found.database, found.migrations, found.broker} != {"ok"}:
        response.status_code = 503
    return found


@router.get("/metrics", response_class=Response, responses=_METRICS)  # type: ignore[arg-type]
def metrics(request: Request, _caller: Administrator) -> Response:
    """Figures for Prometheus; needs the scope admin, as they are those of all teams."""
    request.app.state.metrics.watchers.set(request.app.state.hub.watchers)
    return Response(request.app.state.metrics.text(), media_type=CONTENT_TYPE_LATEST)


def _try(probe: Callable[[], object]) -> str:
    """ok, or what is wrong, without addresses and user names: anybody may ask this."""
    try:
        probe()
    except AssayError as error:
        return str(error).split(":")[0].split(" at ")[0]
    return "ok"
