"""A served API: real uvicorn on a free port of loopback, in a thread, over parts that a test chooses."""

import io
import json
import threading
import time
import zipfile
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2

from api.serving import listen, make_server
from schemas.states import Outcome, Stage
from service.admission import choose
from service.bootstrap import Parts
from service.settings import Settings
from service.storage.schema import migrate
from service.tokens import Scope

EVERY_SCOPE = [Scope.SUBMIT, Scope.READ, Scope.ADMIN]
RUNNER = {"runner": "command", "command": "true", "runs_per_eval": 1}


def make_parts(folder: Path, database_url: str | None = None, **settings: Any) -> Parts:
    """Parts over an own database."""
    quiet = {"sandbox": "none", "log_level": "error", "commands": ["true"], **settings}
    parts = Parts(Settings(data=folder / "data", database_url=database_url, **quiet))
    migrate(parts.store.engine)
    return parts


class Served:
    """A running API; stop and start it as often as you like."""

    def __init__(self, parts: Parts, port: int = 0) -> None:
        self.parts = parts
        self.socket = listen("127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"
        self._server = make_server(parts)
        self._thread = threading.Thread(target=self._server.run, args=([self.socket],), daemon=True)

    def __enter__(self) -> "Served":
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive(), "the API did not start"
            time.sleep(0.01)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        self.socket.close()

    def token(self, team: str, scopes: list[Scope] | None = None, days: float | None = None) -> str:
        """A new token of a team."""
        return self.parts.tokens.create(team, "test", scopes or EVERY_SCOPE, days)[0]

    def client(self, token: str | None = None) -> httpx2.Client:
        """A plain HTTP client of the API."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=30)


def suite(cases: int = 1, name: str = "tiny") -> dict[str, Any]:
    """A suite whose every case asks for one file."""
    expectation = {"id": "S1", "type": "file_exists", "description": "an answer", "pattern": "a.txt", "critical": True}
    evals = [{"id": n, "prompt": f"case {n}", "structural_expectations": [expectation]} for n in range(1, cases + 1)]
    return {"skill_name": name, "evals": evals}


def archive(cases: int = 1, name: str = "tiny", **files: str) -> bytes:
    """A zip of a skill with its suite."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        own = {
            "SKILL.md": f"---\nname: {name}\ndescription: for tests\n---\nWrite a.txt.\n",
            "evals/evals.json": json.dumps(suite(cases, name)),
        }
        for path, text in {**own, **files}.items():
            out.writestr(f"{name}/{path}", text)
    return buffer.getvalue()


def submit(
    client: httpx2.Client, data: bytes | None = None, key: str | None = None, **settings: Any
) -> httpx2.Response:
    """Submit an archive."""
    headers = {"Idempotency-Key": key} if key else {}
    options = {"settings": {**RUNNER, **settings}}
    files = {"skill": ("tiny.zip", data if data is not None else archive())}
    return client.post("/v1/batches", files=files, data={"options": json.dumps(options)}, headers=headers)


def work(
    parts: Parts, batch_id: str, team: str, files: dict[str, bytes] | None = None, settle: int | None = None
) -> None:
    """Do what workers would: take runs (all, or so many) through their stages, by the store alone."""
    parts.store.dispatch.admit(1_000, choose)
    kept = {name: parts.artifacts.put(data) for name, data in (files or {"outputs/a.txt": b"hello"}).items()}
    unsettled = [run for run in parts.desk.runs(batch_id, team) if run.stage is not Stage.SETTLED]
    for run in unsettled[:settle]:
        for stage, to in ((Stage.EXECUTE, Stage.CHECK), (Stage.CHECK, Stage.JUDGE)):
            claim = parts.store.runs.claim(run.id, stage, "tester", 30)
            assert claim is not None
            parts.store.runs.advance(claim, to, kept if stage is Stage.EXECUTE else {}, {})
        claim = parts.store.runs.claim(run.id, Stage.JUDGE, "tester", 30)
        assert claim is not None
        parts.store.runs.settle(claim, Outcome.SCORED, None, {}, {})


def finish(parts: Parts, batch_id: str) -> None:
    """End a batch all of whose runs are settled."""
    assert parts.store.batches.finish_if_settled(batch_id)
    parts.stages.aggregate(batch_id, parts.aggregate)


def one_of_everything(parts: Parts, client: httpx2.Client, team: str) -> dict[str, str]:
    """The ids of a finished batch, its run, a comparison and all else that a path can name, owned by the team."""
    batch_id = submit(client).json()["batch_id"]
    work(parts, batch_id, team, {"outputs/a.txt": b"hello", "transcript.md": b"# Done"})
    finish(parts, batch_id)
    run_id = client.get(f"/v1/batches/{batch_id}/runs").json()["runs"][0]["id"]
    client.put(f"/v1/runs/{run_id}/reviews", json={"author": "kim", "feedback": "good"})
    webhook = client.post("/v1/webhooks", json={"url": "https://ci.example/x"}).json()
    named = {"comparison_id": compared(parts, client, batch_id), "file": "summary.json"}
    named |= {"batch_id": batch_id, "run_id": str(run_id), "name": "outputs/a.txt", "skill": "tiny"}
    return {**named, "webhook_id": webhook["id"]}


def compared(parts: Parts, client: httpx2.Client, batch_id: str) -> str:
    """A finished comparison of the batch's two arms; no run is paired, so no model is asked."""
    asked = {"champion": f"{batch_id}:without_skill", "challenger": batch_id, "judge_model": "some-judge"}
    comparison_id: str = client.post("/v1/comparisons", json=asked).json()["id"]
    claim = parts.store.comparisons.claim(comparison_id, "tester", 30)
    assert claim is not None
    files = {"summary.json": parts.artifacts.put(b"{}")}
    assert parts.store.comparisons.finish(claim, files, {}, None)
    return comparison_id
