"""Folders of runs become batches of given runs, and what cannot be taken in is refused with a sentence."""

import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.api import make_parts
from support.workspaces import SKILL_CREATOR_SUITE, add_run, flat_workspace, grading, metadata, numbered_workspace, put

from schemas.states import Outcome, Role, Stage
from service.bootstrap import Parts
from service.errors import BadInput
from service.storage.rows import RunRow
from service.submitting import Accepted
from service.take_in import TakeInRequest


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    made = make_parts(tmp_path, artifact_max_bytes=10_000, run_max_files=5)
    yield made
    made.close()


def runs(parts: Parts, accepted: Accepted) -> list[RunRow]:
    return list(parts.desk.runs(accepted.batch_id, "default"))


def files(parts: Parts, run: RunRow) -> dict[str, bytes]:
    return {name: parts.artifacts.get(blob.sha256) for name, blob in parts.store.runs.files(run.id).items()}


def finished(parts: Parts, accepted: Accepted) -> dict[str, Any]:
    """The benchmark of a batch all of whose runs came settled."""
    parts.desk.start_given(accepted)
    parts.stages.aggregate(accepted.batch_id, parts.aggregate)
    found: dict[str, Any] = json.loads(parts.desk.aggregate_file(accepted.batch_id, "default", "benchmark.json"))
    return found


def grade(parts: Parts, folder: Path, **asked: Any) -> Accepted:
    return parts.take_in.grade(TakeInRequest(folder, **asked))


def take(parts: Parts, folder: Path, **asked: Any) -> Accepted:
    return parts.take_in.take(TakeInRequest(folder, **asked))


def graded_workspace(root: Path) -> Path:
    numbered_workspace(root)
    decided = {1: ("notes.md exists", "The notes name the version"), 2: ("The notes are short",)}
    for folder in root.glob("iteration-1/*/*/run-*"):
        texts = decided[1 if "eval-1" in str(folder) else 2]
        put(folder / "grading.json", grading(*((text, "with_skill" in str(folder)) for text in texts)))
    return root


def test_a_flat_workspace_waits_for_check_with_everything_it_brought(parts: Parts, tmp_path: Path) -> None:
    accepted = grade(parts, flat_workspace(tmp_path / "notes-workspace"))

    found = runs(parts, accepted)
    assert [(run.case_label, run.configuration, run.role, run.run_number) for run in found] == [
        (label, arm, role, 1)
        for label in ("1", "2")
        for arm, role in (("with_skill", Role.TREATMENT), ("without_skill", Role.CONTROL))
    ]
    assert {(run.stage, run.entry) for run in found} == {(Stage.WAITING, Stage.CHECK)}
    brought = files(parts, found[0])
    assert brought["outputs/notes.md"] == b"with_skill 1\n" and brought["transcript.md"] == b"wrote notes.md\n"
    assert json.loads(brought["execution.json"])["runner"] == "given"
    assert found[0].facts is not None and (found[0].facts["tokens"], found[0].facts["seconds"]) == (1200, 3.0)


def test_without_a_suite_the_metadata_of_the_runs_is_the_suite(parts: Parts, tmp_path: Path) -> None:
    accepted = grade(parts, flat_workspace(tmp_path / "w"))

    batch = parts.desk.status(accepted.batch_id, "default").batch
    cases = [json.loads(body) for body in parts.store.teams.cases(batch.suite_id)]
    assert [case["id"] for case in cases] == [1, 2]
    assert [one["text"] for one in cases[0]["statements"]] == ["notes.md exists", "The notes name the version"]
    assert batch.setting("runner") == "given" and batch.setting("executor_model") is None


def test_an_earlier_grading_is_not_looked_at_when_runs_are_graded(parts: Parts, tmp_path: Path) -> None:
    accepted = grade(parts, graded_workspace(tmp_path / "w"))

    assert len(runs(parts, accepted)) == 8
    assert not any("grading.json" in files(parts, run) for run in runs(parts, accepted))


