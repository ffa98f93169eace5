"""The documents tell the truth: commands run, examples are valid, links lead somewhere, references are current."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from schemas.checks import CHECK_TYPES
from schemas.dialects import read_suite
from schemas.kinds import Dialect

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TRIED = [ROOT / "README.md", ROOT / "docs" / "quickstart.md"]
_BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """(words behind the fence, content) of every code block."""
    for found in _BLOCK.finditer(page.read_text()):
        yield found[1].strip(), found[2]


@pytest.mark.parametrize("page", TRIED, ids=lambda page: page.name)
def test_every_command_marked_as_runnable_runs(page: Path, tmp_path: Path) -> None:
    scripts = [content for words, content in blocks(page) if words.split()[1:] == ["run"]]
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
    }
    # The sandbox's user passes through the folder that holds the reader's own agent.
    tmp_path.chmod(0o755)
    tmp_path.parent.chmod(0o755)
    tmp_path.parent.parent.chmod(0o755)

    script = "\n".join(["set -euo pipefail", *scripts])
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
    )

    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    assert "Traceback" not in done.stdout + done.stderr
    if page.name == "quickstart.md":
        assert (tmp_path / "report.html").stat().st_size > 1_000


def test_examples_of_suites_are_valid_and_show_every_dialect_and_type() -> None:
    suites = [content for words, content in blocks(ROOT / "docs" / "writing-a-suite.md") if words == "json"]
    shown, dialects = set(), set()

    for text in suites:
        suite = read_suite(text.encode())
        assert [finding for finding in suite.findings if finding.level != "note"] == []
        dialects.add(suite.dialect)
        for case in json.loads(text).get("evals", []):
            shown |= {check["type"] for check in case.get("structural_expectations", [])}

    assert shown == set(CHECK_TYPES)
    assert dialects == set(Dialect)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = [found[1] for found in _LINK.finditer(page.read_text()) if "://" not in found[1]]

    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_the_index_names_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()

    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"({name}" not in index} == set()


def generator(name: str) -> ModuleType:
    spec = spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli", "http"])
def test_the_references_are_current(name: str) -> None:
    tool = f"generate_{name}_reference"

    assert (ROOT / "docs" / f"{name}.md").read_text() == generator(tool).reference(), (
        f"docs/{name}.md is not what the program says; run python tools/{tool}.py"
    )


def test_every_setting_a_document_names_exists() -> None:
    from service.settings import Settings

    known = {f"ASSAY_{name.upper()}" for name in Settings.model_fields}
    # What the command runner gives to programs.
    known |= {f"ASSAY_{name}" for name in ("PROMPT_FILE", "SKILL_DIR", "INPUT_FILES", "MODEL", "RESULT_FILE")}
    known |= {f"ASSAY_{name}" for name in ("BATCH", "CASE", "CONFIGURATION", "RUN")}
    named = {name for page in PAGES for name in re.findall(r"\bASSAY_[A-Z_]+[A-Z]\b", page.read_text())}

    assert named - known == set()


def test_doctor_is_asked_where_the_sandbox_and_the_key_are() -> None:
    asked = re.findall(r"compose exec (\w+) assay doctor", (ROOT / "docs" / "operating.md").read_text())

    assert asked == ["executor"]


def test_no_documented_command_takes_away_workers() -> None:
    lines = [line for page in PAGES for line in re.findall(r"docker compose up -d[^\n`]*", page.read_text())]

    # `up` without its numbers goes back to one worker of each role.
    assert len(lines) >= 3 and [line for line in lines if "--scale judge=" not in line] == []
