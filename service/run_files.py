"""The artifacts of one run, read as what they are."""

from dataclasses import dataclass
from typing import TypeVar

from schemas.dialects import read
from service.storage.artifacts import ArtifactStore
from service.storage.rows import Blob

T = TypeVar("T")


@dataclass(frozen=True)
class RunFiles:
    """Artifacts by name; what is not there is None."""

    blobs: dict[str, Blob]
    artifacts: ArtifactStore

    def text(self, name: str) -> str | None:
        """A file as text."""
        blob = self.blobs.get(name)
        return self.artifacts.get(blob.sha256).decode("utf-8", "replace") if blob else None

    def document(self, name: str, kind: type[T]) -> T | None:
        """A file as the document it should be; None if it is another."""
        blob = self.blobs.get(name)
        document = read(self.artifacts.get(blob.sha256)).document if blob else None
        return document if isinstance(document, kind) else None

    def outputs(self) -> dict[str, Blob]:
        """What the agent left, by its path in the workspace."""
        return {name.removeprefix("outputs/"): blob for name, blob in self.blobs.items() if name.startswith("outputs/")}
