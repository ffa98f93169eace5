"""`assay worker` and `assay migrate`: what a fleet runs."""

from typing import Annotated

import typer

from cli.simulate import refuse_without_simulator
from service import log
from service.errors import BadInput
from service.settings import load_settings, require_shared_limits


def worker(
    role: Annotated[str, typer.Argument(help="executor, checker, judge, aggregator, or all.")],
    concurrency: Annotated[int | None, typer.Option(min=1, help="How much at once in each process.")] = None,
) -> None:
    """Consume a role's queue until SIGTERM; a worker that dies is started again.

    Examples:

      assay worker judge --concurrency 200

      assay worker all
    """
    from service.bootstrap import Parts
    from service.storage.schema import require_newest
    from workers.roles import role_named, roles
    from workers.supervisor import supervise

    settings = load_settings()
    log.configure(settings.log_level, settings.log_format)
    names = list(roles(settings)) if role == "all" else [role_named(role, settings).name]
    if settings.is_embedded:
        raise BadInput("a worker of its own needs a broker; set ASSAY_BROKER_URL, or use `assay run` on one machine")
    refuse_without_simulator(settings)
    require_shared_limits(settings)
    parts = Parts(settings)
    require_newest(parts.store.engine)
    parts.broker.check()
    if "executor" in names or "checker" in names:
        log.info("sandbox probed", tier=parts.sandbox.tier)
    parts.close()
    supervise(names, concurrency, settings)


def migrate() -> None:
    """Bring the database to the version this program needs; safe to repeat."""
    from service.bootstrap import Parts
    from service.storage import schema

    settings = load_settings()
    version = schema.migrate(Parts(settings).store.engine)
    typer.echo(f"the database is at version {version}")
