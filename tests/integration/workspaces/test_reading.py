import json
from pathlib import Path
from typing import Any

import pytest

from schemas.states import Outcome, Role
from service.aggregation.records import RunRecord
from service.errors import BadInput
from service.workspaces.folder import counted
from service.workspaces.reading import Workspace
from service.workspaces.roles import arms, role_of


def put(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def graded(*verdicts: bool) -> dict[str, Any]:
    return {"expectations": [{"text": f"s{i}", "passed": v, "evidence": "e"} for i, v in enumerate(verdicts)]}


def records(root: Path, **options: Any) -> list[RunRecord]:
    workspace = Workspace.open(root, **options)
    return list(workspace.records(arms(workspace.layout.configurations)))


def test_runs_are_read_from_numbered_folders_in_counting_order(tmp_path: Path) -> None:
    for case in (1, 2, 10):
        put(
            tmp_path / f"eval-{case}-x" / "eval_metadata.json",
            {"eval_id": case, "eval_name": f"N{case}", "prompt": "p"},
        )
        for run in (1, 2, 10):
            put(tmp_path / f"eval-{case}-x" / "with_skill" / f"run-{run}" / "grading.json", graded(True))
    found = records(tmp_path)
    assert [r.case.id for r in found] == [1, 1, 1, 2, 2, 2, 10, 10, 10]
    assert [r.run_number for r in found[:3]] == [1, 2, 10]
    assert found[0].case.name == "N1"
    assert found[0].case.prompt == "p"


def test_the_flat_layout_is_one_run_per_configuration(tmp_path: Path) -> None:
    put(tmp_path / "eval-0-a" / "with_skill" / "grading.json", graded(True))
    put(tmp_path / "eval-0-a" / "without_skill" / "outputs" / "grading.json", graded(False))
    found = records(tmp_path)
    assert [(r.case.id, r.configuration, r.run_number, r.outcome) for r in found] == [
        (0, "with_skill", 1, Outcome.SCORED),
        (0, "without_skill", 1, Outcome.SCORED),
    ]


def test_treatment_comes_first_whatever_the_alphabet_says(tmp_path: Path) -> None:
    for arm in ("old_skill", "with_skill"):
        put(tmp_path / "eval-1" / arm / "run-1" / "grading.json", graded(True))
    assert [(r.configuration, r.role) for r in records(tmp_path)] == [
        ("with_skill", Role.TREATMENT),
        ("old_skill", Role.CONTROL),
    ]


def test_the_older_runs_folder_is_read_and_an_empty_one_does_not_hide_the_rest(tmp_path: Path) -> None:
    put(tmp_path / "a" / "runs" / "eval-1" / "with_skill" / "run-1" / "grading.json", graded(True))
    assert len(records(tmp_path / "a")) == 1
    (tmp_path / "b" / "runs").mkdir(parents=True)
    put(tmp_path / "b" / "eval-1" / "with_skill" / "run-1" / "grading.json", graded(True))
    assert len(records(tmp_path / "b")) == 1


def test_the_newest_iteration_of_a_workspace_is_read(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        put(tmp_path / f"iteration-{number}" / "eval-1" / "with_skill" / "grading.json", graded(*[True] * number))
    workspace = Workspace.open(tmp_path)
    assert workspace.layout.iteration == 10
    assert any("iteration-10 of 3" in remark for remark in workspace.remarks)


def test_folders_with_descriptive_names_are_cases(tmp_path: Path) -> None:
    put(tmp_path / "fills-a-form" / "with_skill" / "grading.json", graded(True))
    assert records(tmp_path)[0].case.id == "fills-a-form"


def test_a_gradings_problem_is_the_outcome_of_its_run(tmp_path: Path) -> None:
    case = tmp_path / "eval-1"
    put(case / "with_skill" / "run-1" / "grading.json", graded(True))
    put(case / "with_skill" / "run-2" / "grading.json", "{ not json")
    put(case / "with_skill" / "run-3" / "timing.json", {"total_duration_seconds": 3.0})
    put(
        case / "with_skill" / "run-4" / "grading.json", {"expectations": [{"text": "t", "passed": None}], "summary": {}}
    )
    put(case / "with_skill" / "run-5" / "grading.json", {"expectations": [], "summary": {"total": 0}})
    outcomes = {r.run_number: (r.outcome, r.reason) for r in records(tmp_path)}
    assert outcomes[1] == (Outcome.SCORED, None)
    assert outcomes[2][0] is Outcome.JUDGE_ERROR and "grading.json cannot be used" in str(outcomes[2][1])
    assert outcomes[3] == (Outcome.JUDGE_ERROR, "grading.json is missing")
    assert outcomes[4] == (Outcome.JUDGE_ERROR, "1 of 1 expectations were not decided")
    assert outcomes[5][0] is Outcome.UNGRADED


def test_a_failed_gate_without_a_grading_is_gated(tmp_path: Path) -> None:
    check = {"id": "S1", "text": "t", "type": "file_exists", "passed": False, "evidence": "e", "critical": True}
    put(tmp_path / "eval-1" / "with_skill" / "structural.json", {"expectations": [check], "gate_passed": False})
    assert records(tmp_path)[0].outcome is Outcome.GATED


def test_two_folders_with_one_id_stay_two_cases(tmp_path: Path) -> None:
    for name in ("eval-1", "eval-2"):
        put(tmp_path / name / "eval_metadata.json", {"eval_id": 7, "eval_name": name, "prompt": "p"})
        put(tmp_path / name / "with_skill" / "grading.json", graded(True))
    assert [r.case.id for r in records(tmp_path)] == [7, "eval-2"]


def test_weights_and_required_criteria_come_from_the_suite(tmp_path: Path) -> None:
    rubric = {"dimensions": [{"id": "Q1", "name": "clarity", "description": "d", "weight": 2.0, "scoring": {"1": "a"}}]}
    put(tmp_path / "evals.json", {"skill_name": "x", "evals": [{"id": 1, "prompt": "p", "quality_rubric": rubric}]})
    put(tmp_path / "ws" / "eval-1" / "with_skill" / "grading.json", graded(True))
    found = records(tmp_path / "ws", suite=tmp_path / "evals.json")
    assert found[0].case.weights == {"clarity": 2.0}


def test_the_gradings_of_the_cases_dialect_are_read_from_their_folder(tmp_path: Path) -> None:
    for version, score in ((0, 2), (1, 4)):
        value = {"case_id": "case-01", "version": version, "run": 1, "results": [{"criterion": "c", "score": score}]}
        put(tmp_path / "grading" / f"case-01_v{version}_run1.json", value)
    found = records(tmp_path)
    assert [(r.configuration, r.role, r.case.id) for r in found] == [
        ("v1", Role.TREATMENT, "case-01"),
        ("v0", Role.CONTROL, "case-01"),
    ]


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "secret.json", graded(True))
    place = tmp_path / "ws" / "eval-1" / "with_skill"
    put(place / "timing.json", {"total_duration_seconds": 1.0})
    (place / "grading.json").symlink_to(tmp_path / "secret.json")
    assert records(tmp_path / "ws")[0].outcome is Outcome.JUDGE_ERROR


def test_a_folder_without_runs_is_an_error_that_says_what_was_expected(tmp_path: Path) -> None:
    (tmp_path / "eval-1").mkdir()
    with pytest.raises(BadInput, match=r"no runs in .*expected <case>/<configuration>"):
        Workspace.open(tmp_path)
    with pytest.raises(BadInput, match="is not a folder"):
        Workspace.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("with_skill", Role.TREATMENT),
        ("without_skill", Role.CONTROL),
        ("claude_without_skill", Role.CONTROL),
        ("new_skill", Role.TREATMENT),
        ("old_skill", Role.CONTROL),
        ("baseline", Role.CONTROL),
        ("no-skill", Role.CONTROL),
        ("blue", None),
    ],
)
def test_names_tell_roles(name: str, role: Role | None) -> None:
    assert role_of(name) is role


def test_the_newest_version_is_tried_against_the_one_before() -> None:
    assert [(a.configuration, a.role) for a in arms(["v0", "v1", "v10", "v2"])][:2] == [
        ("v10", Role.TREATMENT),
        ("v2", Role.CONTROL),
    ]


def test_a_named_arm_wins_and_must_exist() -> None:
    chosen = arms(["blue", "green"], treatment="green", control="blue")
    assert [(a.configuration, a.role) for a in chosen] == [("green", Role.TREATMENT), ("blue", Role.CONTROL)]
    with pytest.raises(BadInput, match="no configuration 'red'"):
        arms(["blue"], treatment="red")


def test_people_count_two_before_ten() -> None:
    assert sorted(["eval-10", "eval-2", "eval-1-b", "eval-1-a", "x"], key=counted) == [
        "eval-1-a",
        "eval-1-b",
        "eval-2",
        "eval-10",
        "x",
    ]
