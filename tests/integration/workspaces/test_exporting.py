"""An export is read here the way skill-creator's own tools read a workspace."""

import json
from collections.abc import Iterable
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from statistics import mean, stdev
from typing import IO, Any

import pytest
from support.judged_runs import grading, passing, plan, run

from schemas.dialects import read
from schemas.grading import CriterionResult, EvalFeedback, Grading, UserNotes
from schemas.states import Outcome
from schemas.suite import Suite
from service.aggregation.benchmark import aggregate
from service.aggregation.records import BatchPlan, CaseFacts, Options, RunRecord
from service.errors import Conflict
from service.workspaces.aggregating import FolderRequest, aggregate_folder
from service.workspaces.artifacts import FolderArtifacts
from service.workspaces.exported_grading import NO_RATE
from service.workspaces.exporting import Export, case_folders
from service.workspaces.reading import Workspace, case_facts
from service.workspaces.roles import arms

FILES = {
    "transcript.md": b"## Eval Prompt\n\nhello",
    "outputs/answer.md": b"the answer",
    "outputs/src/deep/a.ts": b"export {}",
    "../../escape.txt": b"no",
    "/etc/absolute": b"no",
}


class SomeFiles:
    def names(self, run: RunRecord) -> Iterable[str]:
        assert run.run_number
        return FILES

    def open(self, run: RunRecord, name: str) -> IO[bytes]:
        assert run.run_number
        return BytesIO(FILES[name])


def batch() -> list[RunRecord]:
    facts = [CaseFacts(number, f"Case / {number}: é", f"prompt {number}", ("s",)) for number in (1, 2, 12)]
    return [
        run(case, arm, number, passing(passed + number % 2, 7), seconds=10.5 * number, tokens=1000 * number + len(arm))
        for case in facts
        for arm, passed in (("with_skill", 5), ("without_skill", 2))
        for number in (1, 2, 3)
    ]


def export(records: list[RunRecord], target: Path, batch_plan: BatchPlan | None = None) -> Path:
    writer = Export(target, 2, SomeFiles(), Options())
    writer.use_cases([record.case for record in records])
    for record in records:
        writer.add(record)
    aggregates = aggregate(records, batch_plan or plan())
    root = writer.finish(aggregates)
    aggregates.close()
    return root


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_reader_of_run_folders_finds_the_numbers_of_our_summary(tmp_path: Path) -> None:
    root = export(batch(), tmp_path)
    found: dict[str, dict[str, list[float]]] = {}
    for case in sorted(root.glob("eval-*")):
        for folder in sorted(case.glob("*/run-*")):
            grading, timing = load(folder / "grading.json"), load(folder / "timing.json")
            arm = found.setdefault(folder.parent.name, {"pass_rate": [], "time_seconds": [], "tokens": []})
            arm["pass_rate"].append(grading["summary"]["pass_rate"])
            # Only while the grading has no total of its own do its readers take time and tokens from timing.json.
            assert "total_duration_seconds" not in grading.get("timing", {})
            arm["time_seconds"].append(timing["total_duration_seconds"])
            arm["tokens"].append(timing["total_tokens"])

    summary = load(root / "benchmark.json")["run_summary"]

    assert list(found) == ["with_skill", "without_skill"]
    for arm, metrics in found.items():
        for name, values in metrics.items():
            assert len(values) == 9
            assert summary[arm][name]["mean"] == round(mean(values), 4)
            assert summary[arm][name]["stddev"] == round(stdev(values), 4)


def test_prompt_and_id_stand_where_both_tools_look(tmp_path: Path) -> None:
    root = export(batch(), tmp_path)
    case = root / "eval-12-case-12"
    for place in (case, case / "with_skill"):
        metadata = load(place / "eval_metadata.json")
        assert metadata == {"eval_id": 12, "eval_name": "Case / 12: é", "prompt": "prompt 12", "assertions": ["s"]}


def test_nested_outputs_are_also_at_the_top_and_nothing_leaves_the_folder(tmp_path: Path) -> None:
    root = export(batch(), tmp_path)
    outputs = root / "eval-1-case-1" / "with_skill" / "run-1" / "outputs"
    assert (outputs / "src" / "deep" / "a.ts").read_bytes() == b"export {}"
    assert (outputs / "src__deep__a.ts").read_bytes() == b"export {}"
    assert not list(tmp_path.rglob("escape.txt"))
    assert not list(tmp_path.rglob("absolute"))


