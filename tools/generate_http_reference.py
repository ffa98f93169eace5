"""Writes docs/http.md from the API's own description: python tools/generate_http_reference.py. A test finds drift."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from api.app import create_app
from service.bootstrap import Parts
from service.settings import Settings

TARGET = Path(__file__).parent.parent / "docs" / "http.md"
HEAD = """# HTTP reference

Generated from the program by `python tools/generate_http_reference.py`; do not edit. The same, with examples, is at
`/v1/openapi.json` of every server. How the parts go together: [the API](api.md).

Whatever goes wrong is answered with a [Problem](#problem) as `application/problem+json`. A star marks what must be
given.
"""
TABLE = ["| | | |", "|---|---|---|"]


def reference() -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory() as folder, closing(Parts(Settings(data=Path(folder)))) as parts:
        description = create_app(parts).openapi()
    operations = [
        _operation(verb, path, one) for path, verbs in description["paths"].items() for verb, one in verbs.items()
    ]
    documents = [_document(name, one) for name, one in sorted(description["components"]["schemas"].items())]
    return "\n".join([HEAD, *operations, "## Documents\n", *documents])


def _operation(verb: str, path: str, one: dict[str, Any]) -> str:
    rows = [*_parameters(one), *_bodies(one), *_answers(one)]
    who = "" if one.get("security") else " Open to all."
    return "\n".join([f"## {verb.upper()} {path}", "", f"{one['description']}{who}", "", *TABLE, *rows, ""])


def _parameters(one: dict[str, Any]) -> Iterator[str]:
    for parameter in one.get("parameters", []):
        said = _said(parameter["schema"], parameter.get("description", ""))
        yield _row(f"{parameter['in']} `{parameter['name']}`", parameter["required"], parameter["schema"], said)


def _bodies(one: dict[str, Any]) -> Iterator[str]:
    body = one.get("requestBody", {})
    for kind, content in body.get("content", {}).items():
        schema = content["schema"]
        yield _row(f"body `{kind}`", body.get("required", False), schema, schema.get("description", ""))
        yield from _fields(schema)


def _answers(one: dict[str, Any]) -> Iterator[str]:
    for code, answer in one["responses"].items():
        if code.startswith("2"):
            contents = answer.get("content") or {"nothing": {}}
            for kind, content in contents.items():
                yield _row(f"answer {code} `{kind}`", False, content.get("schema", {}), "")


def _document(name: str, schema: dict[str, Any]) -> str:
    about = schema.get("description", "")
    lines = [f"### {name}", "", *([about, ""] if about else [])]
    rows = list(_fields(schema))
    return "\n".join([*lines, *([*TABLE, *rows] if rows else [f"Values: {_type(schema)}."]), ""])


def _fields(schema: dict[str, Any]) -> Iterator[str]:
    required = schema.get("required", [])
    for name, one in schema.get("properties", {}).items():
        yield _row(f"`{name}`", name in required, one, _said(one, one.get("description", "")))


def _row(name: str, required: bool, schema: dict[str, Any], said: str) -> str:
    cells = (f"{name}{' *' if required else ''}", _type(schema), said.replace("\n", " "))
    return "| {} | {} | {} |".format(*(cell.replace("|", "/") for cell in cells))


def _said(schema: dict[str, Any], description: str) -> str:
    """What it means, and its default."""
    default = schema.get("default")
    return description if default in (None, "", [], {}) else f"{description} (default `{default}`)".strip()


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"] if one.get("type") != "null")
    if values := schema.get("enum") or [one for one in [schema.get("const")] if one is not None]:
        return ", ".join(f"`{value}`" for value in values)
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type", "anything"))


if __name__ == "__main__":
    TARGET.write_text(reference())
    print(f"wrote {TARGET}")
