"""A Python client of the API, for the command line and for notebooks.

    from cli.client import Client

    assay = Client("http://127.0.0.1:8080", token="assay_…")
    batch = assay.submit("my-skill", settings={"runs_per_eval": 3})["batch_id"]
    for progress in assay.watch(batch):
        print(progress["settled"], "of", progress["total"])
    print(assay.benchmark(batch)["statistics"]["verdict_sentence"])

Everything it gives is what the API's description (/v1/openapi.json) says, as plain dicts. What goes wrong is
an error of `service.errors`, in one sentence.
"""

import gzip
import io
import json
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Unpack
from urllib.parse import quote

import httpx2

from cli.desk import Desk, Json, SubmitOptions, suite_bytes
from service.aggregation.gates import Gates
from service.errors import AssayError, BadInput, Conflict, NotFound, Unavailable

# What nobody wants to send: neither the agent nor the suite needs it.
_LEFT_OUT = frozenset({".git", "__pycache__", "node_modules", ".venv", ".assay", ".DS_Store"})
_PATIENCE_SECONDS = 60.0


class Busy(Unavailable):
    """The server asks us to come again later."""

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)


class Client(Desk):
    """Talks to one API with one token."""

    def __init__(self, server: str, token: str | None = None, timeout_seconds: float = 60.0) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.server = server.rstrip("/")
        self._http = httpx2.Client(base_url=self.server, headers=headers, timeout=timeout_seconds)

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def submit(self, skill: str | Path, **options: Unpack[SubmitOptions]) -> Json:
        """Submit a batch for the skill in a folder or archive; the same key and content give the same batch."""
        said: Json = {"settings": dict(options.get("settings") or {}), "priority": options.get("priority", 0)}
        said |= _given(against=options.get("against"), max_open=options.get("max_open"))
        name, archive = packed(Path(skill))
        files: dict[str, Any] = {"skill": (name, archive, "application/octet-stream")}
        if (evals := suite_bytes(options.get("evals"))) is not None:
            files["evals"] = ("evals.json", evals, "application/json")
        headers = _given(**{"Idempotency-Key": options.get("idempotency_key")})
        sent = {"data": {"options": json.dumps(said)}, "files": files, "headers": headers}
        asked = {"dry_run": str(options.get("dry_run", False)).lower()}
        return self._json("POST", "/v1/batches", params=asked, **sent)

    def submit_known(self, skill: str, version: str | None = None, suite: Json | None = None, **options: Any) -> Json:
        """Submit a batch for a skill that was uploaded before."""
        body = {"skill": {"name": skill, "version": version}, "suite": suite, **options}
        return self._json("POST", "/v1/batches", json=body)

    def upload(self, skill: str | Path) -> Json:
        """Keep a skill as a version, without a batch."""
        name, archive = packed(Path(skill))
        return self._json("POST", "/v1/skills", files={"skill": (name, archive, "application/octet-stream")})

    def batches(self, **asked: Any) -> Iterator[Json]:
        """All batches, newest first; `asked` may be state and skill."""
        before: str | None = None
        while True:
            page = self._json("GET", "/v1/batches", params=_given(before=before, **asked))
            yield from page["batches"]
            before = page["next_before"]
            if before is None:
                return

    def batch(self, batch_id: str) -> Json:
        """One batch: state, counts, cost, time left."""
        return self._json("GET", f"/v1/batches/{batch_id}")

    def watch(self, batch_id: str) -> Iterator[Json]:
        """Progress after progress until the batch ends; a lost connection is taken up where it broke."""
        for kind, data in self.events(batch_id):
            if kind == "progress":
                yield data

    def events(self, batch_id: str, after: int | None = None) -> Iterator[tuple[str, Json]]:
        """(kind, data) of every event until the batch ends: stage, progress, end."""
        seen = after
        alone_since: float | None = None
        while True:
            try:
                for event_id, kind, data in self._stream(batch_id, seen):
                    seen, alone_since = event_id if event_id is not None else seen, None
                    yield kind, data
                    if kind == "end":
                        return
            except Busy as error:  # it lives and says when, so that patience has no end
                alone_since = None
                time.sleep(error.retry_after_seconds)
            except (httpx2.TransportError, Unavailable) as error:
                alone_since = alone_since or time.monotonic()
                if time.monotonic() - alone_since > _PATIENCE_SECONDS:
                    raise Unavailable(f"{self.server} does not answer: {error}") from error
                time.sleep(1.0)

    def runs(self, batch_id: str, **asked: Any) -> Iterator[Json]:
        """All runs of a batch; `asked` may be stage, outcome, configuration and case."""
        after: int | None = None
        while True:
            page = self._json("GET", f"/v1/batches/{batch_id}/runs", params=_given(after=after, **asked))
            yield from page["runs"]
            after = page["next_after"]
            if after is None:
                return

    def run(self, run_id: int) -> Json:
        """One run with its whole story."""
        return self._json("GET", f"/v1/runs/{run_id}")

    def artifact(self, run_id: int, name: str) -> bytes:
        """One file of a run."""
        return self._answer("GET", f"/v1/runs/{run_id}/artifacts/{quote(name, safe='/')}").content

    def cancel(self, batch_id: str) -> Json:
        """Stop everything that has not ended."""
        return self._json("POST", f"/v1/batches/{batch_id}/cancel")

    def pause(self, batch_id: str) -> Json:
        """Let no waiting run start."""
        return self._json("POST", f"/v1/batches/{batch_id}/pause")

    def resume(self, batch_id: str) -> Json:
        """Let a paused batch go on."""
        return self._json("POST", f"/v1/batches/{batch_id}/resume")

    def retry(
        self,
        batch_id: str,
        outcomes: Sequence[str] | None = None,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
    ) -> int:
        """Continue runs that ended without a score; gives their number."""
        said = {"outcomes": list(outcomes or ()), "max_cost_usd": max_cost_usd, "max_tokens": max_tokens}
        body = {name: value for name, value in said.items() if value}
        return int(self._json("POST", f"/v1/batches/{batch_id}/retry", json=body)["runs"])

    def regrade(self, batch_id: str, evals: Path | None = None, settings: Mapping[str, Any] | None = None) -> Json:
        """Grade the artifacts of a batch that has ended anew, as a new batch; `save(…, "regrade", …)` compares them."""
        suite = suite_bytes(evals)
        files = {"evals": ("evals.json", suite, "application/json")} if suite is not None else {}
        options = ("options", (None, json.dumps({"settings": dict(settings or {})})))
        return self._json("POST", f"/v1/batches/{batch_id}/regrade", files=[options, *files.items()])

    def benchmark(self, batch_id: str) -> Json:
        """benchmark.json; of a batch that still runs an interim one."""
        return self._json("GET", f"/v1/batches/{batch_id}/benchmark")

    def feedback(self, batch_id: str) -> Json:
        """What the judges say about the suite."""
        return self._json("GET", f"/v1/batches/{batch_id}/feedback")

    def review(self, run_id: int, author: str, feedback: str) -> Json:
        """Say something about a run."""
        return self._json("PUT", f"/v1/runs/{run_id}/reviews", json={"author": author, "feedback": feedback})

    def gates(self, batch_id: str, gates: Gates) -> Json:
        """What gates say of a batch."""
        return self._json("GET", f"/v1/batches/{batch_id}/gates", params=_asked(gates))

    def save(self, batch_id: str, what: str, out: IO[bytes], gates: Gates | None = None) -> None:
        """Write one of FILES of a batch into an open file, a piece at a time."""
        asked = _asked(gates) if gates else {}
        try:
            with self._http.stream("GET", f"/v1/batches/{batch_id}/{what}", params=asked) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    raise error_of(answer)
                for piece in answer.iter_bytes():
                    out.write(piece)
        except httpx2.TransportError as error:
            raise Unavailable(f"{self.server} does not answer: {error}") from error

    def compare(self, wanted: Mapping[str, Any]) -> Json:
        """Compare two sides of a suite blind; `wanted` is CompareBody of the API's description."""
        return self._json("POST", "/v1/comparisons", json=_given(**wanted))

    def comparison(self, comparison_id: str) -> Json:
        """One comparison: state, sides, result, files."""
        return self._json("GET", f"/v1/comparisons/{comparison_id}")

    def carry_out(self, comparison_id: str) -> None:
        """The server's judges do it; here there is only waiting."""

    def comparison_file(self, comparison_id: str, name: str) -> bytes:
        """One file of a finished comparison."""
        return self._answer("GET", f"/v1/comparisons/{comparison_id}/files/{quote(name, safe='')}").content

    def history(self, skill: str, dialect: str) -> Json:
        """history.json of a skill."""
        return self._json("GET", f"/v1/skills/{quote(skill, safe='')}/history", params={"dialect": dialect})

    def _stream(self, batch_id: str, seen: int | None) -> Iterator[tuple[int | None, str, Json]]:
        headers = {"Last-Event-ID": str(seen)} if seen is not None else {}
        path = f"/v1/batches/{batch_id}/events"
        with self._http.stream("GET", path, headers=headers, timeout=httpx2.Timeout(30.0)) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise error_of(answer)
            yield from parsed_events(answer.iter_lines())

    def _json(self, method: str, path: str, **sent: Any) -> Json:
        found = self._answer(method, path, **sent).json()
        assert isinstance(found, dict)
        return found

    def _answer(self, method: str, path: str, **sent: Any) -> httpx2.Response:
        try:
            answer = self._http.request(method, path, **sent)
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise Unavailable(f"{self.server} does not answer: {error}; is it the address of `assay serve`?") from error
        if answer.status_code >= 400:
            raise error_of(answer)
        return answer