def test_notes_and_feedback_of_the_cases_dialect_become_lists(tmp_path: Path) -> None:
    judged = Grading(
        results=(CriterionResult(criterion="c", score=4, reasoning="r"),),
        user_notes=UserNotes(text="unsure"),
        eval_feedback=EvalFeedback(text="vague"),
    )
    root = export([run("case-01", "with_skill", 1, judged)], tmp_path)
    found = load(root / "eval-case-01" / "with_skill" / "run-1" / "grading.json")
    assert found["user_notes_summary"]["uncertainties"] == ["unsure"]
    assert found["eval_feedback"] == {"suggestions": [], "overall": "vague"}
    assert found["expectations"][0] == {"text": "c", "passed": True, "evidence": "r", "kind": "criterion", "score": 4}
    assert None not in found.values()


def test_a_run_without_a_pass_rate_says_that_its_0_is_none(tmp_path: Path) -> None:
    judged = grading(scores={"clear": 4})
    root = export([run(1, "with_skill", 1, judged), run(1, "with_skill", 2, passing(0, 1))], tmp_path)
    found = [load(path) for path in sorted(root.glob("*/with_skill/run-*/grading.json"))]
    assert [one["summary"]["pass_rate"] for one in found] == [0.0, 0.0]
    assert found[0]["user_notes_summary"]["uncertainties"] == [NO_RATE]
    assert "user_notes_summary" not in found[1]


def test_ids_of_both_kinds_are_all_written_as_text(tmp_path: Path) -> None:
    records = [run(case, "with_skill", 1, passing(1, 1)) for case in (1, "b")]
    root = export(records, tmp_path)
    assert {load(path)["eval_id"] for path in root.glob("eval-*/eval_metadata.json")} == {"1", "b"}


def test_what_was_exported_comes_back_the_same(tmp_path: Path) -> None:
    lost = run(1, "with_skill", 4, outcome=Outcome.TIMEOUT, reason="600 s passed", tokens=5)
    export([*batch(), lost], tmp_path)
    workspace = Workspace.open(tmp_path)
    back = list(workspace.records(arms(workspace.layout.configurations)))

    assert len(back) == 19
    again = next(record for record in back if record.outcome is not Outcome.SCORED)
    assert (again.outcome, again.reason, again.run_number) == (Outcome.TIMEOUT, "600 s passed", 4)
    names = list(FolderArtifacts(workspace.folder).names(back[0]))
    assert names == ["outputs/answer.md", "outputs/src/deep/a.ts", "transcript.md"]
    ours, theirs = (aggregate(r, plan()).run_summary for r in ([*batch(), lost], back))
    assert ours == theirs


def test_an_export_aggregated_again_keeps_numbers_and_provenance(tmp_path: Path) -> None:
    rubric = {"dimensions": [{"name": "clear", "weight": 3, "scale": [1, 5]}, {"name": "brief", "weight": 1}]}
    for dimension in rubric["dimensions"]:
        dimension |= {"description": "how", "scoring": {str(score): "so" for score in range(1, 6)}}
        dimension.pop("scale", None)
    evals = [{"id": 1, "prompt": "p", "expected_output": "o", "rubric": rubric, "structural_expectations": []}]
    suite = read(json.dumps({"skill_name": "pdf", "evals": evals}).encode()).document
    assert isinstance(suite, Suite)
    facts = replace(case_facts(suite.cases[0]), statements=("s",))
    assert facts.weights == {"clear": 3.0, "brief": 1.0}
    records = [
        run(facts, "with_skill", 1, passing(1, 1, {"clear": 5, "brief": 1})),
        run(facts, "with_skill", 2, outcome=Outcome.GATED),
        run(facts, "without_skill", 1, passing(0, 1, {"clear": 2, "brief": 2})),
    ]
    origin = replace(plan(), provenance={"skill_digest": "abc", "judge_prompt_versions": ["j1"]})
    root = export(records, tmp_path, origin)
    (root / "evals.json").write_text(json.dumps({"skill_name": "pdf", "evals": evals}))
    first = load(root / "benchmark.json")

    found = aggregate_folder(FolderRequest(root))

    assert found.aggregates.run_summary == first["run_summary"]
    provenance = found.aggregates.metadata()["provenance"]
    assert isinstance(provenance, dict)
    assert (provenance["skill_digest"], provenance["judge_prompt_versions"]) == ("abc", ["j1"])
    assert provenance["source"] == "folder"


def test_a_folder_in_use_is_not_written_over(tmp_path: Path) -> None:
    export(batch(), tmp_path)
    with pytest.raises(Conflict, match="is not empty"):
        export(batch(), tmp_path)


def test_cases_whose_names_come_to_the_same_have_a_folder_each() -> None:
    cases = [CaseFacts("a b"), CaseFacts("a/b"), CaseFacts("A-b"), CaseFacts(1, "Über alles"), CaseFacts("1-ber-alles")]
    names = list(case_folders(cases).values())
    assert names == ["eval-a-b", "eval-a-b-again", "eval-A-b-again-again", "eval-1-ber-alles", "eval-1-ber-alles-again"]
