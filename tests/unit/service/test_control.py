"""The control loops: a shipment that takes minutes keeps no run from its recovery."""

import threading
from pathlib import Path

from service.bootstrap import Parts
from service.settings import Settings
from service.storage.schema import migrate
from workers.control import Control


class Shipping(Parts):
    """Its shipment goes on until the sweeps have been counted."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.is_sweeping = threading.Event()
        self.swept_meanwhile = False
        self.shipped = threading.Event()

    def ship(self) -> None:
        self.is_sweeping.clear()
        self.swept_meanwhile = self.is_sweeping.wait(20)
        self.shipped.set()


def test_recovery_goes_on_while_a_shipment_is_sent(tmp_path: Path) -> None:
    parts = Shipping(Settings(data=tmp_path, database_url=None, broker_url=None, sweep_seconds=0.01))
    migrate(parts.store.engine)
    sweep = parts.recovery.sweep

    def counted() -> None:
        sweep()
        parts.is_sweeping.set()

    parts.recovery.sweep = counted  # type: ignore[method-assign]
    control = Control(lambda: parts)
    control.start()

    assert parts.shipped.wait(30)
    assert parts.swept_meanwhile

    control.stop()
    parts.close()
