"""Which case of a suite the folders of a workspace belong to: by id with its JSON type, else by label."""

from collections.abc import Sequence
from dataclasses import dataclass

from schemas.base import CaseId
from schemas.eval_metadata import EvalMetadata
from schemas.findings import Finding, Level
from schemas.suite import Case
from service.errors import BadInput
from service.workspaces.exporting import case_folder, safe_name
from service.workspaces.reading import case_facts

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FolderCase:
    """What a folder says about the case whose runs it holds."""

    folder: str
    id: CaseId
    metadata: EvalMetadata | None = None

    @property
    def labels(self) -> set[str]:
        """Everything people may call it."""
        name = self.metadata.eval_name if self.metadata else None
        plain = {self.folder, self.folder.removeprefix("eval-"), str(self.id)}
        return plain | ({name} if name else set())


def match_cases(folders: Sequence[FolderCase], cases: Sequence[Case]) -> tuple[dict[str, int], list[Finding]]:
    """folder -> position of its case; raises BadInput for a folder without a case, and for two with the same one."""
    found = {folder.folder: position_of(folder, cases) for folder in folders}
    lost = [name for name, position in found.items() if position is None]
    if lost:
        known = ", ".join(str(case.id) for case in cases[:_SHOWN]) + (", ..." if len(cases) > _SHOWN else "")
        raise BadInput(
            f"no case of the suite belongs to {_some(lost)}; the suite has {known}: "
            "name the suite of these runs with --evals, or give the folders an eval_metadata.json with their eval_id"
        )
    matched = {name: position for name, position in found.items() if position is not None}
    _refuse_twins(matched, cases)
    return matched, _remarks(folders, matched, cases)


def position_of(folder: FolderCase, cases: Sequence[Case]) -> int | None:
    """The position of the folder's case; a label that fits several cases fits none."""
    for position, case in enumerate(cases):
        if same_id(case.id, folder.id):
            return position
    fitting = [position for position, case in enumerate(cases) if _labels(case) & folder.labels]
    return fitting[0] if len(fitting) == 1 else None


def same_id(one: CaseId, other: CaseId) -> bool:
    """1 and "1" are different cases."""
    return type(one) is type(other) and one == other


def _labels(case: Case) -> set[str]:
    names = {str(case.id), safe_name(str(case.id)), case_folder(case_facts(case))}
    return names | ({case.name, safe_name(case.name).lower()} if case.name else set())


def _refuse_twins(matched: dict[str, int], cases: Sequence[Case]) -> None:
    by_case: dict[int, list[str]] = {}
    for name, position in matched.items():
        by_case.setdefault(position, []).append(name)
    for position, names in by_case.items():
        if len(names) > 1:
            raise BadInput(
                f"the folders {_some(names)} all hold runs of case {cases[position].id!r}; "
                "move all but one away, or tell them apart by the eval_id in their eval_metadata.json"
            )


def _remarks(folders: Sequence[FolderCase], matched: dict[str, int], cases: Sequence[Case]) -> list[Finding]:
    found = [
        Finding(level=Level.WARNING, path=folder.folder, message=message, code="prompt_differs")
        for folder in folders
        if (message := _other_prompt(folder, cases[matched[folder.folder]]))
    ]
    missing = [str(case.id) for position, case in enumerate(cases) if position not in matched.values()]
    if missing:
        message = f"there are no runs of {len(missing)} of {len(cases)} cases: {_some(missing)}"
        found.append(Finding(level=Level.WARNING, path="", message=message, code="case_without_runs"))
    return found


def _other_prompt(folder: FolderCase, case: Case) -> str | None:
    said = folder.metadata.prompt if folder.metadata else None
    if not said or said.split() == case.prompt.split():
        return None
    return f"these runs were given another prompt than case {case.id!r} has; is it the same case?"


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
