"""How numbers are written: rounded where digits mean nothing, never NaN."""

from service.aggregation.moments import Moments

Figures = dict[str, float | int | None]


def rounded(value: float | None, places: int = 4) -> float | None:
    """A value for a file; None stays None."""
    return None if value is None else round(value, places)


def significant(p: float | None) -> float | None:
    """A p value with four digits that mean something."""
    return None if p is None else float(f"{p:.4g}")


def spread(moments: Moments) -> Figures:
    """Mean, stddev, min and max as benchmark readers know them."""
    keep = all(isinstance(value, int) for value in (moments.total, moments.low, moments.high))
    mean, stddev = round(moments.mean or 0.0, 4), round(moments.stddev, 4)
    low, high = (moments.low, moments.high) if keep else (round(moments.low, 4), round(moments.high, 4))
    return {"mean": int(mean) if keep and mean.is_integer() else mean, "stddev": stddev, "min": low, "max": high}


def signed(value: float, places: int) -> str:
    """A difference with its sign, such as +0.50; nothing is +0.00, never -0.00."""
    text = f"{value:+.{places}f}"
    return text.replace("-", "+") if float(text) == 0 else text


def percent(rate: float) -> str:
    """A rate for reading."""
    return f"{100 * rate:.0f} %"


def count(number: int, noun: str) -> str:
    """1 case, 2 cases."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
