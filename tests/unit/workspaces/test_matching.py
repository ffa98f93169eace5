"""Which case a folder belongs to."""

import pytest

from schemas.eval_metadata import EvalMetadata
from schemas.suite import Case
from service.errors import BadInput
from service.workspaces.matching import FolderCase, match_cases


def case(id_: int | str, name: str | None = None) -> Case:
    return Case(id=id_, prompt=f"prompt {id_}", name=name)


def positions(folders: list[FolderCase], *cases: Case) -> dict[str, int]:
    return match_cases(folders, cases)[0]


def test_an_id_matches_with_its_json_type() -> None:
    folders = [FolderCase("eval-a", 1), FolderCase("eval-b", "1")]

    assert positions(folders, case("1"), case(1)) == {"eval-a": 1, "eval-b": 0}


def test_without_the_id_of_that_type_the_label_decides() -> None:
    assert positions([FolderCase("eval-1-first", 1)], case("1"), case("2")) == {"eval-1-first": 0}


@pytest.mark.parametrize(
    ("folder", "wanted"),
    [
        (FolderCase("eval-empty-input", "eval-empty-input"), case("empty-input")),
        (FolderCase("eval-odd-name", "eval-odd-name"), case("odd / name")),
        (FolderCase("descriptive-name", "descriptive-name"), case(7, "descriptive-name")),
        (FolderCase("eval-x", "eval-x", EvalMetadata(eval_name="The Long One")), case(3, "The Long One")),
    ],
)
def test_a_folder_is_found_by_what_people_call_its_case(folder: FolderCase, wanted: Case) -> None:
    assert positions([folder], case(1), wanted) == {folder.folder: 1}


def test_a_label_that_fits_two_cases_fits_none() -> None:
    with pytest.raises(BadInput, match="no case of the suite belongs to eval-x"):
        positions([FolderCase("eval-x", "eval-x", EvalMetadata(eval_name="same"))], case(1, "same"), case(2, "same"))


def test_folders_without_a_case_are_all_named_with_the_remedy() -> None:
    with pytest.raises(BadInput, match=r"belongs to eval-8, eval-9; the suite has 1: name the suite .* --evals"):
        positions([FolderCase("eval-8", 8), FolderCase("eval-9", 9)], case(1))


def test_two_folders_of_one_case_are_refused() -> None:
    with pytest.raises(BadInput, match="eval-1, eval-1-copy all hold runs of case 1"):
        positions([FolderCase("eval-1", 1), FolderCase("eval-1-copy", "1")], case(1))


def test_a_case_without_runs_and_another_prompt_are_remarked() -> None:
    folders = [FolderCase("eval-1", 1, EvalMetadata(prompt="something else")), FolderCase("eval-2", 2)]

    _, findings = match_cases(folders, [case(1), case(2), case(3)])

    assert [(finding.code, finding.path) for finding in findings] == [
        ("prompt_differs", "eval-1"),
        ("case_without_runs", ""),
    ]
    assert "1 of 3 cases: 3" in findings[1].message


def test_the_same_prompt_with_other_spaces_is_the_same() -> None:
    _, findings = match_cases([FolderCase("eval-1", 1, EvalMetadata(prompt=" prompt\n1 "))], [case(1)])

    assert findings == []
