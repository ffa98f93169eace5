"""The judge against people: sensitivity, specificity, agreement by chance, and the pass rate freed of its errors.

Labels are a list of {"human": bool, "judge": bool}; both say whether a statement passed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.errors import BadInput

USABLE = 0.2  # sensitivity + specificity - 1 below this: the judge is hardly better than a coin
Z = 1.959963984540054  # of a 95 % interval


@dataclass(frozen=True)
class Label:
    """One statement decided by a person and by the judge."""

    human: bool
    judge: bool


@dataclass(frozen=True)
class Calibration:
    """How far the judge can be trusted; rates are (x + 1) / (m + 2), so that a small sample claims no certainty."""

    labels: int
    human_passes: int
    human_fails: int
    agreement: float
    kappa: float | None  # None when chance alone agrees always
    gwet_ac1: float | None  # beside kappa, which misleads when one label dominates
    sensitivity: float  # of what people passed, the judge passed
    specificity: float  # of what people failed, the judge failed

    @property
    def informedness(self) -> float:
        """Sensitivity + specificity - 1: 0 is a coin, 1 is perfect."""
        return self.sensitivity + self.specificity - 1

    @property
    def is_usable(self) -> bool:
        """Whether a pass rate can be corrected at all."""
        return self.informedness >= USABLE


@dataclass(frozen=True)
class CorrectedRate:
    """A pass rate freed of the judge's known errors, with its 95 % interval."""

    observed: float
    corrected: float
    low: float
    high: float


def calibrate(labels: Sequence[Label]) -> Calibration:
    """Compare the judge with people; needs at least one pass and one fail by people."""
    passes = [label.judge for label in labels if label.human]
    fails = [label.judge for label in labels if not label.human]
    if not passes or not fails:
        missing = "passes" if not passes else "fails"
        raise BadInput(f"the labels hold nothing that a person {missing}; label some of both kinds")
    agreement = sum(label.human == label.judge for label in labels) / len(labels)
    return Calibration(
        labels=len(labels),
        human_passes=len(passes),
        human_fails=len(fails),
        agreement=agreement,
        kappa=cohen_kappa(labels, agreement),
        gwet_ac1=gwet_ac1(labels, agreement),
        sensitivity=(sum(passes) + 1) / (len(passes) + 2),
        specificity=(len(fails) - sum(fails) + 1) / (len(fails) + 2),
    )


def cohen_kappa(labels: Sequence[Label], agreement: float) -> float | None:
    """Agreement beyond chance, with each rater's own rate."""
    human = sum(label.human for label in labels) / len(labels)
    judge = sum(label.judge for label in labels) / len(labels)
    chance = human * judge + (1 - human) * (1 - judge)
    return (agreement - chance) / (1 - chance) if chance < 1 else None


def gwet_ac1(labels: Sequence[Label], agreement: float) -> float | None:
    """Agreement beyond chance that does not collapse when nearly everything passes."""
    both = sum(label.human + label.judge for label in labels) / (2 * len(labels))
    chance = 2 * both * (1 - both)
    return (agreement - chance) / (1 - chance) if chance < 1 else None


def corrected_rate(observed: float, count: int, calibration: Calibration) -> CorrectedRate:
    """The pass rate if the judge made no errors; raises BadInput when the judge is no better than a coin."""
    if not calibration.is_usable:
        raise BadInput(
            f"sensitivity + specificity - 1 is {calibration.informedness:.2f}, below {USABLE}: "
            "this judge cannot be corrected; use another judge or sharper statements"
        )
    q1, q0, width = calibration.sensitivity, calibration.specificity, calibration.informedness
    rate = (observed + q0 - 1) / width
    inner = min(1.0, max(0.0, rate))
    variance = observed * (1 - observed) / count
    variance += (1 - inner) ** 2 * q0 * (1 - q0) / calibration.human_fails
    variance += inner**2 * q1 * (1 - q1) / calibration.human_passes
    half = Z * math.sqrt(variance) / width
    # Around the rate before it was cut to what can be: an end beyond 0 or 1 is that end.
    low, high = (min(1.0, max(0.0, end)) for end in (rate - half, rate + half))
    return CorrectedRate(observed, inner, low, high)
