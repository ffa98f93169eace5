"""Inspect AI as a contender: generate() and model_graded_qa(), its log in its own format."""

import json
import subprocess
from pathlib import Path
from typing import Any

from contender import CommandLine
from work import EXECUTOR, JUDGE, STATEMENT, Work, plain_script

TASK = Path(__file__).with_name("inspect_task.py")


class InspectAi(CommandLine):
    """`inspect eval`, and `inspect eval-retry` on its log after a kill."""

    name = "Inspect AI"
    script = plain_script("It says so.\n\nGRADE: C")
    notes = (
        "inspect eval --max-connections CONCURRENCY --max-samples CONCURRENCY --display none, log format eval; "
        "generate() and model_graded_qa() with its own template; tuned: --no-log-realtime --log-level-transcript "
        "warning --no-score-display; after the kill: eval-retry of the newest log"
    )

    def __init__(self, programs: Path, is_tuned: bool = False) -> None:
        super().__init__()
        self._programs = programs
        self._is_tuned = is_tuned
        if is_tuned:
            self.name = "Inspect AI, tuned"
        self._flags: list[str] = []

    def prepare(self, work: Work, folder: Path, url: str) -> None:
        """The work as a file, and a copy of the task beside it."""
        self.folder = folder
        asked = {"prompts": work.prompts(), "statement": STATEMENT, "judge": f"anthropic/{JUDGE}"}
        (folder / "work.json").write_text(json.dumps(asked))
        (folder / "task.py").write_text(TASK.read_text())
        self.environment = {
            "ANTHROPIC_API_KEY": "any",
            "ANTHROPIC_BASE_URL": url,
            "BENCH_WORK": str(folder / "work.json"),
            "XDG_DATA_HOME": str(folder / "state"),
        }
        at_once = str(work.concurrency)
        self._flags = ["--max-connections", at_once, "--max-samples", at_once, "--display", "none", "--log-dir", "logs"]

    def launch(self) -> None:
        tuned = ["--no-log-realtime", "--log-level-transcript", "warning", "--no-score-display"]
        model = ["--model", f"anthropic/{EXECUTOR}", "--max-tokens", "200"]
        words = [*model, *self._flags, *(tuned if self._is_tuned else [])]
        self.start([self._programs / "inspect", "eval", "task.py", *words], self.environment)

    def resume(self) -> None:
        words = [str(self._log()), *self._flags, *(["--no-log-realtime"] if self._is_tuned else [])]
        self.start([self._programs / "inspect", "eval-retry", *words], self.environment)

    def _log(self) -> Path:
        logs = sorted((self.folder / "logs").glob("*.eval"), key=lambda path: path.stat().st_mtime)
        if not logs:
            raise RuntimeError(f"Inspect AI left no log: {self.output()}")
        return logs[-1].resolve()

    def result(self) -> dict[str, Any]:
        """Asked of its own reader."""
        log = self._log()
        argv = [self._programs / "inspect", "log", "dump", "--header-only", str(log)]
        told = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=True, timeout=120)
        header = json.loads(told.stdout)
        scored = (header.get("results") or {}).get("completed_samples", 0)
        if header["status"] != "success" or not scored:
            raise RuntimeError(f"Inspect AI ended as {header['status']}: {self.output()}")
        return {"scored": scored, "exit_code": self._ended}
