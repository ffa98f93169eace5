"""How long 1,000 and 10,000 runs take to aggregate, and how much memory, beside merely loading their files.

    python bench/aggregation.py [CASESxRUNS_PER_ARM ...]

From a folder as `assay aggregate` does it, and from PostgreSQL and the artifact store as the aggregator does it (there
with the report). Every measurement is a process of its own; the files are written first and read once before, so that
all find them in the page cache.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from results import save
from sqlalchemy import insert, select, update
from support.servers import PostgresServer

from service.bootstrap import Parts
from service.settings import Settings
from service.storage.schema import migrate
from service.storage.tables import artifacts, runs
from service.submitting import Submission

STATEMENTS = 8

LOAD = """
import json, pathlib, sys
for path in pathlib.Path(sys.argv[1]).glob("eval-*/*/run-*"):
    json.loads((path / "grading.json").read_bytes())
    json.loads((path / "timing.json").read_bytes())
"""
AGGREGATE = """
import pathlib, sys
from service.workspaces.aggregating import FolderRequest, aggregate_folder, write_folder
found = aggregate_folder(FolderRequest(pathlib.Path(sys.argv[1])))
write_folder(found)
print(found.aggregates.verdict_sentence)
"""


# The highest memory of the process itself: what getrusage says may be what its parent had.
WRAPPER = """
import resource, sys
exec(sys.argv.pop(1))
used = resource.getrusage(resource.RUSAGE_SELF)
[peak] = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")]
print(used.ru_utime + used.ru_stime, int(peak) / 1024, file=sys.stderr)
"""
FROM_DATABASE = """
import pathlib, sys, tempfile
from service.bootstrap import Parts
from service.settings import Settings
with tempfile.TemporaryDirectory() as folder:
    Parts(Settings()).aggregate(sys.argv[1], pathlib.Path(folder))
