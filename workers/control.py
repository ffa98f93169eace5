"""The control loop: looks for what stands still, again and again, whatever breaks meanwhile."""

import threading
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from service import log
from service.bootstrap import Parts
from service.errors import Unavailable


class Control:
    """Sweeps at once and then every few seconds, in a thread of its own; two of them at once do no harm."""

    def __init__(self, parts: Callable[[], Parts]) -> None:
        self._parts = parts
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the sweep that runs."""
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while True:
            self._sweep()
            if self._stop.wait(self._parts().settings.sweep_seconds):
                return

    def _sweep(self) -> None:
        try:
            self._parts().recovery.sweep()
            self._parts().ship()
        except (DBAPIError, Unavailable) as error:
            log.warning("sweep failed, trying again", reason=str(error).splitlines()[0])
        except Exception:  # noqa: BLE001  the loop must outlive anything one sweep meets
            log.error("sweep broke, trying again", with_traceback=True)
