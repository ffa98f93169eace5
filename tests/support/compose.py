"""The compose files as Docker Compose would read them, as far as our tests need it."""

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
OURS = ("migrate", "api", "executor", "checker", "judge", "aggregator", "flower")
_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def load(name: str = "docker-compose.yml") -> dict[str, Any]:
    """A compose file with its merge keys resolved and variables at their defaults; `$$` stays."""
    text = (ROOT / name).read_text()
    loaded: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(lambda found: found[2] or "", text))
    return loaded


def merged(*names: str) -> dict[str, Any]:
    """Several files laid over each other: mappings are merged, everything else is replaced."""
    together: dict[str, Any] = {}
    for name in names:
        together = _merge(together, load(name))
    return together


def _merge(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = _merge(result[key], value) if both else value
    return result
