"""The description of the API says everything a client needs: examples, problems, and who may ask."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012
from starlette.requests import Request

from api.app import create_app
from api.documents import BatchSettings
from api.downloads import content
from service.batch_settings import NAMES
from service.bootstrap import Parts
from service.settings import Settings

OPEN_TO_ALL = {"/healthz", "/readyz"}


@pytest.fixture(scope="module")
def description(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    parts = Parts(Settings(data=Path(tmp_path_factory.mktemp("api"))))
    described: dict[str, Any] = create_app(parts).openapi()
    parts.close()
    return described


def operations(description: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(path, verb, one) for path, verbs in description["paths"].items() for verb, one in verbs.items()]


def test_every_operation_has_an_example_of_its_answer(description: dict[str, Any]) -> None:
    silent = [
        f"{verb} {path}"
        for path, verb, one in operations(description)
        if not any(_has_example(description, answer) for code, answer in one["responses"].items() if code[0] == "2")
    ]

    assert silent == []


@pytest.mark.parametrize("name", ["a.md", "a.json", "a.png", "a.jpeg", "a.gif", "a.webp", "a.html", "a"])
def test_a_file_of_a_run_is_of_no_type_that_is_not_described(description: dict[str, Any], name: str) -> None:
    answer = content(Request({"type": "http", "headers": []}), b"{}", name, "x")

    described = description["paths"]["/v1/runs/{run_id}/artifacts/{name}"]["get"]["responses"]["200"]["content"]
    assert str(answer.media_type).partition(";")[0] in described


def _has_example(description: dict[str, Any], answer: dict[str, Any]) -> bool:
    content = answer.get("content")
    if not content:
        return answer["description"] == "Successful Response"
    return all("example" in one or _schema_has_example(description, one["schema"]) for one in content.values())


def _schema_has_example(description: dict[str, Any], schema: dict[str, Any]) -> bool:
    if "anyOf" in schema:
        return all(_schema_has_example(description, one) for one in schema["anyOf"])
    name = schema.get("$ref", "").rpartition("/")[2]
    return "examples" in description["components"]["schemas"].get(name, {})


def test_every_operation_says_in_a_sentence_what_it_does(description: dict[str, Any]) -> None:
    assert [f"{verb} {path}" for path, verb, one in operations(description) if not one.get("description")] == []


def test_every_operation_but_health_needs_a_token(description: dict[str, Any]) -> None:
    without = {path for path, _verb, one in operations(description) if not one.get("security")}

    assert without == OPEN_TO_ALL


def test_every_problem_is_described_as_a_problem_document(description: dict[str, Any]) -> None:
    for path, verb, one in operations(description):
        for code, answer in one["responses"].items():
            if code[0] in "45" and (path, code) != ("/readyz", "503") and "content" in answer:
                assert list(answer["content"]) == ["application/problem+json"], f"{verb} {path} {code}"


def test_every_reference_leads_somewhere(description: dict[str, Any]) -> None:
    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [found for value in node.values() for found in references(value)]
        return [found for value in node for found in references(value)] if isinstance(node, list) else []

    known = description["components"]["schemas"]
    assert {name for name in references(description) if name.rpartition("/")[2] not in known} == set()


def test_everything_a_batch_may_set_can_be_sent_over_http() -> None:
    assert tuple(BatchSettings.model_fields) == NAMES


def given_examples(node: Any) -> list[tuple[dict[str, Any], Any]]:
    """(schema, example) wherever the description has both: models, bodies, answers, parameters."""
    if isinstance(node, list):
        return [found for value in node for found in given_examples(value)]
    if not isinstance(node, dict):
        return []
    own = [(node["schema"], node["example"])] if "schema" in node and "example" in node else []
    if isinstance(node.get("examples"), list):
        own += [({name: value for name, value in node.items() if name != "examples"}, one) for one in node["examples"]]
    return own + [found for name, value in node.items() if name != "examples" for found in given_examples(value)]


def test_every_example_is_what_its_own_schema_says(description: dict[str, Any]) -> None:
    # As it is served: whatever JSON changes on the way counts.
    served = json.loads(json.dumps(description))
    known = Resource.from_contents(served, default_specification=DRAFT202012)
    registry = Registry().with_resource("urn:description", known)

    def wrong(schema: dict[str, Any], example: Any) -> list[str]:
        absolute = json.loads(json.dumps(schema).replace('"#/', '"urn:description#/'))
        return [
            f"{error.json_path} {error.message}"
            for error in Draft202012Validator(absolute, registry=registry).iter_errors(example)
        ]

    found = given_examples(served)
    assert len(found) > 50
    assert [(one, errors) for one in found if (errors := wrong(*one))] == []
