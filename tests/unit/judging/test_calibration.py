"""The judge against people's labels."""

import random

import pytest

from service.errors import BadInput
from service.judging.calibration import Label, calibrate, corrected_rate


def labels(both: int, missed: int, invented: int, neither: int) -> list[Label]:
    return (
        [Label(True, True)] * both
        + [Label(True, False)] * missed
        + [Label(False, True)] * invented
        + [Label(False, False)] * neither
    )


def test_rates_and_kappa_of_a_known_table() -> None:
    found = calibrate(labels(both=40, missed=10, invented=5, neither=45))

    assert found.sensitivity == pytest.approx(41 / 52)
    assert found.specificity == pytest.approx(46 / 52)
    assert found.agreement == pytest.approx(0.85)
    assert found.kappa == pytest.approx(0.70)
    assert found.gwet_ac1 == pytest.approx((0.85 - 0.49875) / (1 - 0.49875))


def test_when_nearly_everything_passes_kappa_collapses_and_gwet_does_not() -> None:
    found = calibrate(labels(both=95, missed=2, invented=2, neither=1))

    assert found.kappa is not None
    assert found.gwet_ac1 is not None
    assert found.kappa < 0.4 < 0.9 < found.gwet_ac1


def test_the_correction_undoes_known_errors() -> None:
    found = calibrate(labels(both=900, missed=100, invented=200, neither=800))
    observed = 0.5 * 0.9 + 0.5 * 0.2  # a true rate of one half, seen through this judge

    rate = corrected_rate(observed, 1_000, found)

    assert rate.corrected == pytest.approx(0.5, abs=0.01)
    assert rate.low < 0.5 < rate.high


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    dice = random.Random(5)
    covered = 0
    for _ in range(400):
        known = [Label(True, dice.random() < 0.9) for _ in range(60)]
        known += [Label(False, dice.random() < 0.15) for _ in range(60)]
        truth = [dice.random() < 0.7 for _ in range(300)]
        seen = sum(dice.random() < (0.9 if passed else 0.15) for passed in truth) / 300
        rate = corrected_rate(seen, 300, calibrate(known))
        covered += rate.low <= 0.7 <= rate.high

    assert covered / 400 >= 0.93


@pytest.mark.parametrize("observed", [0.0, 0.01, 0.5, 0.99, 1.0])
def test_the_interval_lies_between_0_and_1_and_holds_the_rate(observed: float) -> None:
    found = calibrate(labels(both=75, missed=25, invented=25, neither=75))

    rate = corrected_rate(observed, 10_000, found)

    assert 0.0 <= rate.low <= rate.corrected <= rate.high <= 1.0


def test_a_judge_no_better_than_a_coin_is_not_corrected() -> None:
    found = calibrate(labels(both=50, missed=50, invented=50, neither=50))

    assert not found.is_usable
    with pytest.raises(BadInput, match="cannot be corrected"):
        corrected_rate(0.5, 100, found)


@pytest.mark.parametrize("one_sided", [[Label(True, True)], [Label(False, False)]])
def test_labels_of_one_kind_only_are_refused(one_sided: list[Label]) -> None:
    with pytest.raises(BadInput, match="label some of both"):
        calibrate(one_sided)