def _given(**asked: Any) -> Json:
    return {name: value for name, value in asked.items() if value is not None}


def _asked(gates: Gates) -> Json:
    """Gates as the words of a request."""
    return {name: value for name, value in asdict(gates).items() if value not in (None, False)}


def error_of(answer: httpx2.Response) -> AssayError:
    """The problem document of an answer as an error of ours."""
    try:
        problem = answer.json()
        detail = str(problem["detail"])
        others = [f"{one['path']}: {one['message']}" for one in problem.get("errors") or []]
    except (ValueError, KeyError, TypeError):
        return Unavailable(f"the server answered {answer.status_code} and no problem document; is it Assay's API?")
    if answer.status_code == 429:
        return Busy(detail, _retry_after(answer))
    known: dict[int, type[AssayError]] = {404: NotFound, 409: Conflict}
    kind = known.get(answer.status_code, Unavailable if answer.status_code >= 500 else BadInput)
    more = f" (also: {'; '.join(others[1:4])})" if len(others) > 1 else ""
    return kind(detail + more)


def _retry_after(answer: httpx2.Response) -> float:
    said = answer.headers.get("retry-after", "")
    return float(min(int(said), 600)) if said.isascii() and said.isdigit() else 1.0


def parsed_events(lines: Iterator[str]) -> Iterator[tuple[int | None, str, Json]]:
    """(id, kind, data) of server-sent events."""
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields:
            event_id = int(fields["id"]) if "id" in fields else None
            yield event_id, fields.get("event", "message"), json.loads(fields["data"])
        fields = {}


def packed(skill: Path) -> tuple[str, bytes]:
    """Name and bytes of an archive: the one given, or one made of a folder, the same for the same files."""
    if skill.is_file():
        return skill.name, _read(skill)
    if not (skill / "SKILL.md").is_file():
        raise BadInput(f"{skill} is no skill: give a folder that holds SKILL.md, or an archive of one")
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", dereference=True) as archive,
    ):
        for path in sorted(_wanted(skill)):
            archive.add(path, path.relative_to(skill).as_posix(), recursive=False, filter=_plain)
    return f"{skill.resolve().name}.tar.gz", buffer.getvalue()


def _wanted(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for path in folder.iterdir():
        if path.name in _LEFT_OUT:
            continue
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise BadInput(f"{path} is a link that leaves the skill; copy the file instead")
        if path.is_dir():
            yield from _wanted(path)
        elif path.is_file():
            yield path


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Who packed it, and when, is nobody's business and would change the digest."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = 0
    return entry


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
