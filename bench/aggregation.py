"""How long 1,000 and 10,000 runs take to aggregate from a folder, and how much memory, beside merely loading them.

    python bench/aggregation.py [CASESxRUNS_PER_ARM ...]

Every measurement is a process of its own; the folder is written first and read once before, so that both find it in
the page cache.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def measured(code: str, folder: Path) -> tuple[float, float, float]:
    """Wall seconds, processor seconds and peak MiB of a process that runs the code."""
    wrapper = "import resource, sys\nexec(sys.argv.pop(1))\nused = resource.getrusage(resource.RUSAGE_SELF)\n"
    wrapper += "print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, file=sys.stderr)"
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", wrapper, code, str(folder)], capture_output=True, text=True, check=True
    )
    processor, memory = done.stderr.strip().splitlines()[-1].split()
    return time.perf_counter() - start, float(processor), float(memory)


def main() -> None:
    """Measure and print a table: more cases first, then more runs of the same cases."""
    shapes = [tuple(map(int, argument.split("x"))) for argument in sys.argv[1:]] or [(50, 10), (500, 10), (50, 100)]
    print("| runs | cases | json: wall s | CPU s | MiB | aggregate: wall s | CPU s | MiB | runs per CPU s |")
    print("|" + "---|" * 9)
    for cases, runs_per_arm in shapes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) / "pdf-workspace"
            make_folder(folder, cases, runs_per_arm)
            measured(LOAD, folder)
            load, whole = measured(LOAD, folder), measured(AGGREGATE, folder)
        runs = 2 * cases * runs_per_arm
        cells = (f"{wall:.1f} | {processor:.1f} | {memory:.0f}" for wall, processor, memory in (load, whole))
        print(f"| {runs:,} | {cases} | {' | '.join(cells)} | {runs / whole[1]:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
