"""What lies in the folder of one run, read as something a stranger may have made: no links, nothing without end."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from service.errors import BadInput
from service.sandbox.reader import CannotRead, Caps, Reader, shown

MOST_NAME_CHARS = 1_000
# What skill-creator's agents leave among their outputs although it is about the run.
_ABOUT_THE_RUN = ("transcript.md", "user_notes.md", "metrics.json")
_NOT_KEPT = frozenset({"run.json", "eval_metadata.json"})


@dataclass(frozen=True, slots=True)
class RunCaps:
    """How much one run may bring."""

    file_bytes: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Collected:
    """The artifacts of one run by name, and what was left out."""

    files: dict[str, bytes] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)  # path -> what it is
    is_gradable: bool = False  # there are outputs, or a transcript


def collect(folder: Path, caps: RunCaps) -> Collected:
    """Everything of one run; raises BadInput when it is more than `caps` allows."""
    reader = Reader(folder, Caps(file_bytes=caps.file_bytes))
    try:
        listing = reader.listing
        names = [name for name in listing.files if _is_of_the_run(name)]
        files = _read(reader, [name for name in names if name not in _repeats(reader, names)], caps)
    except CannotRead as error:
        raise BadInput(f"{folder} cannot be taken in: {error}") from error
    _lift(files)
    left_out = {shown(name): kind for name, kind in listing.skipped.items() if _is_of_the_run(name)}
    return Collected(files, left_out, "outputs" in listing.folders or "transcript.md" in files)


def _is_of_the_run(name: str) -> bool:
    """Files beside outputs/ and everything in it; other folders are copies of the skill or the inputs."""
    return (name.startswith("outputs/") or "/" not in name) and name not in _NOT_KEPT


def _read(reader: Reader, names: list[str], caps: RunCaps) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    total = 0
    for name in names:
        data = reader.read_bytes(name)
        total += len(data)
        if len(found) >= caps.files or total > caps.bytes:
            raise CannotRead(f"it has more than {caps.files} files or {caps.bytes >> 20} MB")
        if len(shown(name)) > MOST_NAME_CHARS:
            raise CannotRead(f"the name {shown(name)[:60]}... has more than {MOST_NAME_CHARS} characters")
        found[shown(name)] = data
    return found


def _lift(files: dict[str, bytes]) -> None:
    """Lay files about the run beside the outputs, where an execution of ours leaves them."""
    for name in _ABOUT_THE_RUN:
        if name not in files and f"outputs/{name}" in files:
            files[name] = files.pop(f"outputs/{name}")


def _repeats(reader: Reader, names: list[str]) -> set[str]:
    """Outputs that an export of ours laid a second time at the top of outputs/; its run.json names them."""
    try:
        said = json.loads(reader.read_bytes("run.json")) if "run.json" in reader.listing.files else {}
    except (ValueError, RecursionError):
        return set()
    copies = said.get("copies") if isinstance(said, dict) else None
    nested = {"__".join(name.split("/")[1:]) for name in names if name.count("/") > 1}
    return {f"outputs/{name}" for name in copies or () if name in nested} if isinstance(copies, list) else set()
