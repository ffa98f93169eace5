"""`python -m schemas.generate` writes the published JSON Schemas into schemas/json; a test finds them outdated."""

import json
from pathlib import Path

from pydantic import JsonValue

from schemas.dialects.published import all_schemas

FOLDER = Path(__file__).parent / "json"


def schema_files() -> dict[Path, str]:
    """Path below schemas/json and text of every published schema."""
    return {Path(dialect) / f"{kind}.schema.json": _text(schema) for (dialect, kind), schema in all_schemas().items()}


def _text(schema: dict[str, JsonValue]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them all."""
    for path, text in schema_files().items():
        target = FOLDER / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main()
