"""Suites in the words of another dialect."""

import re
from pathlib import PurePosixPath
from typing import Final

from schemas.conversion.losses import Losses
from schemas.kinds import Dialect
from schemas.suite import Case, Criterion, Dimension, Statement, StructuralExpectation, Suite

_SCHEMA_VERSION: Final = "1.0"


def convert_suite(suite: Suite, to: Dialect, losses: Losses) -> Suite:
    """The suite with what the target has no word for said in its words."""
    named = _for_cases(suite, losses) if to is Dialect.CASES else _for_skills(suite, losses)
    changed = [_case(case, to, f"cases[{index}]", losses) for index, case in enumerate(suite.cases)]
    return named.model_copy(update={"cases": tuple(changed)})


def _for_cases(suite: Suite, losses: Losses) -> Suite:
    path = suite.skill_path or suite.skill_name
    if suite.skill_path is None and suite.skill_name is not None:
        losses.say("skill_name", "written as skill, which is a path: check it")
    version = suite.schema_version or _SCHEMA_VERSION
    return suite.model_copy(update={"skill_path": path, "skill_name": None, "schema_version": version})


def _for_skills(suite: Suite, losses: Losses) -> Suite:
    name = suite.skill_name
    if name is None and suite.skill_path is not None:
        name = PurePosixPath(suite.skill_path).name or None
        losses.say("skill_path", "only its last part is kept, as skill_name")
    elif suite.skill_path is not None:
        losses.drop("skill_path", "skill_path")
    # Which version of the schema it followed means nothing in another schema.
    return suite.model_copy(update={"skill_name": name, "skill_path": None, "schema_version": None})


def _case(case: Case, to: Dialect, path: str, losses: Losses) -> Case:
    if to is Dialect.CASES:
        return _with_criteria_only(case, path, losses)
    if case.criteria:
        losses.say(f"{path}.criteria", "criteria become statements: passed or not, no score, none optional")
    statements = (*(_bare(one, path, losses) for one in case.statements), *map(_from_criterion, case.criteria))
    changed = case.model_copy(update={"statements": statements, "criteria": ()})
    return changed if to is Dialect.SKILL_EVALUATOR else _without_structural(changed, path, losses)


def _bare(statement: Statement, path: str, losses: Losses) -> Statement:
    """A statement as the one text it is in these dialects."""
    if statement.id is not None or statement.extra:
        losses.say(f"{path}.statements", "statements are texts: their ids and other keys are lost", "lost")
    return Statement(text=statement.text)


def _from_criterion(criterion: Criterion) -> Statement:
    return Statement(
        text=f"{criterion.criterion}: {criterion.description}" if criterion.description else criterion.criterion
    )


def _without_structural(case: Case, path: str, losses: Losses) -> Case:
    if not case.structural:
        return case
    losses.say(f"{path}.structural", "structural expectations become statements: the judge decides, nothing gates")
    statements = (*case.statements, *(Statement(text=_sentence(one)) for one in case.structural))
    return case.model_copy(update={"statements": statements, "structural": ()})


def _sentence(structural: StructuralExpectation) -> str:
    if structural.description:
        return structural.description
    params = ", ".join(f"{name} {value}" for name, value in structural.params.items())
    return f"{structural.type}: {params}" if params else structural.type


def _with_criteria_only(case: Case, path: str, losses: Losses) -> Case:
    """Everything the case asks for as criteria."""
    if case.statements:
        losses.say(f"{path}.statements", "statements become required criteria, scored 1-5")
    if case.structural:
        losses.say(f"{path}.structural", "structural expectations become criteria: the judge decides, nothing gates")
    if case.rubric is not None:
        losses.say(f"{path}.rubric", "dimensions become optional criteria: weights and anchors are lost", "lost")
    if case.files:
        losses.say(f"{path}.files", "paths are relative to the workspace there, to the skill here: check them")
    asked = [
        *case.criteria,
        *(Criterion(criterion=_label(one.text), description=one.text, required=True) for one in case.statements),
        *(
            Criterion(criterion=one.id, description=_sentence(one), required=bool(one.critical))
            for one in case.structural
        ),
        *(_from_dimension(one) for one in (case.rubric.dimensions if case.rubric else ())),
    ]
    return case.model_copy(update={"criteria": _apart(asked), "statements": (), "structural": (), "rubric": None})


def _from_dimension(dimension: Dimension) -> Criterion:
    return Criterion(criterion=dimension.name, description=dimension.description, required=False)


def _label(text: str) -> str:
    """A short name from the first words of a sentence."""
    return "-".join(re.findall(r"[a-z0-9]+", text.lower())[:5]) or "statement"


def _apart(criteria: list[Criterion]) -> tuple[Criterion, ...]:
    """The same criteria under different names."""
    taken: set[str] = set()
    apart: list[Criterion] = []
    for criterion in criteria:
        name, number = criterion.criterion, 2
        while name in taken:
            name, number = f"{criterion.criterion}-{number}", number + 1
        taken.add(name)
        apart.append(criterion.model_copy(update={"criterion": name}))
    return tuple(apart)
