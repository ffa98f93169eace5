"""`assay serve`: the API; on the embedded default with the workers, so that one command is a whole installation."""

import signal
from contextlib import ExitStack, closing
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from service import log
from service.batch_settings import models_to_ask
from service.errors import BadInput
from service.settings import load_settings, require_shared_limits

EXAMPLES = """
Examples:

  assay serve

  assay token create my-team --scope submit --scope read && assay serve --host 0.0.0.0
"""


def serve(
    host: Annotated[str, typer.Option(help="Where to listen; other machines need tokens first.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 chooses a free port.")] = 8080,
    data: Annotated[Path | None, typer.Option(help="The data folder.")] = None,
    model: Annotated[str | None, typer.Option(help="`simulated` starts a simulated model for these workers.")] = None,
) -> None:
    """Serve the API under /v1. Without a broker this process also runs the workers."""
    from api.access import is_loopback
    from api.serving import listen, make_server
    from cli.simulate import simulated
    from service.bootstrap import Parts
    from service.storage.schema import migrate, require_newest

    settings = load_settings(data=data)
    require_shared_limits(settings)
    log.configure(settings.log_level, settings.log_format)
    with ExitStack() as stack:
        ready = stack.enter_context(simulated(settings, [model, *models_to_ask({}, None, settings)]))
        parts = stack.enter_context(closing(Parts(ready)))
        if ready.database_url is None:
            migrate(parts.store.engine)
        require_newest(parts.store.engine)
        if not parts.tokens.are_needed():
            if not is_loopback(host):
                raise BadInput(
                    f"nobody has a token yet, so only this machine may ask, not {host}; "
                    "make one with `assay token create`, or leave --host away"
                )
            log.warning("no token was made: everybody on this machine is let in, and nobody else")
        listening = stack.enter_context(listen(host, port))
        if ready.is_embedded:
            from workers.embedded import Embedded

            stack.enter_context(Embedded(parts))
        address, bound_port = listening.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address
        log.info("serving", url=f"http://{shown}:{bound_port}", workers=ready.is_embedded)
        typer.echo(f"serving http://{shown}:{bound_port}", err=True)
        _end_orderly()
        make_server(parts).run([listening])


def _end_orderly() -> None:
    """uvicorn raises the signal that ended it once more; then the workers must still hand back what they hold."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
