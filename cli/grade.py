"""`assay grade`: check and judge run folders that something else produced."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.gating import Asked, FailUnder, Junit, MinDelta, NoRegression, RequireVerdict, Summary
from cli.given import started, wanted
from cli.options import SIMULATED_JUDGE
from cli.run import carry_out
from cli.simulate import MODEL, simulated
from service import log
from service.aggregation.gates import Gates
from service.settings import embedded_settings

EXAMPLES = """
Examples:

  assay grade my-skill-workspace --judge-model claude-opus-5-5

  assay grade my-skill-workspace/iteration-2 --evals my-skill/evals/evals.json --skill my-skill --json

  assay grade my-skill-workspace --model simulated
"""


def grade(
    workspace: Annotated[Path, typer.Argument(help="A folder of runs: a skill-creator workspace or an iteration.")],
    evals: Annotated[Path | None, typer.Option(help="The suite; the workspace's own by default.")] = None,
    skill: Annotated[Path | None, typer.Option(help="The folder that holds SKILL.md, if it is known.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Model that made the runs, for the record; `simulated` is a simulated judge.")
    ] = None,
    judge_model: Annotated[str | None, typer.Option(help="Model of the judge.")] = None,
    treatment: Annotated[
        str | None, typer.Option(help="The configuration on trial, if its name does not tell.")
    ] = None,
    control: Annotated[str | None, typer.Option(help="The configuration it is compared with.")] = None,
    sandbox: Annotated[str | None, typer.Option(help="bwrap, landlock, none or best; for checks that run scripts.")] = (
        None
    ),
    data: Annotated[Path | None, typer.Option(help="The data folder.")] = None,
    fail_under: FailUnder = None,
    min_delta: MinDelta = None,
    no_regression: NoRegression = False,
    require_verdict: RequireVerdict = None,
    junit: Junit = None,
    summary: Summary = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one final JSON object.")] = False,
) -> None:
    """Check and judge runs that something else executed; nothing is executed. Exit code 3: it cannot be used."""
    from service.take_in import TakeInRequest

    settings = embedded_settings(data=data, sandbox=sandbox)
    log.configure("warning" if settings.log_level == "info" else settings.log_level, settings.log_format)
    judge = SIMULATED_JUDGE if model == MODEL and judge_model is None else judge_model
    request = TakeInRequest(
        workspace,
        settings.team,
        evals,
        skill,
        treatment,
        control,
        executor_model=None if model == MODEL else model,
        settings={"judge_model": judge} if judge else {},
    )

    def begin(parts: Any) -> str:
        return started(parts, parts.take_in.grade(request), str(workspace))

    gates = Asked(Gates(fail_under, min_delta, no_regression, require_verdict), junit, summary)
    asked = wanted(workspace, as_json, gates)
    script = evals or (skill / "evals" / "evals.json" if skill else None)
    with simulated(settings, [model, judge_model], script) as ready:
        code = carry_out(ready, asked, begin, f"assay serve --data {settings.data}")
    raise typer.Exit(code)
