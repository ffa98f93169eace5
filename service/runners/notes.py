"""The notes an agent may leave for people: user_notes.md."""

from pathlib import Path

from service.sandbox.reader import CannotRead, Caps, Reader

NOTES = "user_notes.md"
_MAX_BYTES = 200_000


def take_notes(workspace: Path, inputs: tuple[str, ...] = ()) -> str | None:
    """The notes, taken out of the workspace: they are about the work, not part of it."""
    if NOTES in inputs or not (workspace / NOTES).exists():
        return None
    try:
        text = Reader(workspace, Caps(file_bytes=_MAX_BYTES)).read_text(NOTES)
    except CannotRead:
        return None  # a link, a folder or a flood: stays what it is, an output
    (workspace / NOTES).unlink()
    return text
