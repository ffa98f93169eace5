"""How a version fared is told by the newest that was measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.api import make_parts

from schemas.states import BatchState, ComparisonState
from service.aggregate import HISTORY_FIGURES
from service.bootstrap import Parts
from service.catalogue import Past
from service.storage.comparisons import ComparisonRow, Side
from service.storage.rows import BatchRow, SkillVersionRow


def batch_at(parts: Parts, when: float, verdict: str) -> BatchRow:
    blob = parts.artifacts.put(json.dumps({"statistics": {"verdict": verdict}}).encode())
    files = {"benchmark.json": {"sha256": blob.sha256, "size": 1}}
    never, none = None, None
    state = BatchState.FINISHED
    return BatchRow(
        "b", "t", "s", "new", "old", 1, state, {}, {}, 0, none, never, files, none, when - 1, when - 1, when
    )


def comparison_at(when: float, result: str) -> ComparisonRow:
    sides = (Side("b", "new_skill", "new", "v1"), Side("b", "old_skill", "old", "v0"))
    state = ComparisonState.FINISHED
    return ComparisonRow("c", "t", "s", *sides, state, {}, 1, None, None, result, None, when - 1, when - 1, when)


@pytest.mark.parametrize(("compared", "measured", "result"), [(1.0, 2.0, "won"), (2.0, 1.0, "lost")])
def test_the_newest_evidence_decides(tmp_path: Path, compared: float, measured: float, result: str) -> None:
    parts = make_parts(tmp_path)
    version = SkillVersionRow("new", "t", "pdf", 1, "digest", "old", None, "", {}, 0.0)
    past = Past([batch_at(parts, measured, "helps")], [comparison_at(compared, "lost")])

    assert parts.catalogue._result(version, past) == result
    parts.close()


def test_a_history_reads_no_runs_where_figures_were_kept(tmp_path: Path) -> None:
    parts = make_parts(tmp_path)
    kept = {"verdict": "hurts", "configurations": {"new_skill": {"pass_rate": 0.7, "average_score": 3.5}}}
    blob = parts.artifacts.put(json.dumps(kept).encode())
    # A benchmark that nobody has kept cannot be read.
    lost = {"sha256": "0" * 64, "size": 1}
    files = {"benchmark.json": lost, HISTORY_FIGURES: {"sha256": blob.sha256, "size": blob.size}}
    batch = replace(batch_at(parts, 2.0, "helps"), aggregate=files)
    version = SkillVersionRow("new", "t", "pdf", 1, "digest", "old", None, "", {}, 0.0)

    figures = parts.catalogue._own_figures(version, Past([batch], []))

    assert (figures.pass_rate, figures.average_score) == (0.7, 3.5)
    assert parts.catalogue._result(version, Past([batch], [])) == "lost"
    parts.close()
