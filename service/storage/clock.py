"""The database's own clock: workers' clocks differ, and a lease must mean the same to all of them."""

from typing import Any

from sqlalchemy import Float
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement


class Now(FunctionElement[float]):
    """Seconds since 1970 by the database's clock, read anew in every statement."""

    type = Float()
    inherit_cache = True


@compiles(Now, "postgresql")
def _postgresql(_element: Now, _compiler: Any, **_options: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"


@compiles(Now, "sqlite")
def _sqlite(_element: Now, _compiler: Any, **_options: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"