def test_files_about_the_run_that_lie_among_the_outputs_are_no_outputs(parts: Parts, tmp_path: Path) -> None:
    root = flat_workspace(tmp_path / "w")
    (root / "eval-1" / "with_skill" / "transcript.md").unlink()
    put(root / "eval-1" / "with_skill" / "outputs" / "transcript.md", "from the outputs")
    put(
        root / "eval-1" / "with_skill" / "outputs" / "metrics.json", {"tool_calls": {"Write": 1}, "total_tool_calls": 1}
    )

    brought = files(parts, runs(parts, grade(parts, root))[0])

    assert brought["transcript.md"] == b"from the outputs"
    assert {name for name in brought if name.startswith("outputs/")} == {"outputs/notes.md"}
    assert "metrics.json" in brought


def test_a_skill_without_files_is_a_version_that_all_such_batches_share(parts: Parts, tmp_path: Path) -> None:
    first = grade(parts, flat_workspace(tmp_path / "notes-workspace"))
    second = grade(parts, tmp_path / "notes-workspace")

    assert (first.version, second.version, first.iteration, second.iteration) == ("v0", "v0", 1, 2)
    (version,) = parts.store.teams.skill_versions(parts.store.teams.named("default").id, "notes")
    assert version.files == {} and "not known" in version.description


def test_a_skill_that_is_named_is_snapshot(parts: Parts, tmp_path: Path) -> None:
    put(tmp_path / "skill" / "SKILL.md", "---\nname: real\ndescription: d\n---\nText.\n")

    accepted = grade(parts, flat_workspace(tmp_path / "w"), skill=tmp_path / "skill")

    batch = parts.desk.status(accepted.batch_id, "default").batch
    assert parts.desk.skill_label(batch) == ("real", "v0")
    assert {run.skill_version_id for run in runs(parts, accepted)} == {batch.skill_version_id, None}


def test_a_third_configuration_comes_along_without_a_role(parts: Parts, tmp_path: Path) -> None:
    root = graded_workspace(tmp_path / "w")
    for number in (1, 2):
        folder = add_run(root / "iteration-1" / f"eval-{number}-case" / "zeta" / "run-1")
        put(folder / "grading.json", grading(("notes.md exists", True)))

    benchmark = finished(parts, take(parts, root))

    assert list(benchmark["run_summary"]) == ["with_skill", "without_skill", "zeta", "delta"]
    assert benchmark["run_summary"]["delta"]["pass_rate"] == "+1.00"


def test_roles_can_be_chosen_where_names_do_not_tell(parts: Parts, tmp_path: Path) -> None:
    root = tmp_path / "w"
    for arm in ("alpha", "beta"):
        put(add_run(root / "eval-1" / arm) / "grading.json", grading(("notes.md exists", arm == "beta")))

    benchmark = finished(parts, take(parts, root, treatment="beta", control="alpha"))

    assert benchmark["run_summary"]["delta"]["pass_rate"] == "+1.00"


def test_an_import_keeps_gradings_and_names_the_outcome_of_runs_without_one(parts: Parts, tmp_path: Path) -> None:
    root = graded_workspace(tmp_path / "w")
    given = root / "iteration-1" / "eval-1-case" / "with_skill" / "run-1" / "grading.json"
    (root / "iteration-1" / "eval-2-case" / "without_skill" / "run-2" / "grading.json").unlink()

    accepted = take(parts, root)

    found = runs(parts, accepted)
    assert [run.outcome for run in found].count(Outcome.SCORED) == 7
    assert [run.error for run in found if run.outcome is Outcome.JUDGE_ERROR] == ["grading.json is missing"]
    assert files(parts, found[0])["grading.json"] == given.read_bytes()
    benchmark = finished(parts, accepted)
    assert benchmark["coverage"]["outcomes"] == {"scored": 7, "gated": 0, "judge_error": 1}
    assert benchmark["metadata"]["provenance"]["runner"] == "given"
    assert benchmark["metadata"]["provenance"]["judge_model"] is None
    assert benchmark["run_summary"]["with_skill"]["pass_rate"]["mean"] == 1.0


