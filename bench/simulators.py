"""A simulator in a process of its own: what is measured in front of it does not share its interpreter."""

import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from processes import cpu_seconds


class Simulator:
    """One simulator, from start to stop."""

    def __init__(self, script: dict[str, Any], latency: str = "0") -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="assay-simulator-")
        path = Path(self._folder.name) / "script.json"
        path.write_text(json.dumps(script))
        argv = [sys.executable, "-m", "simulator", "--port", "0", "--latency", latency, "--script", str(path)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            self.stop()
            raise RuntimeError("the simulator did not start; its error stands above")
        # It names its limits in every answer: none worth speaking of, or clients would wait for them.
        self._ask("/control/settings", {"tokens_per_minute": 10**14})

    def __enter__(self) -> "Simulator":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stats(self) -> dict[str, Any]:
        """Its counters."""
        return self._ask("/stats")

    def calls(self) -> int:
        """How many messages were asked for so far."""
        return int(self.stats()["by_path"].get("/v1/messages", 0))

    def reset(self) -> None:
        """Count from 0 again."""
        self._ask("/control/reset", {})

    def cpu_seconds(self) -> float:
        """What it used itself."""
        return cpu_seconds([self.process.pid])

    def stop(self) -> None:
        """End it by its pid."""
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._folder.cleanup()

    def _ask(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method="POST" if data else "GET")
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: dict[str, Any] = json.load(answer)
        return found
