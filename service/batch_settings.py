"""What a batch uses, and who said so: the submit, then the suite, then the installation, then our default."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from schemas.suite import EvalConfig
from service.errors import BadInput
from service.settings import Settings

# Settings that a submit may give, in the order shown to people.
NAMES = (
    "runs_per_eval",
    "baseline_comparison",
    "structural_gate",
    "runner",
    "command",
    "executor_model",
    "judge_model",
    "judge_models",
    "judging",
    "allow_self_judge",
    "rejudge_share",
    "analyst",
    "max_cost_usd",
    "max_tokens",
    "execute_timeout_seconds",
)
RUNNERS = ("command", "messages", "claude_code")
# What stands in the place of a runner where runs were given, not executed; nobody can ask for it.
GIVEN = "given"
# Kept with the settings though nobody can ask for it: the skill's folder as the submit named it, for the record.
SKILL_PATH = "skill_path"
_DATE = re.compile(r"[-@]20\d{6}$|-latest$")
_FROM_SUITE = ("runs_per_eval", "structural_gate", "judge_model", "baseline_comparison")


def resolve(given: Mapping[str, Any], config: EvalConfig | None, installation: Settings) -> dict[str, dict[str, Any]]:
    """name -> {value, source} for every setting of a batch; unknown or impossible ones are refused."""
    unknown = sorted(set(given) - set(NAMES))
    if unknown:
        raise BadInput(f"unknown setting {unknown[0]!r}; a batch knows {', '.join(NAMES)}")
    resolved = {name: _one(name, given, config, installation) for name in NAMES}
    _check(resolved, installation)
    _refuse_scattered_budget(resolved, installation)
    resolved["command"]["value"] = _words(resolved["command"]["value"])
    if resolved["runner"]["value"] is None:
        resolved["runner"]["value"] = "command" if resolved["command"]["value"] else "messages"
    _refuse_impossible({name: entry["value"] for name, entry in resolved.items()})
    return resolved


def _refuse_scattered_budget(resolved: Mapping[str, Mapping[str, Any]], installation: Settings) -> None:
    for name in ("max_cost_usd", "max_tokens"):
        if resolved[name]["value"] and installation.scatters_limits:
            words = "every worker process would spend it anew; set ASSAY_LIMITS_URL to a Redis for the whole fleet"
            raise BadInput(f"{name} cannot be kept here: {words}")


def resolve_given(
    said: Mapping[str, Any], config: EvalConfig | None, installation: Settings, fixed: Mapping[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """The settings of a batch whose runs are given: `fixed` says what is known of their execution, and who says so."""
    resolved = {name: _one(name, said, config, installation) for name in NAMES}
    unknown = {"value": None, "source": "default"}
    resolved |= {"command": unknown, "executor_model": unknown, **fixed}
    _check({name: entry for name, entry in resolved.items() if name not in fixed}, installation)
    resolved["runner"] = {"value": GIVEN, "source": "submit"}
    _refuse_own_judge({name: entry["value"] for name, entry in resolved.items()})
    return resolved


def asked_models(values: Mapping[str, Any]) -> list[str]:
    """The models that a batch with these settings asks."""
    judges = values["judge_models"] or [values["judge_model"]]
    return [model for model in (values["executor_model"], *judges) if model]


def models_to_ask(said: Mapping[str, Any], config: EvalConfig | None, installation: Settings) -> list[str]:
    """The models that a batch would ask, whoever named them."""
    names = ("executor_model", "judge_model", "judge_models")
    return asked_models({name: _one(name, said, config, installation)["value"] for name in names})


def is_given(settings: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether the runs of a batch with these settings were given."""
    return settings.get("runner", {}).get("value") == GIVEN


def _one(name: str, given: Mapping[str, Any], config: EvalConfig | None, installation: Settings) -> dict[str, Any]:
    if given.get(name) is not None:
        return {"value": given[name], "source": "submit"}
    asked = getattr(config, name) if config is not None and name in _FROM_SUITE else None
    if asked is not None:
        return {"value": asked, "source": "suite"}
    source = "installation" if name in installation.model_fields_set else "default"
    return {"value": getattr(installation, name), "source": source}


def _check(resolved: dict[str, dict[str, Any]], installation: Settings) -> None:
    """The installation's own rules hold for whoever said it."""
    for name, entry in resolved.items():
        if entry["source"] in ("submit", "suite"):
            probe = (
                entry["value"] if name != "command" or isinstance(entry["value"], str) else shlex.join(entry["value"])
            )
            try:
                type(installation).model_validate({**installation.model_dump(), name: probe})
            except ValueError as error:
                words = str(error).splitlines()[2].split("[type=")[0].strip().lower()
                raise BadInput(f"{name} (from the {entry['source']}) is {entry['value']!r}: {words}") from error


def _refuse_impossible(values: Mapping[str, Any]) -> None:
    if values["runner"] not in RUNNERS:
        raise BadInput(f"there is no runner {values['runner']!r}; known runners: {', '.join(RUNNERS)}")
    if values["runner"] == "command" and not values["command"]:
        raise BadInput("the command runner needs a program; pass --command, or choose --runner messages with a model")
    if values["runner"] != "command" and not values["executor_model"]:
        raise BadInput(f"the {values['runner']} runner needs a model; pass --model, or a program with --command")
    _refuse_own_judge(values)


def _refuse_own_judge(values: Mapping[str, Any]) -> None:
    judges = values["judge_models"] or [values["judge_model"]]
    refuse_self_judge(values["executor_model"], judges, values["allow_self_judge"])


def refuse_self_judge(executor_model: str | None, judge_models: Sequence[str | None], allow_self_judge: bool) -> None:
    """A model must not grade its own work unless somebody wanted that."""
    judges = {undated(judge) for judge in judge_models if judge}
    if executor_model and undated(executor_model) in judges and not allow_self_judge:
        raise BadInput(
            f"{executor_model} would judge its own work; choose another judge_model or set allow_self_judge: true"
        )


def refuse_command(said: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """A command from afar must be one that the operator named, whole, or a program in a folder that he named."""
    words = _words(said.get("command"))
    if not words or "*" in allowed or words in [_words(one) for one in allowed]:
        return
    folders = tuple(one for one in allowed if one.endswith("/"))
    named = [words[0], *(word for word in words[1:] if word.startswith("/"))]
    if not all(word.startswith(folders) and ".." not in PurePosixPath(word).parts for word in named):
        words_said = shlex.join(words)[:200]
        raise BadInput(f"the command {words_said!r} is not allowed here; ask the operator to add it to ASSAY_COMMANDS")


def undated(model: str) -> str:
    """A model's name without the date of its snapshot: claude-sonnet-4-5-20250929 and claude-sonnet-4-5 are one."""
    return _DATE.sub("", model)


def _words(command: Any) -> list[str] | None:
    if command is None or isinstance(command, list):
        return command
    try:
        return shlex.split(command)
    except ValueError as error:
        raise BadInput(f"the command {command!r} cannot be split into words: {error}") from error
