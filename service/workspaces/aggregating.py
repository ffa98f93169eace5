"""The whole aggregation of a folder of runs, without a service."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pydantic import JsonValue

from service.aggregation.benchmark import Aggregates, aggregate
from service.aggregation.markdown import benchmark_markdown
from service.aggregation.records import BatchPlan, Options
from service.errors import BadInput
from service.workspaces.given import GIVEN, Given, keep_given, mismatches, read_given
from service.workspaces.reading import Workspace
from service.workspaces.roles import arms

BENCHMARK, MARKDOWN, FEEDBACK = "benchmark.json", "benchmark.md", "eval_feedback_aggregate.json"


@dataclass(frozen=True, slots=True)
class FolderRequest:
    """What to aggregate and how."""

    folder: Path
    suite: Path | None = None
    skill_name: str | None = None
    skill_path: str | None = None
    treatment: str | None = None
    control: str | None = None
    options: Options = field(default_factory=Options)


@dataclass(frozen=True, slots=True)
class FolderAggregate:
    """A folder, aggregated; `root` is where its files belong."""

    aggregates: Aggregates
    root: Path
    given: Given | None
    workspace: Workspace


def aggregate_folder(request: FolderRequest) -> FolderAggregate:
    """Aggregate a skill-creator workspace; raises BadInput when it holds no runs."""
    workspace = Workspace.open(request.folder, request.suite)
    given = read_given(workspace)
    plan = _plan(request, workspace, given)
    aggregates = aggregate(workspace.records(plan.arms), plan)
    aggregates.warnings[:0] = [*workspace.remarks, *mismatches(given, aggregates)]
    return FolderAggregate(aggregates, workspace.layout.root, given, workspace)


def _plan(request: FolderRequest, workspace: Workspace, given: Given | None) -> BatchPlan:
    metadata = given.metadata if given else {}
    return BatchPlan(
        skill_name=request.skill_name or text_of(metadata, "skill_name") or skill_name_of(workspace),
        timestamp=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        arms=arms(workspace.layout.configurations, request.treatment, request.control),
        skill_path=request.skill_path or text_of(metadata, "skill_path"),
        executor_model=text_of(metadata, "executor_model"),
        analyzer_model=text_of(metadata, "analyzer_model"),
        provenance={**_kept_provenance(given), "source": "folder", "folder": workspace.folder.root.name},
        iteration=workspace.layout.iteration,
        options=request.options,
    )


def _kept_provenance(given: Given | None) -> dict[str, JsonValue]:
    """What an earlier benchmark of ours says of the same runs: an export knows no longer where they come from."""
    kept = given.metadata.get("provenance") if given is not None and given.is_ours else None
    return {**kept} if isinstance(kept, dict) else {}


def text_of(metadata: dict[str, JsonValue], name: str) -> str | None:
    """A name somebody wrote down; skill-creator's own `<model-name>` is none."""
    value = metadata.get(name)
    return value if isinstance(value, str) and value and not value.startswith("<") else None


def skill_name_of(workspace: Workspace) -> str:
    """The skill's name as the folder's own name tells it."""
    root = workspace.layout.root
    name = root.parent.name if root.name.startswith("iteration") else root.name
    return name.removesuffix("-workspace") or "skill"


def write_folder(found: FolderAggregate, output: Path | None = None) -> list[Path]:
    """Write the three files; `output` moves benchmark.json and its neighbours elsewhere."""
    target = output or found.root / BENCHMARK
    if target.is_dir():
        raise BadInput(f"{target} is a folder; name the file to write, such as {target / BENCHMARK}")
    if output is None and found.given is not None and not found.given.is_ours:
        keep_given(found.root / BENCHMARK, found.root / GIVEN)
    aggregates, markdown = found.aggregates, benchmark_markdown(found.aggregates)
    return [
        _write(target, aggregates.write_benchmark),
        _write(target.with_suffix(".md"), lambda out: _put(out, markdown)),
        _write(target.parent / FEEDBACK, aggregates.write_feedback),
    ]


def _put(out: IO[bytes], text: str) -> None:
    out.write(text.encode("utf-8", "replace"))


def _write(path: Path, fill: Callable[[IO[bytes]], None]) -> Path:
    """Write beside the file first, so that a reader never meets half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.part")
    try:
        with half.open("wb") as out:
            fill(out)
        half.replace(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error
    return path
