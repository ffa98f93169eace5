"""What `assay doctor` looks at besides the sandbox: programs, database, broker, models, disk and clock."""

import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from service.errors import AssayError, BadInput
from service.settings import Settings, require_shared_limits

if TYPE_CHECKING:
    from sqlalchemy import Engine

_OLDEST_POSTGRES = 14
_OLDEST_REDIS = (6, 2)
_SHORT_BYTES, _FULL_BYTES = 5 * 2**30, 2**29
_CLOCK_SECONDS = 2.0


class Health(StrEnum):
    """How a thing stands."""

    OK = "ok"
    NOTE = "note"  # it works, and you should know this
    BROKEN = "broken"  # what the settings ask for does not work


@dataclass(frozen=True)
class Line:
    """What a probe found about one thing."""

    health: Health
    what: str
    detail: str


def probe_python(_settings: Settings) -> Iterator[Line]:
    """The interpreter."""
    yield Line(Health.OK, "python", f"{platform.python_version()} at {sys.executable}")


def probe_versions(_settings: Settings) -> Iterator[Line]:
    """Ours, and those that decide how things behave."""
    names = ("celery", "kombu", "anthropic", "sqlalchemy")
    yield Line(
        Health.OK, "versions", ", ".join([f"assay {version('skill-assay')}", *[f"{n} {version(n)}" for n in names]])
    )


def probe_database(settings: Settings) -> Iterator[Line]:
    """Whether it answers, and whether its tables are the ones this program needs."""
    from service.storage.engine import open_engine

    file = settings.data / "assay.db"
    if settings.database_url is None and not file.exists():
        yield Line(Health.OK, "database", f"SQLite, {file} is made on first use")
        return
    try:
        engine = open_engine(settings.database)
        try:
            yield _server_version(engine)
            yield _migrations(engine)
        finally:
            engine.dispose()
    except AssayError as error:
        yield Line(Health.BROKEN, "database", str(error))


def _server_version(engine: "Engine") -> Line:
    from service.storage.store import database_errors

    with database_errors(), engine.connect() as connection:
        found = connection.dialect.server_version_info or (0,)
    name = "PostgreSQL" if engine.dialect.name == "postgresql" else "SQLite"
    said = f"{name} {'.'.join(str(part) for part in found)}"
    if name == "PostgreSQL" and int(found[0]) < _OLDEST_POSTGRES:
        return Line(Health.BROKEN, "database", f"{said} is too old; {_OLDEST_POSTGRES} or newer is needed")
    return Line(Health.OK, "database", f"{said} answers")


def _migrations(engine: "Engine") -> Line:
    from service.storage.schema import newest, require_newest

    try:
        require_newest(engine)
    except AssayError as error:
        return Line(Health.BROKEN, "migrations", str(error))
    return Line(Health.OK, "migrations", f"at {newest()}, as this program needs")


def probe_broker(settings: Settings) -> Iterator[Line]:
    """Whether it answers, and for Redis whether it keeps what it was given."""
    from service.queue import Broker

    if settings.broker_url is None:
        yield Line(Health.OK, "broker", "inside the process; a fleet sets ASSAY_BROKER_URL")
        return
    try:
        Broker(settings).check()
    except AssayError as error:
        yield Line(Health.BROKEN, "broker", str(error))
        return
    if settings.broker_url.startswith("redis"):
        yield _redis(settings.broker_url)
    else:
        yield Line(Health.OK, "broker", f"{place(settings.broker_url)} answers")


def probe_limits(settings: Settings) -> Iterator[Line]:
    """Whether the whole fleet shares one limiter and its budgets."""
    if settings.limits is None:
        alone = "each process limits model calls and keeps budgets by itself"
        try:
            require_shared_limits(settings)
        except BadInput as scattered:
            yield Line(Health.BROKEN, "limits", str(scattered))
            return
        if settings.broker_url:
            yield Line(Health.NOTE, "limits", f"{alone}; set ASSAY_LIMITS_URL to a Redis for the whole fleet")
        else:
            yield Line(Health.OK, "limits", "inside the process")
    elif settings.limits == settings.broker_url:
        yield Line(Health.OK, "limits", "in the broker's Redis")
    else:
        yield _answering_limits(settings.limits)


