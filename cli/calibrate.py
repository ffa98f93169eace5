"""`assay calibrate`: how far the judge can be trusted, by people's labels."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.errors import BadInput, CannotDecide, NotFound

if TYPE_CHECKING:
    from service.judging.calibration import Calibration, CorrectedRate, Label

EXAMPLES = """
LABELS.json is a list of {"human": true, "judge": false}, or of {"human": true, "grading": "run-1/grading.json",
"text": "The output names John Smith"}: then the judge's word is looked up in that grading. Paths are relative to the
file.

Examples:

  assay calibrate labels.json

  assay calibrate labels.json --pass-rate 0.82 --of 300
"""
_MAX_BYTES = 50_000_000


def calibrate(
    labels: Annotated[Path, typer.Argument(metavar="LABELS.json", help="What people decided.")],
    pass_rate: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="A pass rate to be corrected.")] = None,
    of: Annotated[int | None, typer.Option(min=1, help="Over how many statements that rate was seen.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare the judge with people's labels and free a pass rate of its errors.

    Exit code 0: the judge is usable. 2: it is hardly better than a coin.
    """
    from service.judging.calibration import calibrate as compare
    from service.judging.calibration import corrected_rate

    if (pass_rate is None) != (of is None):
        raise BadInput("--pass-rate and --of belong together: a rate, and over how many statements it was seen")
    known = _labels(labels)
    found = compare(known)
    observed = sum(label.judge for label in known) / len(known) if pass_rate is None else pass_rate
    rate = corrected_rate(observed, of or len(known), found) if found.is_usable else None
    print(json.dumps(_as_object(found, rate), indent=2) if as_json else "\n".join(_lines(found, rate)))
    if rate is None:
        raise CannotDecide("the judge is hardly better than a coin on these labels; use another or sharper statements")


def _labels(path: Path) -> list["Label"]:
    entries = _read(path)
    if isinstance(entries, dict):
        entries = entries.get("labels")
    if not isinstance(entries, list) or not entries:
        raise BadInput(f"{path} holds no labels; it is a list of objects with human and judge, or grading and text")
    return [_label(entry, path, f"{path}[{index}]") for index, entry in enumerate(entries)]


def _label(entry: Any, path: Path, place: str) -> "Label":
    from service.judging.calibration import Label

    if not isinstance(entry, dict) or not isinstance(entry.get("human"), bool):
        raise BadInput(f"{place} has no `human` that is true or false")
    if isinstance(entry.get("judge"), bool):
        return Label(entry["human"], entry["judge"])
    if isinstance(entry.get("grading"), str) and isinstance(entry.get("text"), str):
        return Label(entry["human"], _judged(path.parent / entry["grading"], entry["text"], place))
    raise BadInput(f"{place} says nothing of the judge; give `judge`, or `grading` and `text`")


def _judged(path: Path, text: str, place: str) -> bool:
    """What the judge said of a statement in a grading."""
    from schemas.dialects import read
    from schemas.grading import Grading

    document = read(_bytes(path)).document
    if not isinstance(document, Grading):
        raise BadInput(f"{place}: {path} is no grading that can be read")
    said = [(one.text, one.passed) for one in document.expectations or ()]
    said += [(one.criterion, one.passed) for one in document.results or ()]
    for known, passed in said:
        if known == text and passed is not None:
            return passed
    raise BadInput(f"{place}: {path} decides nothing with the text {text[:80]!r}")


def _read(path: Path) -> Any:
    try:
        return json.loads(_bytes(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path} is no JSON: {error}") from error


def _bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise NotFound(f"cannot read {path}: {error.strerror}") from error
    if len(data) > _MAX_BYTES:
        raise BadInput(f"{path} is larger than {_MAX_BYTES >> 20} MB")
    return data


def _as_object(found: "Calibration", rate: "CorrectedRate | None") -> dict[str, Any]:
    own = {**asdict(found), "informedness": found.informedness, "usable": found.is_usable}
    return {**own, "pass_rate": asdict(rate) if rate else None}


def _lines(found: "Calibration", rate: "CorrectedRate | None") -> list[str]:
    counts = f"{found.labels} labels: people passed {found.human_passes} and failed {found.human_fails}"
    lines = [
        counts,
        f"  sensitivity {found.sensitivity:.2f}   of what people passed, the judge passed",
        f"  specificity {found.specificity:.2f}   of what people failed, the judge failed",
        f"  agreement   {found.agreement:.2f}   kappa {_number(found.kappa)}, Gwet's AC1 {_number(found.gwet_ac1)}",
    ]
    if rate:
        span = f"{rate.low:.2f} to {rate.high:.2f}"
        lines.append(f"  pass rate   {rate.observed:.2f} as judged, {rate.corrected:.2f} corrected (95 %: {span})")
    return lines


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2f}"
