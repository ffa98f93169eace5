"""A program of its own: works on regexes and JSON of strangers, and is killed when it takes too long.

    python -I -S engine_child.py SECONDS MEMORY_BYTES

Requests and answers are JSON documents behind their length (4 bytes). SECONDS are of processor time, so that
a busy machine changes no verdict. The alarm has no handler: it ends this process even in the middle of a search, and
even if the worker is gone. It imports nothing of ours, because it runs isolated.
"""

import json
import re
import resource
import signal
import struct
import sys
from typing import Any

SHOWN_CHARS = 200
SHOWN_HITS = 3


def main() -> None:
    """Answer until nobody asks."""
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    memory = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    while (request := receive()) is not None:
        send(answer(request, seconds))


def receive() -> dict[str, Any] | None:
    """The next request; None when the other side is gone."""
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        return None
    found = json.loads(sys.stdin.buffer.read(struct.unpack(">I", head)[0]))
    return found if isinstance(found, dict) else None


def send(reply: dict[str, Any]) -> None:
    """Write an answer."""
    content = json.dumps(reply).encode()
    sys.stdout.buffer.write(struct.pack(">I", len(content)) + content)
    sys.stdout.buffer.flush()


def answer(request: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Do what is asked within the time; running out of memory or stack is an answer too."""
    if "sys_path" in request and sys.path != request["sys_path"]:
        sys.path[:] = request["sys_path"]
        import jsonschema  # noqa: F401  loading it is not the request's time
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        return OPERATIONS[request["do"]](request)
    except MemoryError:
        return {"gave_up": "ran out of memory"}
    except RecursionError:
        return {"gave_up": "is nested too deeply"}
    except re.error as error:
        return {"gave_up": f"is not valid at position {error.pos}: {error.msg}"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def compile_regex(request: dict[str, Any]) -> dict[str, Any]:
    """Whether a pattern is one."""
    try:
        re.compile(request["pattern"])
    except re.error as error:
        return {"problem": error.msg, "position": error.pos}
    except (OverflowError, ValueError) as error:
        return {"problem": str(error), "position": None}
    return {}


def search(request: dict[str, Any]) -> dict[str, Any]:
    """The first match in some texts: which text, which line, what."""
    pattern = re.compile(request["pattern"])
    for number, text in enumerate(request["texts"]):
        if found := pattern.search(text):
            line = text.count("\n", 0, found.start()) + 1
            return {"number": number, "found": found.group()[:SHOWN_CHARS], "line": line}
    return {"number": None}


def search_lines(request: dict[str, Any]) -> dict[str, Any]:
    """For each text the numbers of the lines that match, each line searched for itself."""
    matches = re.compile(request["pattern"]).search
    return {
        "lines": [
            [number for number, line in enumerate(text.split("\n"), 1) if matches(line)] for text in request["texts"]
        ]
    }


def parse_json(request: dict[str, Any]) -> dict[str, Any]:
    """Whether a text is JSON."""
    parsed = load(request["text"])
    return {"problem": parsed} if isinstance(parsed, Problem) else {}


def look_up(request: dict[str, Any]) -> dict[str, Any]:
    """What stands at a place of a JSON text, and whether it is what was expected."""
    value = load(request["text"])
    if isinstance(value, Problem):
        return {"problem": value}
    for key in request["keys"]:
        if isinstance(value, dict) and str(key) in value:
            value = value[str(key)]
        elif isinstance(value, list) and isinstance(key, int) and -len(value) <= key < len(value):
            value = value[key]
        else:
            return {"exists": False}
    return {"exists": True, "value": shown(value), "equal": is_same(value, request.get("equals"))}


def check_schema(request: dict[str, Any]) -> dict[str, Any]:
    """Whether a JSON Schema is one."""
    import jsonschema

    try:
        validator_for(request["schema"]).check_schema(request["schema"])
    except jsonschema.SchemaError as error:
        return {"problem": f"{error.json_path}: {error.message[:SHOWN_CHARS]}"}
    return {}


def validate(request: dict[str, Any]) -> dict[str, Any]:
    """Where a JSON text breaks a schema."""
    import referencing

    value = load(request["text"])
    if isinstance(value, Problem):
        return {"problem": value}
    # An empty registry: a reference that leaves the schema is a mistake, never a download.
    validator = validator_for(request["schema"])(request["schema"], registry=referencing.Registry())
    try:
        errors = sorted(validator.iter_errors(value), key=lambda error: error.json_path)
    except referencing.exceptions.Unresolvable as error:
        return {"gave_up": f"refers to {error.ref!r}, which is not in it"}
    shown_errors = [f"{error.json_path}: {error.message[:SHOWN_CHARS]}" for error in errors[:SHOWN_HITS]]
    return {"errors": shown_errors, "more": max(0, len(errors) - SHOWN_HITS)}


class Problem(str):
    """Why a text is not JSON."""


def load(text: str) -> Any:
    """The value of a JSON text, or the Problem with it; NaN and its like are not JSON."""
    try:
        return json.loads(text, parse_constant=refuse, parse_int=integer)
    except json.JSONDecodeError as error:
        return Problem(f"{error.msg} at line {error.lineno} column {error.colno}")
    except ValueError as error:
        return Problem(str(error))


def refuse(name: str) -> None:
    """A constant that Python reads and JSON does not have."""
    raise ValueError(f"{name} is not JSON")


def integer(digits: str) -> int | float:
    """A number of thousands of digits would take quadratic time."""
    return int(digits) if len(digits) < 4000 else float(digits)


def is_same(value: Any, expected: Any) -> bool:
    """Equal as JSON: 1 is 1.0, but true is not 1."""
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(is_same(value[key], expected[key]) for key in value)
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(map(is_same, value, expected))
    return bool(value == expected)


def shown(value: Any) -> str:
    """A value as JSON, short."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "…"


def validator_for(schema: Any) -> Any:
    """The validator of the draft that a schema names."""
    from jsonschema.validators import Draft202012Validator
    from jsonschema.validators import validator_for as named

    return named(schema, default=Draft202012Validator)


OPERATIONS = {
    "compile": compile_regex,
    "search": search,
    "search_lines": search_lines,
    "parse_json": parse_json,
    "look_up": look_up,
    "check_schema": check_schema,
    "validate": validate,
}

if __name__ == "__main__":
    main()