"""


def make_folder(root: Path, cases: int, runs_per_arm: int) -> None:
    """A workspace with both arms of every case."""
    draw = random.Random(cases)
    for case in range(cases):
        ease = draw.uniform(0.3, 0.7)
        for arm, chance in (("with_skill", ease + 0.2), ("without_skill", ease)):
            for number in range(1, runs_per_arm + 1):
                folder = root / f"eval-{case}" / arm / f"run-{number}"
                folder.mkdir(parents=True)
                (folder / "grading.json").write_text(json.dumps(grading(draw, chance)))
                timing = {"total_tokens": draw.randint(2000, 9000), "total_duration_seconds": draw.uniform(10, 90)}
                (folder / "timing.json").write_text(json.dumps(timing))


def grading(draw: random.Random, chance: float) -> dict[str, object]:
    """One judgement of about 3 kB."""
    return {
        "expectations": [
            {
                "text": f"The output keeps promise number {number} of the task",
                "passed": draw.random() < chance,
                "evidence": f"Found in outputs/report.md line {draw.randint(1, 400)}: "
                + "the value is as expected " * 6,
            }
            for number in range(STATEMENTS)
        ],
        "rubric_scores": {
            name: {"score": draw.randint(2, 5), "evidence": "Clear, one heading too many. " * 4}
            for name in ("clarity", "correctness", "completeness")
        },
        "claims": [{"claim": "All pages kept", "type": "factual", "verified": True, "evidence": "Counted 12 pages"}],
        "user_notes_summary": {
            "uncertainties": ["Used 2023 data, may be stale"],
            "needs_review": [],
            "workarounds": [],
        },
        "eval_feedback": {
            "suggestions": [
                {
                    "assertion": f"S{draw.randint(1, 8)}: promise",
                    "reason": f"would pass for a wrong {draw.choice(WORDS)}",
                }
            ],
            "overall": "Checks presence, not correctness.",
        },
    }


WORDS = ("date", "total", "name", "page", "table", "currency", "reference", "signature", "heading", "language")


class Kept:
    """The same kind of runs in PostgreSQL and an artifact folder."""

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.environment = {
            **os.environ,
            "ASSAY_DATA": str(folder / "data"),
            "ASSAY_DATABASE_URL": server.create_database(f"aggregation{folder.name[-8:].lower()}"),
        }
        words = {"data": folder / "data", "database_url": self.environment["ASSAY_DATABASE_URL"]}
        self._parts = Parts(Settings(**words))
        self._folder = folder
        migrate(self._parts.store.engine)

    def fill(self, cases: int, runs_per_arm: int) -> str:
        """A batch whose every run was judged; its id."""
        skill = self._folder / "skill"
        (skill / "evals").mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: pdf\ndescription: for figures\n---\nx\n")
        said = [f"The output keeps promise number {number} of the task" for number in range(STATEMENTS)]
        evals = [{"id": n, "prompt": f"task {n}", "expectations": said} for n in range(cases)]
        (skill / "evals" / "evals.json").write_text(json.dumps({"skill_name": "pdf", "evals": evals}))
        settings = {"runner": "command", "command": "true", "runs_per_eval": runs_per_arm, "analyst": False}
        batch_id = self._parts.desk.submit(Submission(skill, settings=settings)).batch_id
        self._settle(batch_id)
        self._parts.close()
        return batch_id

    def _settle(self, batch_id: str) -> None:
        draw, rows = random.Random(batch_id[-1]), []
        with self._parts.store.engine.begin() as connection:
            for run in connection.execute(select(runs.c.id, runs.c.role).where(runs.c.batch_id == batch_id)).all():
                chance = 0.7 if run.role == "treatment" else 0.5
                timing = {"total_tokens": draw.randint(2000, 9000), "total_duration_seconds": draw.uniform(10, 90)}
                for name, document in (("grading.json", grading(draw, chance)), ("timing.json", timing)):
                    blob = self._parts.artifacts.put(json.dumps(document).encode())
                    about: dict[str, Any] = {"sha256": blob.sha256, "size": blob.size, "stage": "judge"}
                    rows.append({"run_id": run.id, "name": name, **about})
            connection.execute(insert(artifacts), rows)
            ended = {"stage": "settled", "outcome": "scored", "settled_at": time.time()}
            connection.execute(update(runs).where(runs.c.batch_id == batch_id).values(**ended))


def measured(code: str, argument: str, environment: dict[str, str] | None = None) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak MiB of a process that runs the code."""
    start = time.perf_counter()
    argv = [sys.executable, "-c", WRAPPER, code, argument]
    done = subprocess.run(argv, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(done.stderr)
    processor, memory = done.stderr.strip().splitlines()[-1].split()
    return time.perf_counter() - start, float(processor), float(memory)


def one_shape(cases: int, runs_per_arm: int, server: PostgresServer) -> dict[str, tuple[float, float, float]]:
    """All ways for one size."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "pdf-workspace"
        make_folder(folder, cases, runs_per_arm)
        measured(LOAD, str(folder))
        found = {"json": measured(LOAD, str(folder)), "folder": measured(AGGREGATE, str(folder))}
        kept = Kept(Path(name), server)
        batch_id = kept.fill(cases, runs_per_arm)
        return found | {"database": measured(FROM_DATABASE, batch_id, kept.environment)}


def main() -> None:
    """Measure and print a table: more cases first, then more runs of the same cases."""
    shapes = [tuple(map(int, argument.split("x"))) for argument in sys.argv[1:]] or [(50, 10), (500, 10), (50, 100)]
    ways = ("json", "folder", "database")
    print("| runs | cases | " + " | ".join(f"{way}: wall s | CPU s | MiB" for way in ways) + " |")
    print("|" + "---|" * 11)
    server, figures = PostgresServer(), []
    server.start()
    try:
        for cases, runs_per_arm in shapes:
            found = one_shape(cases, runs_per_arm, server)
            cells = " | ".join(f"{wall:.1f} | {cpu:.1f} | {memory:.0f}" for wall, cpu, memory in found.values())
            print(f"| {2 * cases * runs_per_arm:,} | {cases} | {cells} |", flush=True)
            told = {way: dict(zip(("wall_s", "cpu_s", "mib"), seen, strict=True)) for way, seen in found.items()}
            figures.append({"runs": 2 * cases * runs_per_arm, "cases": cases, **told})
    finally:
        server.remove()
    save("aggregation", {"shapes": figures})


if __name__ == "__main__":
    main()
