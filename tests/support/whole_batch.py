"""A whole batch in this process, whose every model is the simulator."""

import functools
from pathlib import Path
from typing import Any

from cli.progress import watch
from service.bootstrap import Parts
from service.models import ClientSettings, ModelClient
from service.models.attempts import Patience
from service.settings import embedded_settings
from service.storage.schema import migrate
from service.submitting import Submission
from workers.embedded import Embedded


class WithModels(Parts):
    """The parts of a process, with the model where the test says it is, and little patience with it."""

    def __init__(self, data: Path, url: str, tries: int = 2, **settings: Any) -> None:
        super().__init__(embedded_settings(data=data, **settings))
        patience = Patience(max_retries=tries - 1, retry_after_cap_seconds=0.5, first_pause_seconds=0.02)
        self.client = ModelClient(ClientSettings("sk-real", url, 64, patience))
        migrate(self.store.engine)

    @property
    def models(self) -> ModelClient:
        """Our own client, for executor and judge."""
        return self.client

    def close(self) -> None:
        """Let go of everything."""
        self.client.close()
        super().close()

    def run_batch(self, skill: Path, **settings: Any) -> str:
        """Submit and work until the batch has ended; gives its id."""
        batch_id = self.desk.submit(Submission(skill, settings=settings)).batch_id
        with Embedded(self):
            watch(functools.partial(self.desk.status, batch_id, "default"), Nobody())  # type: ignore[arg-type]
        return batch_id


class Nobody:
    """Watches without a screen."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_kwargs: None