def test_summaries_that_contradict_their_runs_are_warnings(parts: Parts, tmp_path: Path) -> None:
    root = graded_workspace(tmp_path / "w")
    wrong = grading(("notes.md exists", True), ("The notes name the version", True))
    wrong["summary"] |= {"passed": 1, "failed": 1, "pass_rate": 0.5}
    put(root / "iteration-1" / "eval-1-case" / "with_skill" / "run-1" / "grading.json", wrong)
    summary = {"with_skill": {"pass_rate": {"mean": 0.25}}, "without_skill": {"pass_rate": {"mean": 0.0}}}
    put(root / "iteration-1" / "benchmark.json", {"metadata": {"skill_name": "notes"}, "run_summary": summary})

    accepted = take(parts, root)

    messages = [finding.message for finding in accepted.findings]
    assert "benchmark.json says with_skill has a mean pass rate of 0.25; its runs give 1" in messages
    benchmark = finished(parts, accepted)
    assert benchmark["run_summary"]["with_skill"]["pass_rate"]["mean"] == 1.0
    assert any("summary says 1 of 2 passed, its list shows 2 of 2" in warning for warning in benchmark["warnings"])


def test_reviews_find_their_runs_by_the_names_the_viewer_gives_them(parts: Parts, tmp_path: Path) -> None:
    root = graded_workspace(tmp_path / "w")
    said = [
        {"run_id": "eval-1-case-with_skill-run-2", "feedback": "too long", "timestamp": "2026-01-02T03:04:05Z"},
        {"run_id": "eval-2-without_skill-run-1", "feedback": "good", "author": "ann", "timestamp": "nonsense"},
        {"run_id": "eval-1-case-with_skill-run-1", "feedback": "  "},
        {"run_id": "eval-9-with_skill-run-1", "feedback": "whose is this?"},
    ]
    put(root / "iteration-1" / "feedback.json", {"reviews": said, "status": "complete"})

    accepted = take(parts, root)

    document = parts.reviews.document(accepted.batch_id, is_ended=True)
    kept = {(one["run_id"], one["author"], one["feedback"]) for one in document["reviews"]}
    assert kept == {
        ("eval-1-with_skill-run-2", "imported", "too long"),
        ("eval-2-without_skill-run-1", "ann", "good"),
    }
    assert document["reviews"][0]["timestamp"] == "2026-01-02T03:04:05Z"
    assert any("runs that are not here: eval-9-with_skill-run-1" in finding.message for finding in accepted.findings)


def test_gradings_of_the_cases_dialect_come_in_without_outputs(parts: Parts, tmp_path: Path) -> None:
    for version, score in ((0, 2), (1, 5)):
        result = {"criterion": "clear", "score": score, "passed": score >= 3, "reasoning": "r"}
        body = {"case_id": "c", "version": version, "run": 1, "results": [result], "overall": "pass"}
        put(tmp_path / "w" / "grading" / f"c_v{version}_run1.json", body)

    accepted = take(parts, tmp_path / "w")

    found = [(run.configuration, run.role, run.outcome) for run in runs(parts, accepted)]
    assert found == [("v1", Role.TREATMENT, Outcome.SCORED), ("v0", Role.CONTROL, Outcome.SCORED)]
    assert finished(parts, accepted)["run_summary"]["delta"]["pass_rate"] == "+1.00"
    with pytest.raises(BadInput, match="nothing to grade"):
        grade(parts, tmp_path / "w")


def test_a_run_that_failed_before_stays_what_it_was(parts: Parts, tmp_path: Path) -> None:
    root = numbered_workspace(tmp_path / "w", 1)
    failed = root / "iteration-1" / "eval-1-case" / "with_skill" / "run-1"
    put(failed / "run.json", {"outcome": "timeout", "reason": "stopped after 600 s"})

    found = runs(parts, grade(parts, root))[0]

    assert (found.stage, found.outcome, found.error) == (Stage.SETTLED, Outcome.TIMEOUT, "stopped after 600 s")


