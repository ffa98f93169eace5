"""How many tokens an image or a PDF may take: rather too many, because budgets reserve by it and correct it later."""

import base64
import re
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

from service.judging.evidence import Block

IMAGE_TOKENS = 4_800  # the largest image that models take without making it smaller
PAGE_TOKENS = 4_500  # a full page of text, and the picture of it
HIDDEN_PAGE_BYTES = 10_000  # of a PDF that does not show its pages, say, because it is encrypted
MOST_PAGES = 600  # what the API takes
# Bounded, because whoever made the file may want us to search for ever.
_PAGE = re.compile(rb"/Type\s{0,20}/Page(?![A-Za-z])")
_PACKED = re.compile(rb"/ObjStm[^\x00]{0,400}?stream\r?\n")
_MOST_STREAMS = 2_000
_UNPACKED_BYTES = 16 * 2**20
_STREAM_BYTES = 2**20


def native_tokens(block: Block) -> int:
    """About how many tokens a block that is no text takes."""
    if block["type"] != "document":
        return IMAGE_TOKENS
    source = cast(dict[str, Any], block["source"])
    return PAGE_TOKENS * page_count(base64.b64decode(source["data"]))


def page_count(pdf: bytes) -> int:
    """The pages of a PDF; by its size where they cannot be seen."""
    shown = len(_PAGE.findall(pdf)) + sum(len(_PAGE.findall(objects)) for objects in _unpacked(pdf))
    return min(MOST_PAGES, shown or 1 + len(pdf) // HIDDEN_PAGE_BYTES)


def _unpacked(pdf: bytes) -> Iterator[bytes]:
    """What compressed object streams hold: newer PDFs keep their pages there."""
    left = _UNPACKED_BYTES
    for found in islice(_PACKED.finditer(pdf), _MOST_STREAMS):
        try:
            objects = zlib.decompressobj().decompress(pdf[found.end() : found.end() + _STREAM_BYTES], max(1, left))
        except zlib.error:
            continue
        left -= len(objects)
        yield objects
        if left <= 0:
            return
