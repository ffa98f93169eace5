"""promptfoo as a contender: one prompt per case, graded by llm-rubric; its own database, no disk cache."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from contender import CommandLine
from work import EXECUTOR, JUDGE, STATEMENT, Work, plain_script

VERDICT = json.dumps({"pass": True, "score": 1, "reason": "It says so."})
# Nothing goes anywhere but to the simulator; with its logs on it ends with an error above some thousand cases.
QUIET = {
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "PROMPTFOO_DISABLE_REMOTE_GENERATION": "1",
    "PROMPTFOO_DISABLE_DEBUG_LOG": "1",
    "PROMPTFOO_DISABLE_ERROR_LOG": "1",
    "PROMPTFOO_DISABLE_SHARING": "1",
    "NODE_NO_WARNINGS": "1",
}
FLAGS = ("--no-cache", "--no-table", "--no-progress-bar", "--no-share")


class Promptfoo(CommandLine):
    """`promptfoo eval`, and `promptfoo eval --resume` after a kill."""

    name = "promptfoo"
    script = plain_script(VERDICT)
    notes = (
        "promptfoo eval -j CONCURRENCY --no-cache --no-table --no-progress-bar --no-share; anthropic:messages for both "
        "calls; llm-rubric with its own prompt; telemetry, updates and log files off; after the kill: eval --resume"
    )

    def __init__(self, program: Path) -> None:
        super().__init__()
        self._program = program
        self._concurrency = 1

    def prepare(self, work: Work, folder: Path, url: str) -> None:
        """Its configuration and its tests."""
        self.folder, self._concurrency = folder, work.concurrency
        self.environment = {
            **QUIET,
            "ANTHROPIC_API_KEY": "any",
            "ANTHROPIC_BASE_URL": url,
            "PROMPTFOO_CONFIG_DIR": str(folder / "state"),
        }
        (folder / "promptfooconfig.json").write_text(json.dumps(configuration(work, url)))

    def launch(self) -> None:
        self._eval("-c", "promptfooconfig.json")

    def resume(self) -> None:
        self._eval("--resume")

    def _eval(self, *words: str) -> None:
        self.start([self._program, "eval", *words, "-j", str(self._concurrency), *FLAGS], self.environment)

    def result(self) -> dict[str, Any]:
        """Counted in its database, whatever its exit code says."""
        with sqlite3.connect(self.folder / "state" / "promptfoo.db") as connection:
            query = "SELECT success, error IS NOT NULL, count(*) FROM eval_results GROUP BY 1, 2"
            rows = connection.execute(query).fetchall()
        passed = sum(count for success, _, count in rows if success)
        if not passed:
            raise RuntimeError(f"promptfoo scored nothing: {self.output()}")
        return {"scored": passed, "exit_code": self._ended, "rows": sum(count for *_, count in rows)}


def configuration(work: Work, url: str) -> dict[str, Any]:
    """What promptfoo is asked to do."""

    def provider(model: str) -> dict[str, Any]:
        return {
            "id": f"anthropic:messages:{model}",
            "label": model,
            "config": {"apiBaseUrl": url, "apiKey": "any", "max_tokens": 200},
        }

    rubric = [{"type": "llm-rubric", "value": STATEMENT}]
    return {
        "description": "harbours",
        "prompts": ["{{question}}"],
        "providers": [provider(EXECUTOR)],
        "defaultTest": {"options": {"provider": provider(JUDGE)}},
        "tests": [{"vars": {"question": prompt}, "assert": rubric} for prompt in work.prompts()],
    }