def test_a_link_is_left_out_and_said(parts: Parts, tmp_path: Path) -> None:
    root = flat_workspace(tmp_path / "w")
    put(tmp_path / "secret.txt", "not yours")
    os.symlink(tmp_path / "secret.txt", root / "eval-1" / "with_skill" / "outputs" / "stolen.txt")

    accepted = grade(parts, root)

    assert not any(b"not yours" in data for run in runs(parts, accepted) for data in files(parts, run).values())
    assert any("outputs/stolen.txt is a link and was left out" in finding.message for finding in accepted.findings)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda root: put(root / "eval-1" / "with_skill" / "outputs" / "big", "x" * 10_001), "has 10001 bytes"),
        (
            lambda root: [put(root / "eval-1" / "with_skill" / "outputs" / f"{n}", "x") for n in range(6)],
            "more than 5 files",
        ),
        (lambda root: add_run(root / "eval-1" / ("c" * 41)), "cannot be a configuration"),
        (lambda root: add_run(root / "eval-1" / "with_skill" / "run-99999999"), "is no run number"),
        (lambda root: put(root / "evals.json", {"skill_name": "x", "evals": [{"id": 8, "prompt": "p"}]}), "no case of"),
        (lambda root: put(root / "evals.json", "{"), "the suite cannot be run"),
        (
            lambda root: [
                (root / "eval-1" / "with_skill" / "transcript.md").unlink(),
                (root / "eval-1" / "with_skill" / "outputs" / "notes.md").unlink(),
                (root / "eval-1" / "with_skill" / "outputs").rmdir(),
            ],
            "1 of 4 runs have neither outputs/ nor transcript.md: eval-1/with_skill",
        ),
    ],
)
def test_what_cannot_be_graded_is_refused_and_nothing_is_written(
    spoil: Any, words: str, parts: Parts, tmp_path: Path
) -> None:
    root = flat_workspace(tmp_path / "w")
    spoil(root)

    with pytest.raises(BadInput, match=words):
        grade(parts, root)

    assert parts.desk.list("default") == []


@pytest.mark.parametrize(("made", "words"), [(False, "is not a folder"), (True, "no runs in")])
def test_a_folder_without_runs_is_refused(made: bool, words: str, parts: Parts, tmp_path: Path) -> None:
    if made:
        (tmp_path / "w").mkdir()

    for door in (grade, take):
        with pytest.raises(BadInput, match=words):
            door(parts, tmp_path / "w")


def test_runs_without_any_expectation_cannot_be_graded(parts: Parts, tmp_path: Path) -> None:
    add_run(tmp_path / "w" / "eval-1" / "with_skill")

    with pytest.raises(BadInput, match=r"nothing to grade .* against: .* --evals"):
        grade(parts, tmp_path / "w")


def test_the_suite_that_is_named_goes_before_the_folders_own(parts: Parts, tmp_path: Path) -> None:
    root = numbered_workspace(tmp_path / "w", 1)
    other = {**SKILL_CREATOR_SUITE, "skill_name": "other"}
    named = put(tmp_path / "other.json", other)

    accepted = grade(parts, root, evals=named)

    batch = parts.desk.status(accepted.batch_id, "default").batch
    suite = parts.store.teams.suite(batch.suite_id)
    assert suite is not None and parts.artifacts.get(suite["digest"]) == named.read_bytes()
    with pytest.raises(BadInput, match="cannot read"):
        grade(parts, root, evals=tmp_path / "none.json")


def test_the_model_of_the_runs_does_not_judge_them(parts: Parts, tmp_path: Path) -> None:
    root = flat_workspace(tmp_path / "w")
    put(root / "benchmark.json", {"metadata": {"executor_model": "m-1"}, "run_summary": {}})

    with pytest.raises(BadInput, match="m-1 would judge its own work"):
        grade(parts, root, settings={"judge_model": "m-1"})


