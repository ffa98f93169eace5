"""What commands ask, whoever answers: a server (`cli.client`) or the data folder of this machine (`cli.local`)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, Self, TypedDict, Unpack

from service.aggregation.gates import Gates
from service.errors import BadInput

Json = dict[str, Any]
# What can be fetched of a batch, by the last word of its address in the API.
FILES = ("benchmark", "benchmark.md", "feedback", "report", "export.zip", "junit", "reviews", "regrade")


class SubmitOptions(TypedDict, total=False):
    """What may be said with a submit besides the skill."""

    evals: Path | None  # the suite; evals/evals.json of the skill if not given
    settings: Mapping[str, Any]
    against: str | None  # an earlier version instead of no skill
    idempotency_key: str | None  # the same key and content give the same batch
    priority: int
    max_open: int | None  # most runs of the batch open at once
    dry_run: bool  # only say what it would find and take


class Desk(Protocol):
    """Answers are plain dicts as the API's description has them; use it as a context manager, or call close()."""

    is_only_a_queue: bool = False  # whether nobody works on what is submitted before workers are started

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all connections."""

    def submit(self, skill: str | Path, **options: Unpack[SubmitOptions]) -> Json:
        """Submit a batch for the skill in a folder, or in an archive of one."""

    def batches(self, **asked: Any) -> Iterator[Json]:
        """All batches, newest first; `asked` may be state and skill."""

    def batch(self, batch_id: str) -> Json:
        """One batch: state, counts, cost, time left."""

    def watch(self, batch_id: str) -> Iterator[Json]:
        """Progress after progress until the batch ends."""

    def cancel(self, batch_id: str) -> Json:
        """Stop everything that has not ended."""

    def pause(self, batch_id: str) -> Json:
        """Let no waiting run start."""

    def resume(self, batch_id: str) -> Json:
        """Let a paused batch go on."""

    def retry(
        self,
        batch_id: str,
        outcomes: Sequence[str] | None = None,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
    ) -> int:
        """Continue runs that ended without a score; gives their number."""

    def regrade(self, batch_id: str, evals: Path | None = None, settings: Mapping[str, Any] | None = None) -> Json:
        """Grade the artifacts of a batch that has ended anew, as a new batch."""

    def gates(self, batch_id: str, gates: Gates) -> Json:
        """What gates say of a batch: results, exit_code, is_interim, and a summary for a reviewer."""

    def save(self, batch_id: str, what: str, out: IO[bytes], gates: Gates | None = None) -> None:
        """Write one of FILES of a batch into an open file, a piece at a time; gates belong to junit."""

    def compare(self, wanted: Mapping[str, Any]) -> Json:
        """Submit a comparison; `wanted` is CompareBody of the API's description."""

    def comparison(self, comparison_id: str) -> Json:
        """One comparison: state, sides, result, files."""

    def carry_out(self, comparison_id: str) -> None:
        """Do what can be done here to bring a comparison to its end."""

    def comparison_file(self, comparison_id: str, name: str) -> bytes:
        """One file of a finished comparison."""

    def history(self, skill: str, dialect: str) -> Json:
        """history.json of a skill."""


def suite_bytes(evals: Path | None) -> bytes | None:
    """The suite that was named, as it is."""
    try:
        return evals.read_bytes() if evals else None
    except OSError as error:
        raise BadInput(f"cannot read {evals}: {error.strerror}") from error


@contextmanager
def written(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, aside first: what goes wrong leaves no half of it behind."""
    aside = path.with_name(f"{path.name}.part")
    try:
        with aside.open("wb") as out:
            yield out
        aside.replace(path)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        aside.unlink(missing_ok=True)
