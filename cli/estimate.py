"""`assay estimate`: what a batch will take and what it could find out, before it is started."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.kinds import Dialect
from schemas.suite import Suite
from service.errors import BadInput, NotFound

if TYPE_CHECKING:
    from service.judging.estimate import Design, Estimate, Range, Share

EXAMPLES = """
Examples:

  assay estimate my-skill

  assay estimate my-skill/evals/evals.json --runs 5 --judge-model claude-opus-5-5 --judging batch
"""


def estimate(
    suite: Annotated[Path, typer.Argument(help="The suite, or the skill whose evals/evals.json it is.")],
    runs: Annotated[int | None, typer.Option(min=1, help="Runs per case and configuration.")] = None,
    baseline: Annotated[bool | None, typer.Option(help="Also run without the skill.")] = None,
    executor_model: Annotated[str | None, typer.Option(help="Model of the executor.")] = None,
    judge_model: Annotated[list[str] | None, typer.Option(help="Model of the judge; more make a panel.")] = None,
    judging: Annotated[str | None, typer.Option(help="realtime, batch (half price) or auto.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Estimate calls, tokens and cost of a batch, and the smallest difference it could find."""
    from service.judging.estimate import estimate as estimate_batch
    from service.models.prices import known_prices

    document, dialect = _suite(suite)
    design = _design(document, runs, baseline, executor_model, tuple(judge_model or ()), judging)
    found = estimate_batch(document, dialect, design, known_prices())
    print(json.dumps(_as_object(found), indent=2) if as_json else "\n".join(_lines(found, design)))


def _suite(path: Path) -> tuple[Suite, Dialect]:
    from schemas.dialects import read_suite

    file = path / "evals" / "evals.json" if path.is_dir() else path
    try:
        reading = read_suite(file.read_bytes())
    except OSError as error:
        raise NotFound(f"cannot read {file}: {error.strerror}") from error
    if not isinstance(reading.document, Suite) or reading.dialect is None:
        raise BadInput(f"{file} is no suite that can be run; `assay validate {file}` says why")
    return reading.document, reading.dialect


def _design(
    suite: Suite,
    runs: int | None,
    baseline: bool | None,
    executor: str | None,
    judges: tuple[str, ...],
    mode: str | None,
) -> "Design":
    """What the options say, else the suite, else the installation."""
    from service.judging.estimate import Design
    from service.judging.lane import LaneSettings
    from service.judging.lane_ask import uses_lane
    from service.judging.settings import JudgeSettings
    from service.settings import Settings

    installation, config = Settings(), suite.config
    per_eval = runs or (config and config.runs_per_eval) or installation.runs_per_eval
    wants = next((value for value in (baseline, config and config.baseline_comparison) if value is not None), None)
    arms = 2 if (installation.baseline_comparison if wants is None else wants) else 1
    asked = (config and config.judge_model) or installation.judge_model
    models = judges or tuple(installation.judge_models or ()) or ((asked,) if asked else ())
    judge = JudgeSettings(models=models, rejudge_share=installation.rejudge_share) if models else None
    half_price = uses_lane(mode or installation.judging, len(suite.cases) * per_eval * arms, LaneSettings())
    asked_model = None if installation.command else installation.executor_model
    return Design(per_eval, arms, executor or asked_model, judge, half_price)


def _as_object(found: "Estimate") -> dict[str, Any]:
    total = found.cost_usd
    return {**asdict(found), "cost_usd": asdict(total) if total else None}


def _lines(found: "Estimate", design: "Design") -> list[str]:
    arms = f"{design.arms} configuration{'s' if design.arms > 1 else ''}"
    return [
        f"{found.cases} cases x {arms} x {design.runs_per_eval} runs = {found.runs} runs",
        _share("execute", found.execute, "an external command executes; what it uses is not known"),
        _share("judge", found.judge, "nothing is judged: no judge model, or nothing to judge"),
        f"  cost     {_money(found.cost_usd)}{_remark(found, design)}",
        _detectable(found, design),
    ]


def _remark(found: "Estimate", design: "Design") -> str:
    told = ["judged at half price"] if design.half_price and found.judge else []
    told += ["without the executor's"] if found.execute is None and found.judge else []
    return f" ({', '.join(told)})" if told else ""


def _share(name: str, share: "Share | None", otherwise: str) -> str:
    if share is None:
        return f"  {name:<8} {otherwise}"
    tokens = f"{_span(share.input_tokens)} tokens in, {_span(share.output_tokens)} out"
    return f"  {name:<8} {_span(share.calls)} calls, {tokens}, {_money(share.cost_usd)}"


def _span(value: "Range") -> str:
    low, high = (_short(end) for end in (value.low, value.high))
    return low if low == high else f"{low} to {high}"


def _short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if unit == 'k' else size):.3g} {unit}"
    return f"{value:.0f}"


def _money(value: "Range | None") -> str:
    if value is None:
        return "cost not known: the price of a model is not known, or an external command executes"
    return f"{value.low:.2f} to {value.high:.2f} USD"


def _detectable(found: "Estimate", design: "Design") -> str:
    if found.detectable is None:
        why = "one configuration" if design.arms < 2 else "fewer than two cases"
        return f"  finds    no difference: {why}"
    few = "; with fewer than 6 cases no exact test can be significant" if found.cases < 6 else ""
    low, high = found.detectable.low, found.detectable.high
    if low >= 1.0:
        return f"  finds    nothing: a difference would have to be larger than 1.00{few}"
    return f"  finds    a true difference of {low:.2f} to {min(high, 1.0):.2f}, four times out of five{few}"
