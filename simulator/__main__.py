"""`python -m simulator`: a simulator in the foreground."""

import argparse
import asyncio
import contextlib
import resource
import signal
from pathlib import Path

from simulator.script import load_script
from simulator.server import Server
from simulator.settings import Settings, as_range


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="simulator", description="A Messages API on loopback.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8089, help="0 chooses a free one")
    parser.add_argument("--script", type=Path, help="what the model does; see docs/simulator.md")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--latency", default="0", help="seconds, or least,most")
    parser.add_argument("--requests-per-minute", type=int)
    parser.add_argument("--batch-seconds", type=float, default=0.0)
    parser.add_argument("--keep-requests", type=int, default=0, help="how many requests /control/requests shows")
    return parser.parse_args(arguments)


def settings_of(options: argparse.Namespace) -> Settings:
    """Settings from the command line; raises ValueError."""
    parts = [float(part) for part in str(options.latency).split(",")]
    return Settings(
        seed=options.seed,
        latency_seconds=as_range(parts[0] if len(parts) == 1 else parts),
        requests_per_minute=options.requests_per_minute,
        batch_seconds=options.batch_seconds,
        keep_requests=options.keep_requests,
        script=load_script(options.script) if options.script else {},
    )


async def serve(settings: Settings, host: str, port: int) -> None:
    """Serve until the process is told to stop; the first line printed is the url."""
    server = Server(settings)
    listening = await server.listen(host, port)
    print(server.url, flush=True)
    stopped = asyncio.Event()
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stopped.set)
    await stopped.wait()
    listening.close()
    server.hang_up()


def allow_many_connections() -> None:
    """A thousand requests are a thousand files: use what the system allows."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    options = parse(arguments)
    allow_many_connections()
    try:
        settings = settings_of(options)
    except ValueError as error:
        raise SystemExit(f"simulator: {error}") from None
    asyncio.run(serve(settings, options.host, options.port))


if __name__ == "__main__":
    main()
