"""What kind of thing a file is for the judge, by its bytes: names lie."""

from enum import StrEnum

MAX_IMAGE_BYTES = 3_700_000  # 5 MB is the API's limit after base64
MAX_PDF_BYTES = 20 * 2**20

SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x7fELF", "application/x-elf"),
)


class Shown(StrEnum):
    """How a file reaches the judge."""

    TEXT = "text"
    IMAGE = "image"
    DOCUMENT = "document"
    NAMED = "named"  # only its name, size and type


def media_type(data: bytes) -> str:
    """The type by signature; text/plain if it reads as text, else application/octet-stream."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    for signature, kind in SIGNATURES:
        if data.startswith(signature):
            return kind
    return "text/plain" if is_text(data) else "application/octet-stream"


def is_text(data: bytes) -> bool:
    """UTF-8 without NUL."""
    if b"\0" in data:
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def shown_as(data: bytes) -> Shown:
    """How these bytes can be shown to a model."""
    kind = media_type(data)
    if kind == "text/plain":
        return Shown.TEXT
    if kind == "application/pdf":
        return Shown.DOCUMENT if len(data) <= MAX_PDF_BYTES else Shown.NAMED
    if kind.startswith("image/"):
        return Shown.IMAGE if len(data) <= MAX_IMAGE_BYTES else Shown.NAMED
    return Shown.NAMED
