"""The dialects: read any file into a canonical document, write it back."""

from schemas.dialects.detection import Detection, detect
from schemas.dialects.reading import Document, Reading, read, read_suite
from schemas.dialects.writing import NotWritten, write
from schemas.kinds import Dialect, Kind

__all__ = [
    "Detection",
    "Dialect",
    "Document",
    "Kind",
    "NotWritten",
    "Reading",
    "detect",
    "read",
    "read_suite",
    "write",
]