def test_a_retry_grades_what_was_given_and_executes_nothing(parts: Parts, tmp_path: Path) -> None:
    root = graded_workspace(tmp_path / "w")
    run_folder = root / "iteration-1" / "eval-1-case" / "with_skill"
    (run_folder / "run-1" / "grading.json").unlink()
    put(run_folder / "run-2" / "run.json", {"outcome": "executor_error", "reason": "broke"})
    accepted = take(parts, root)
    finished(parts, accepted)

    assert parts.desk.retry(accepted.batch_id, "default") == 1
    again = [run for run in runs(parts, accepted) if run.stage is not Stage.SETTLED]
    assert [(run.run_number, run.entry) for run in again] == [(1, Stage.CHECK)]


def test_an_exported_review_goes_by_the_folder_of_its_run(parts: Parts, tmp_path: Path) -> None:
    root = tmp_path / "w" / "iteration-1"
    named = [{"id": 1, "name": "Extract: tables & text!"}, {"id": 2}, {"id": "Odd / one"}]
    evals = [{**case, "prompt": "Do it.", "structural_expectations": []} for case in named]
    put(root / "evals.json", {"skill_name": "notes", "evals": evals})
    for folder in ("eval-1", "eval-2", "eval-Odd-one"):
        for number in (1, 2):
            add_run(root / folder / "with_skill" / f"run-{number}")
            put(root / folder / "with_skill" / f"run-{number}" / "grading.json", grading(("It is done", True)))
    accepted = take(parts, root, evals=root / "evals.json")
    finished(parts, accepted)
    for run in runs(parts, accepted):
        parts.reviews.put(run.id, accepted.batch_id, "ann", "good")
    parts.reviews.put(runs(parts, accepted)[0].id, accepted.batch_id, "bob", "too long")

    with zipfile.ZipFile(io.BytesIO(exported(parts, accepted))) as archive:
        paths = [Path(name) for name in archive.namelist()]
        said = json.loads(archive.read("iteration-1/feedback.json"))["reviews"]

    folders = {"-".join(path.parts[1:-1]) for path in paths if path.name == "run.json"}
    assert {review["run_id"] for review in said} == folders
    assert len(said) == len(folders) == 6
    assert (said[0]["feedback"], said[0]["author"]) == ("ann: good\n\nbob: too long", "ann, bob")


def exported(parts: Parts, accepted: Accepted) -> bytes:
    out = io.BytesIO()
    parts.results.export(accepted.batch_id, "default", out)
    return out.getvalue()


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_what_no_database_keeps_is_made_keepable(database: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    url = request.getfixturevalue("postgres_url") if database == "postgresql" else None
    parts = make_parts(tmp_path, url)
    root = graded_workspace(tmp_path / "w")
    odd = root / "iteration-1" / "eval-1-case" / "with_skill" / "run-1"
    put(odd / "run.json", '{"outcome": "timeout", "reason": "a\\u0000b", "cost_usd": Infinity}')
    said = [{"run_id": "eval-1-case-with_skill-run-2", "feedback": "a\0b\ud800", "author": "\0"}]
    put(root / "iteration-1" / "feedback.json", {"reviews": said})

    accepted = take(parts, root)

    found = runs(parts, accepted)[0]
    assert (found.outcome, found.error) == (Outcome.TIMEOUT, "a\ufffdb")
    assert found.facts is not None and found.facts["cost_usd"] is None
    (review,) = parts.reviews.document(accepted.batch_id, is_ended=True)["reviews"]
    assert review["feedback"] == "a\ufffdb?"
    finished(parts, accepted)
    parts.close()


def test_metadata_can_name_a_case_whose_folder_does_not(parts: Parts, tmp_path: Path) -> None:
    root = tmp_path / "w"
    put(add_run(root / "a-descriptive-name" / "with_skill") / "eval_metadata.json", metadata(2))
    put(root / "evals.json", SKILL_CREATOR_SUITE)

    accepted = grade(parts, root)

    assert [run.case_label for run in runs(parts, accepted)] == ["2"]
    assert any(finding.code == "case_without_runs" for finding in accepted.findings)
