"""Workspaces as other tools leave them, to grade and to import."""

import json
from pathlib import Path
from typing import Any

SKILL_CREATOR_SUITE = {
    "skill_name": "notes",
    "evals": [
        {"id": 1, "prompt": "Write notes.md", "expectations": ["notes.md exists", "The notes name the version"]},
        {"id": 2, "prompt": "Write more notes", "expectations": ["The notes are short"]},
    ],
}


def put(path: Path, content: Any) -> Path:
    """Write a file, JSON unless it is text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def add_run(folder: Path, text: str = "version 1.2\n", transcript: str = "wrote notes.md\n") -> Path:
    """The folder of one run, as an executor leaves it: not graded."""
    put(folder / "outputs" / "notes.md", text)
    put(folder / "transcript.md", transcript)
    timing = {"total_tokens": 1200, "duration_ms": 3000, "total_duration_seconds": 3.0}
    put(folder / "timing.json", timing)
    return folder


def grading(*decided: tuple[str, bool]) -> dict[str, Any]:
    """grading.json of skill-creator."""
    passed = sum(ok for _, ok in decided)
    summary = {"passed": passed, "failed": len(decided) - passed, "total": len(decided)}
    summary["pass_rate"] = passed / len(decided) if decided else 0
    return {"expectations": [{"text": t, "passed": ok, "evidence": "seen"} for t, ok in decided], "summary": summary}


def metadata(number: int) -> dict[str, Any]:
    """eval_metadata.json of a case of the suite above."""
    case: dict[str, Any] = SKILL_CREATOR_SUITE["evals"][number - 1]  # type: ignore[index, assignment]
    return {
        "eval_id": number,
        "eval_name": f"case-{number}",
        "prompt": case["prompt"],
        "assertions": case["expectations"],
    }


def flat_workspace(root: Path) -> Path:
    """<case>/<configuration>/outputs, one run each, as skill-creator's own instructions have it."""
    for number in (1, 2):
        for arm in ("with_skill", "without_skill"):
            add_run(root / f"eval-{number}" / arm, f"{arm} {number}\n")
        put(root / f"eval-{number}" / "eval_metadata.json", metadata(number))
    return root


def numbered_workspace(root: Path, runs: int = 2) -> Path:
    """iteration-1/eval-<id>-<slug>/<configuration>/run-<n>, with the suite beside it."""
    for number in (1, 2):
        for arm in ("with_skill", "without_skill"):
            for run in range(1, runs + 1):
                add_run(root / "iteration-1" / f"eval-{number}-case" / arm / f"run-{run}", f"{arm} {number} {run}\n")
    put(root / "evals.json", SKILL_CREATOR_SUITE)
    return root
