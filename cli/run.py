"""`assay run`: a whole batch on this machine, with no server."""

import contextlib
import functools
import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.ctrl_c import CtrlC
from cli.desk import Json, suite_bytes
from cli.gating import Asked, FailUnder, Junit, MinDelta, NoRegression, RequireVerdict, Summary, judge, tell
from cli.options import Against, Baseline, Command, Data, Evals, JudgeModel, Model, Runner, Runs, Set, batch_settings
from cli.regrade_table import REGRADE, regrade_table
from cli.simulate import simulated
from schemas.findings import Level
from schemas.states import BatchState, Outcome
from schemas.suite import EvalConfig, Suite
from service import log
from service.aggregation.gates import Gates
from service.batch_settings import asked_models, models_to_ask
from service.batches import Status
from service.errors import BadInput, Unavailable
from service.settings import Settings, embedded_settings

LEAST_FREE_BYTES = 256 * 1024

EXAMPLES = """
Examples:

  assay run my-skill --command "./my-agent.sh"

  assay run my-skill --runs 5 --no-baseline --json

  assay run my-skill --model simulated

  assay run my-skill --resume
"""


def run(
    skill: Annotated[Path, typer.Argument(help="The folder that holds SKILL.md.")],
    evals: Evals = None,
    runs: Runs = None,
    baseline: Baseline = None,
    against: Against = None,
    runner: Runner = None,
    command: Command = None,
    model: Model = None,
    judge_model: JudgeModel = None,
    others: Set = None,
    sandbox: Annotated[str | None, typer.Option(help="bwrap, landlock, none or best.")] = None,
    data: Data = None,
    fail_under: FailUnder = None,
    min_delta: MinDelta = None,
    no_regression: NoRegression = False,
    require_verdict: RequireVerdict = None,
    junit: Junit = None,
    summary: Summary = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one final JSON object.")] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with this skill's unfinished batch.")] = False,
) -> None:
    """Run a skill's whole suite on this machine: no server, no root. Ctrl-C stops, --resume goes on."""
    settings = embedded_settings(data=data, sandbox=sandbox)
    log.configure("warning" if settings.log_level == "info" else settings.log_level, settings.log_format)
    given = batch_settings(runs, baseline, runner, command, model, judge_model, others)
    asked = Asked(Gates(fail_under, min_delta, no_regression, require_verdict), junit, summary)
    wanted = Wanted(skill, evals, given, against, resume, as_json, asked)
    suite = evals or skill / "evals" / "evals.json"
    with simulated(settings, _models(settings, wanted, suite), suite) as ready:
        code = _run(ready, wanted)
    raise typer.Exit(code)


@dataclass(frozen=True)
class Wanted:
    """What the command line asked for."""

    skill: Path
    evals: Path | None
    settings: dict[str, Any]
    against: str | None
    resume: bool
    as_json: bool
    asked: Asked


def _models(settings: Settings, wanted: Wanted, suite: Path) -> list[str]:
    """The models that will be asked, whoever named them: the batch to go on with, the submit, the suite, or we."""
    from service.bootstrap import Parts
    from service.storage.schema import migrate

    if not wanted.resume:
        return models_to_ask(wanted.settings, _config(suite), settings)
    with contextlib.closing(Parts(settings)) as parts:
        migrate(parts.store.engine)
        batch = parts.store.batches.one(_unfinished(parts, wanted.skill))
        assert batch is not None
        values = {name: batch.setting(name) for name in ("executor_model", "judge_model", "judge_models")}
    return asked_models(values)


def _config(suite: Path) -> EvalConfig | None:
    """What a suite says of its settings; one that cannot be read is refused later, with its reasons."""
    from schemas.dialects import read_suite

    try:
        document = read_suite(suite.read_bytes()).document
    except OSError:
        return None
    return document.config if isinstance(document, Suite) else None


def _run(settings: Settings, wanted: Wanted) -> int:
    def begin(parts: Any) -> str:
        batch_id = _unfinished(parts, wanted.skill) if wanted.resume else _submit(parts, wanted)
        print(f"sandbox {parts.sandbox.tier}, data in {settings.data}", file=sys.stderr)
        return batch_id

    return carry_out(settings, wanted, begin, f"assay run {wanted.skill} --resume --data {settings.data}")


