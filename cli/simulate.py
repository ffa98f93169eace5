"""`assay simulator`, and the simulator behind `--model simulated`."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import SecretStr

from service.batch_settings import models_to_ask
from service.errors import BadInput
from service.settings import Settings

MODEL = "simulated"
SCRIPT = "simulation.json"  # beside evals.json

EXAMPLES = """
Examples:

  assay simulator --port 8089 --latency 0.5,1.5

  ANTHROPIC_BASE_URL=http://127.0.0.1:8089 ANTHROPIC_API_KEY=any assay run my-skill --runner messages --model simulated
"""


def simulator(
    port: Annotated[int, typer.Option(help="Where to listen on this machine; 0 chooses a free port.")] = 8089,
    script: Annotated[Path | None, typer.Option(help="What the simulated model does; see docs/simulator.md.")] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other chances.")] = 0,
    latency: Annotated[str, typer.Option(help="Seconds an answer takes, or least,most.")] = "0",
    requests_per_minute: Annotated[int | None, typer.Option(min=1, help="Above it: 429 with retry-after.")] = None,
    batch_seconds: Annotated[float, typer.Option(min=0, help="How long a message batch takes.")] = 0.0,
) -> None:
    """Serve a Messages API on this machine, for demos and tests: no key, no cost, every answer labelled."""
    import simulator.__main__ as program

    words = ["--port", str(port), "--seed", str(seed), "--latency", latency, "--batch-seconds", str(batch_seconds)]
    words += ["--script", str(script)] if script else []
    words += ["--requests-per-minute", str(requests_per_minute)] if requests_per_minute else []
    program.main(words)


def is_simulated(model: str | None) -> bool:
    """Whether a model is the simulator's, whatever it is called behind that word."""
    return model is not None and (model == MODEL or model.startswith(f"{MODEL}-"))


def refuse_without_simulator(settings: Settings) -> None:
    """A fleet's processes must reach the same simulator: none of them can start one for the others."""
    if any(map(is_simulated, models_to_ask({}, None, settings))) and not settings.anthropic_base_url:
        raise BadInput(
            "the model simulated needs a simulator that every worker reaches; start one with `assay simulator` and set "
            "ANTHROPIC_BASE_URL to its address, and ANTHROPIC_API_KEY to any word"
        )


@contextmanager
def simulated(settings: Settings, models: Iterable[str | None], suite: Path | None = None) -> Iterator[Settings]:
    """Settings that reach the models asked for: with a model `simulated` and no gateway named, one of our own.

    Its script is simulation.json beside the suite, if there is one.
    """
    if not any(is_simulated(model) for model in models):
        yield settings
        return
    if settings.anthropic_base_url:
        key = settings.anthropic_api_key or SecretStr(MODEL)
        yield settings.model_copy(update={"anthropic_api_key": key})
        return
    from simulator import start

    script = suite.parent / SCRIPT if suite and (suite.parent / SCRIPT).is_file() else None
    try:
        running = start(script)
    except ValueError as error:
        raise BadInput(str(error)) from error
    with running:
        changes = {"anthropic_base_url": running.url, "anthropic_api_key": SecretStr(MODEL)}
        yield settings.model_copy(update=changes)