def _answering_limits(url: str) -> Line:
    import redis

    try:
        with redis.Redis.from_url(url, socket_timeout=3, socket_connect_timeout=3) as client:
            client.ping()
    except redis.RedisError as error:
        return Line(Health.BROKEN, "limits", f"{place(url)} does not answer: {error}; check ASSAY_LIMITS_URL")
    return Line(Health.OK, "limits", f"Redis at {place(url)} answers")


def _redis(url: str) -> Line:
    import redis

    try:
        with redis.Redis.from_url(url, socket_timeout=3) as client:
            facts = client.info()
            policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
    except redis.RedisError as error:
        return Line(Health.NOTE, "broker", f"Redis answers, but does not tell about itself: {error}")
    said = f"Redis {facts['redis_version']}"
    if tuple(int(part) for part in facts["redis_version"].split(".")[:2]) < _OLDEST_REDIS:
        return Line(Health.BROKEN, "broker", f"{said} is too old; 6.2 or newer is needed")
    if policy != "noeviction":
        return Line(Health.NOTE, "broker", f"{said} answers, but may drop messages: set maxmemory-policy noeviction")
    return Line(Health.OK, "broker", f"{said} answers")


def probe_models(settings: Settings) -> Iterator[Line]:
    """Whether there is a key; never which."""
    where = place(settings.anthropic_base_url) if settings.anthropic_base_url else "the Anthropic API"
    asked = [name for name in (settings.executor_model, settings.judge_model) if name and name != "simulated"]
    if settings.anthropic_api_key:
        yield Line(Health.OK, "models", f"a key for {where} is set; it was not tried")
    elif asked:
        yield Line(Health.BROKEN, "models", f"{asked[0]} is asked for and there is no key; set ANTHROPIC_API_KEY")
    else:
        yield Line(
            Health.NOTE, "models", "no key: only --command and --model simulated will work; set ANTHROPIC_API_KEY"
        )


def probe_disk(settings: Settings) -> Iterator[Line]:
    """Room where results and workspaces are kept."""
    for what, folder in {"data": settings.artifact_root, "work": Path(tempfile.gettempdir())}.items():
        there = next(path for path in [folder.absolute(), *folder.absolute().parents] if path.exists())
        free = shutil.disk_usage(there).free
        said = f"{free / 2**30:.1f} GiB free for {folder}"
        if free < _FULL_BYTES:
            yield Line(Health.BROKEN, f"disk {what}", f"{said}; make room")
        else:
            yield Line(Health.NOTE if free < _SHORT_BYTES else Health.OK, f"disk {what}", said)


def probe_clock(settings: Settings) -> Iterator[Line]:
    """Whether this machine and the database agree; leases go by the database's clock, timings by ours."""
    from sqlalchemy import text

    from service.storage.engine import open_engine
    from service.storage.store import database_errors

    if not settings.database.startswith("postgresql"):
        yield Line(Health.OK, "clock", time.strftime("%Y-%m-%d %H:%M:%S %Z"))
        return
    try:
        engine = open_engine(settings.database)
        with database_errors(), engine.connect() as connection:
            theirs = float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
        engine.dispose()
    except AssayError:
        return  # said by probe_database already
    apart = abs(time.time() - theirs)
    health = Health.OK if apart < _CLOCK_SECONDS else Health.NOTE
    remedy = "" if health is Health.OK else "; set both by NTP, or times in results are wrong"
    yield Line(health, "clock", f"{apart:.1f} s from the database's{remedy}")


def place(url: str) -> str:
    """Where a URL leads, without user and password."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or parts.path
