"""One log format: a constant message and facts as fields, as text for people or JSON for machines."""

import contextvars
import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_bound: contextvars.ContextVar[dict[str, Any] | None] = contextvars.ContextVar("assay_log_facts", default=None)

logger = logging.getLogger("assay")


@contextmanager
def bound(**facts: Any) -> Iterator[None]:
    """Every line logged inside carries these facts."""
    token = _bound.set({**(_bound.get() or {}), **facts})
    try:
        yield
    finally:
        _bound.reset(token)


def info(message: str, **facts: Any) -> None:
    """It happened."""
    _emit(logging.INFO, message, facts)


def warning(message: str, **facts: Any) -> None:
    """We coped."""
    _emit(logging.WARNING, message, facts)


def error(message: str, *, with_traceback: bool = False, **facts: Any) -> None:
    """A person should look."""
    _emit(logging.ERROR, message, facts, with_traceback)


def _emit(level: int, message: str, facts: dict[str, Any], with_traceback: bool = False) -> None:
    if logger.isEnabledFor(level):
        facts = {**(_bound.get() or {}), **facts}
        logger.log(level, message, extra={"facts": facts}, exc_info=with_traceback)


class TextFormat(logging.Formatter):
    """time level message key=value ..."""

    def format(self, record: logging.LogRecord) -> str:
        facts = " ".join(f"{name}={value}" for name, value in getattr(record, "facts", {}).items())
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        line = f"{clock} {record.levelname.lower():7} {record.getMessage()} {facts}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormat(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": round(record.created, 3), "level": record.levelname.lower(), "message": record.getMessage()}
        line |= getattr(record, "facts", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def configure(level: str, form: str) -> None:
    """Send our log lines to stderr in the chosen format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormat() if form == "json" else TextFormat())
    logger.handlers = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
