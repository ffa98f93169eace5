"""A simulator in a background thread, for a test, a demo or `--model simulated`."""

import asyncio
import json
import threading
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from simulator.script import load_script
from simulator.server import Server
from simulator.settings import Settings, as_range


class Simulator:
    """A running simulator. Use it as a context manager, or call stop()."""

    def __init__(self, settings: Settings, host: str = "127.0.0.1", port: int = 0) -> None:
        self._server = Server(settings)
        self._loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, args=(host, port), name="simulator", daemon=True)
        self._thread.start()
        self._started.wait()
        if self._failure:
            raise self._failure

    @property
    def url(self) -> str:
        """Where it listens; the base_url of a client."""
        return self._server.url

    def stats(self) -> dict[str, Any]:
        """What it has counted."""
        return dict(self._call("GET", "/stats"))

    def requests(self) -> list[dict[str, Any]]:
        """The recent requests, oldest first: method, path, headers, body (text). Keys are left out."""
        return list(self._call("GET", "/control/requests"))

    def add_faults(self, *faults: dict[str, Any]) -> None:
        """Faults for requests to come; see docs/simulator.md for their form."""
        self._call("POST", "/control/faults", list(faults))

    def clear_faults(self) -> None:
        """No more faults but the script's own."""
        self._call("DELETE", "/control/faults")

    def configure(self, **settings: Any) -> None:
        """Change settings while it runs."""
        self._call("POST", "/control/settings", settings)

    def reset(self) -> None:
        """Set all counters to 0 and forget recent requests."""
        self._call("POST", "/control/reset")

    def stop(self) -> None:
        """Close all connections and end the thread; safe to call twice."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> "Simulator":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), method=method)  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - our own loopback address
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                raise ValueError(json.load(error)["error"]["message"]) from None

    def _run(self, host: str, port: int) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            listening = self._loop.run_until_complete(self._server.listen(host, port))
        except OSError as error:
            self._failure = error
            self._loop.close()
            return
        finally:
            self._started.set()
        self._loop.run_forever()
        self._loop.run_until_complete(self._shut(listening))
        self._loop.close()

    async def _shut(self, listening: asyncio.Server) -> None:
        listening.close()
        self._server.hang_up()
        mine = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not mine]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)


def start(script: Path | str | dict[str, Any] | None = None, *, port: int = 0, **settings: Any) -> Simulator:
    """Start a simulator on loopback; `script` is a file or its content, the rest are fields of Settings."""
    if isinstance(script, str | Path):
        script = load_script(Path(script))
    if "latency_seconds" in settings:
        settings["latency_seconds"] = as_range(settings["latency_seconds"])
    return Simulator(Settings(script=script or {}, **settings), port=port)
