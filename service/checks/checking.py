"""All structural expectations of one case, decided one by one, and the gate."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from schemas.checks import parse_check
from schemas.metrics import Metrics
from schemas.structural import CheckedExpectation, Structural, Summary
from schemas.suite import Case, StructuralExpectation
from service.checks.engine import Engine
from service.checks.evidence import capped, printable
from service.checks.scripts import Scripts
from service.checks.table import CHECKS
from service.checks.verdict import Given, Outputs, Undecided, Verdict
from service.errors import Unavailable
from service.sandbox.port import Sandbox
from service.sandbox.reader import CannotRead


@dataclass(frozen=True)
class Tools:
    """What checking needs: the engine, and a sandbox once a script comes; both are shared by all cases."""

    engine: Engine
    open_sandbox: Callable[[], Sandbox]  # called for every script; raises Unavailable with the reason
    work: Path | None = None  # where copies of outputs are made; the system's temporary folder by default


def check(
    case: Case,
    outputs: Outputs,
    transcript: str | None,
    metrics: Metrics | None,
    tools: Tools,
    timeout_seconds: float = 120.0,
) -> Structural:
    """Decide every structural expectation of a case; what cannot be decided is said to be so, never guessed."""
    with Scripts(outputs, tools.open_sandbox, tools.work) as scripts:
        deadline = time.monotonic() + timeout_seconds
        given = Given(outputs, transcript, metrics, tools.engine, scripts, deadline)
        checked = tuple(_decide(expectation, given) for expectation in case.structural)
        tier = {"sandbox": scripts.tier} if scripts.tier else {}
    return Structural(
        keys=("expectations", "summary", "gate_passed", *tier),
        expectations=checked,
        summary=_summary(checked),
        gate_passed=_gate(checked),
        extra={**tier},
    )


def _decide(expectation: StructuralExpectation, given: Given) -> CheckedExpectation:
    try:
        verdict = _verdict(expectation, given)
    except (Undecided, CannotRead, Unavailable) as error:
        return _checked(expectation, None, f"Could not be decided: {error}", str(error))
    return _checked(expectation, verdict.passed, verdict.evidence)


def _verdict(expectation: StructuralExpectation, given: Given) -> Verdict:
    if expectation.type not in CHECKS:
        raise Undecided(f"no structural check is called '{expectation.type}'")
    try:
        fields = parse_check(expectation.type, expectation.params)
    except ValidationError as error:
        raise Undecided(f"the fields of this {expectation.type} are not valid: {error.errors()[0]['msg']}") from error
    given.seconds_left()
    return CHECKS[expectation.type](fields, given)


def _checked(
    expectation: StructuralExpectation, passed: bool | None, evidence: str, error: str | None = None
) -> CheckedExpectation:
    return CheckedExpectation(
        id=expectation.id,
        text=expectation.description or expectation.type,
        type=expectation.type,
        passed=passed,
        evidence=capped(printable(evidence)),
        critical=bool(expectation.critical),
        error=capped(printable(error)) if error else None,
    )


def _summary(checked: tuple[CheckedExpectation, ...]) -> Summary:
    """Counts of what was decided; the undecided are counted beside, because they are no score."""
    passed = sum(one.passed is True for one in checked)
    total = sum(one.passed is not None for one in checked)
    undecided = {"undecided": len(checked) - total} if len(checked) > total else {}
    return Summary(
        # Said outright, because a pass rate of nothing is null, not absent.
        keys=("passed", "failed", "total", "pass_rate", *undecided),
        nulls=() if total else ("pass_rate",),
        passed=passed,
        failed=total - passed,
        total=total,
        pass_rate=round(passed / total, 4) if total else None,
        extra={**undecided},
    )


def _gate(checked: tuple[CheckedExpectation, ...]) -> bool | None:
    """False if a critical expectation failed, None if one could not be decided, else True."""
    critical = [one.passed for one in checked if one.critical]
    if False in critical:
        return False
    return None if None in critical else True