def carry_out(settings: Settings, wanted: Wanted, begin: Callable[[Any], str], go_on: str) -> int:
    """Carry a batch out in this process and tell what it came to; `begin` gives its id, `go_on` says how to resume."""
    from cli.local import Local
    from cli.progress import ProgressView, watch
    from service.bootstrap import Parts
    from service.storage.schema import migrate
    from workers.embedded import Embedded

    with contextlib.closing(Parts(settings)) as parts:
        migrate(parts.store.engine)
        batch_id = begin(parts)
        try:
            with CtrlC() as ctrl_c, Embedded(parts), ProgressView() as view:
                ask = functools.partial(parts.desk.status, batch_id, settings.team)
                status = watch(ask, view, must_hold=functools.partial(_refuse_to_wait, settings.data, ctrl_c))
        except KeyboardInterrupt:
            print(f"\nstopped; go on with: {go_on}", file=sys.stderr)
            return 130
        paths = write_results(parts, batch_id)
        gated = judge(Local(parts), batch_id, wanted.asked)
        _tell(status, gated, paths, wanted.as_json)
    return int(gated["exit_code"]) if gated["results"] else 0 if decided(status.progress.outcomes) else 2


def _refuse_to_wait(data: Path, ctrl_c: CtrlC) -> None:
    """Raises when there is no point in waiting for the batch."""
    ctrl_c.check()
    _refuse_full_disk(data)


def _refuse_full_disk(data: Path) -> None:
    """Without room nothing can be saved: every run would be tried again for ever."""
    if shutil.disk_usage(data).free < LEAST_FREE_BYTES:
        raise Unavailable(f"the disk of {data} is full; free some space and go on with --resume")


def decided(outcomes: dict[str, int]) -> bool:
    """Whether anything can be said at all: some run was scored or gated."""
    return bool(outcomes.get(Outcome.SCORED, 0) + outcomes.get(Outcome.GATED, 0))


def _submit(parts: Any, wanted: Wanted) -> str:
    from service.submitting import Submission

    suite = suite_bytes(wanted.evals)
    submission = Submission(wanted.skill, suite, parts.settings.team, wanted.settings, wanted.against)
    accepted = parts.desk.submit(submission)
    for finding in accepted.findings:
        if finding.level is not Level.NOTE:
            print(f"{finding.level}  {finding.path}  {finding.message}", file=sys.stderr)
    print(f"batch {accepted.batch_id}: {accepted.runs} runs of {wanted.skill} {accepted.version}", file=sys.stderr)
    return str(accepted.batch_id)


def _unfinished(parts: Any, skill: Path) -> str:
    from service.skills import find_skill, front_matter

    find_skill(skill)
    name = front_matter((skill / "SKILL.md").read_text(errors="replace")).get("name") or skill.resolve().name
    for batch in parts.desk.list(parts.settings.team):
        version = parts.store.teams.skill_version(batch.skill_version_id)
        if version and version.skill == name and batch.state not in (BatchState.FINISHED, BatchState.CANCELLED):
            return str(batch.id)
    raise BadInput(f"{name} has no unfinished batch in {parts.settings.data}; run it without --resume")


def write_results(parts: Any, batch_id: str) -> dict[str, str]:
    """Put the aggregate's files where people find them."""
    from service.aggregate import HISTORY_FIGURES

    folder = parts.settings.data / "results" / batch_id
    folder.mkdir(parents=True, exist_ok=True)
    batch = parts.store.batches.one(batch_id)
    paths: dict[str, str] = {}
    for name in batch.aggregate or {}:
        if name == HISTORY_FIGURES:
            continue
        (folder / name).write_bytes(parts.desk.aggregate_file(batch_id, parts.settings.team, name))
        paths[name] = str(folder / name)
    return paths


def _tell(status: Status, gated: Json, paths: dict[str, str], as_json: bool) -> None:
    batch, outcomes = status.batch, status.progress.outcomes
    if as_json:
        gates = {gate["name"]: gate["state"] for gate in gated["results"]}
        print(
            json.dumps(
                {"batch_id": batch.id, "state": batch.state, "outcomes": outcomes, "gates": gates, "paths": paths}
                | ({"regrade": json.loads(Path(paths[REGRADE]).read_bytes())} if REGRADE in paths else {})
            )
        )
        return
    if "benchmark.md" in paths:
        print(_headline(Path(paths["benchmark.md"]).read_text(encoding="utf-8")))
    tell(gated)
    print(f"batch {batch.id} {batch.state}")
    for outcome, count in sorted(outcomes.items()):
        print(f"  {outcome:15} {count}")
    for name, path in paths.items():
        print(f"  {name}: {path}")
    if REGRADE in paths:
        print("\n".join(["", *regrade_table(json.loads(Path(paths[REGRADE]).read_bytes()))]))


def _headline(markdown: str) -> str:
    """The verdict, the coverage and the arms: what people look for first."""
    head = markdown.split("\n## Cases", 1)[0].strip()
    simulated = [line for line in markdown.splitlines() if "came from the simulator" in line]
    return "\n".join([head, "", *simulated]).replace("\\_", "_").replace("**", "").rstrip() + "\n"
