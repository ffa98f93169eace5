"""Suites and cases as objects: what all dialects' evals have in common."""

import hashlib
import re
from typing import Any

from pydantic import JsonValue

from schemas.base import CaseId
from schemas.dialects import wild
from schemas.dialects.case_rules import look_at_case
from schemas.dialects.codecs import ID, TEXT, TEXTS, ListOf
from schemas.dialects.expectations import Mixed
from schemas.dialects.place import Place
from schemas.dialects.shape import Key, Shape
from schemas.findings import Level
from schemas.suite import Case, Suite

ID_KEY = Key("id", ID, needed=True, on_bad=Level.ERROR, aliases=wild.CASE_ID, about="unique in the suite")
PROMPT_KEY = Key("prompt", TEXT, needed=True, on_bad=Level.ERROR, aliases=wild.PROMPT, about="the task to execute")
NAME_KEY = Key("name", TEXT, aliases=wild.CASE_NAME, about="human-readable name")
EXPECTED_KEY = Key("expected_output", TEXT, about="what success looks like, for people and for the judge")


def files_key(about: str) -> Key:
    """Input files; dialects differ in what the paths are relative to."""
    return Key("files", TEXTS, on_bad=Level.ERROR, aliases=wild.CASE_FILES, about=about)


class CaseShape(Shape):
    """One case: its expectations may be of several kinds, its id may be missing."""

    def _wanted(self, name: str, value: dict[str, JsonValue], place: Place) -> Key | None:
        # One text says what is expected, a list says what to check.
        if name == "expected_behavior" and isinstance(value[name], str) and "expected_output" not in value:
            place.at(name).note("renamed", "read as expected_output")
            return self.key("expected_output")
        return super()._wanted(name, value, place)

    def two_spellings(self, name: str, winner: str, value: dict[str, JsonValue], place: Place) -> None:
        if name == "assertions" and winner == "expectations" and value[name] != value[winner]:
            place.at(name).error("two_lists", "differs from expectations, which is there too; keep one of them")
        else:
            super().two_spellings(name, winner, value, place)

    def settle(self, fields: dict[str, Any], value: dict[str, JsonValue], place: Place) -> None:
        _spread(fields)
        if isinstance(fields.get("prompt"), str) and not fields["prompt"].strip():
            place.at("prompt").error("missing_prompt", "the prompt is empty")
        if "id" not in fields and "id" not in fields["extra"] and "prompt" in fields:
            fields["id"] = _made_id(fields)
            place.note("generated_id", "has no id; one was made from its name or prompt")
        for name in wild.UNCHECKED:
            if value.get(name):
                place.at(name).note("unchecked", "kept, but nothing here checks it")
        look_at_case(fields, place)


def _spread(fields: dict[str, Any]) -> None:
    """Lay the items of a mixed list into the fields they belong to, behind those of the fields' own keys."""
    for mixed in [value for value in fields.values() if isinstance(value, Mixed)]:
        for name in ("statements", "structural", "criteria"):
            own = fields.get(name, ())
            fields[name] = (*(() if isinstance(own, Mixed) else own), *getattr(mixed, name))


def _made_id(fields: dict[str, Any]) -> str:
    """An id that stays the same when other cases come, go or move."""
    slug = re.sub(r"[^a-z0-9]+", "-", str(fields.get("name") or "").lower()).strip("-")
    return slug or "case-" + hashlib.sha256(fields["prompt"].encode()).hexdigest()[:8]


class SuiteShape(Shape):
    """A whole suite: ids are told apart here."""

    def settle(self, fields: dict[str, Any], value: dict[str, JsonValue], place: Place) -> None:
        if "cases" in fields:
            spelled = next(name for name in value if self._by_name.get(name) is self._cases_key())
            fields["cases"] = with_ids_apart(fields["cases"], place.at(spelled))

    def _cases_key(self) -> Key:
        return next(key for key in self.keys if key.into == "cases")

    def holds_cases(self, value: dict[str, JsonValue]) -> bool:
        """Whether the object has a list of cases under one of its names."""
        key = self._cases_key()
        return any(name in value for name in (key.name, *key.aliases))

    def read_list(self, value: list[JsonValue], place: Place) -> Suite:
        """A suite that is nothing but its cases."""
        place.note("bare_list", "a bare list of cases; there is no skill_name")
        return Suite(cases=with_ids_apart(self._cases_key().codec.read(value, place), place))

    def read_one(self, value: dict[str, JsonValue], place: Place) -> Suite:
        """A suite that is nothing but one case."""
        codec = self._cases_key().codec
        assert isinstance(codec, ListOf)
        place.note("one_case", "one case, without a suite around it")
        return Suite(cases=(codec.item.read(value, place),))


def with_ids_apart(cases: tuple[Case, ...], place: Place) -> tuple[Case, ...]:
    """The cases with made-up ids changed where two are alike; ids people gave must differ."""
    seen: dict[CaseId, int] = {}
    apart: list[Case] = []
    if not cases:
        place.warn("no_cases", "no cases: there is nothing to run")
    for index, case in enumerate(cases):
        unique = case if _has_own_id(case) else case.model_copy(update={"id": _free(str(case.id), seen)})
        # Python takes 1 and True and 1.0 for equal, but ids are int or str only, so the dict tells them apart.
        if unique.id in seen:
            place.at(index).at("id").error("duplicate_id", f"{unique.id!r} is also the id of case {seen[unique.id]}")
        seen.setdefault(unique.id, index)
        apart.append(unique)
    return tuple(apart)


def _has_own_id(case: Case) -> bool:
    return bool({"id", *wild.CASE_ID} & set(case.keys) - set(case.nulls) - set(case.extra))


def _free(wanted: str, taken: dict[CaseId, int]) -> str:
    number = 2
    free = wanted
    while free in taken:
        free, number = f"{wanted}-{number}", number + 1
    return free
