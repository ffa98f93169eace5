"""The control loops: one looks for what stands still, one ships the half-price lane; whatever breaks meanwhile.

Two threads, because a large shipment takes minutes, and no run is to wait so long for its recovery.
"""

import threading
from collections.abc import Callable

from sqlalchemy.exc import DBAPIError

from service import log
from service.bootstrap import Parts
from service.errors import Unavailable


class Control:
    """Does its rounds at once and then every few seconds, in threads of its own; two of them at once do no harm."""

    def __init__(self, parts: Callable[[], Parts]) -> None:
        self._parts = parts
        self._stop = threading.Event()
        rounds: dict[str, Callable[[], object]] = {
            "control": lambda: parts().recovery.sweep(),
            "lane": lambda: parts().ship(),
        }
        self._threads = [
            threading.Thread(target=self._repeat, args=(round_,), name=name, daemon=True)
            for name, round_ in rounds.items()
        ]

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End after the rounds that run."""
        self._stop.set()
        for thread in self._threads:
            thread.join(30)

    def _repeat(self, round_: Callable[[], object]) -> None:
        while True:
            self._try(round_)
            if self._stop.wait(self._parts().settings.sweep_seconds):
                return

    @staticmethod
    def _try(round_: Callable[[], object]) -> None:
        try:
            round_()
        except (DBAPIError, Unavailable) as error:
            log.warning("sweep failed, trying again", reason=str(error).splitlines()[0])
        except Exception:  # noqa: BLE001  the loop must outlive anything one sweep meets
            log.error("sweep broke, trying again", with_traceback=True)
