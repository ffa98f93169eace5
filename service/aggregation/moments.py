"""Mean, spread and extremes of a stream of numbers, in constant memory."""

import math


class Moments:
    """What is needed of many numbers once they have gone by."""

    __slots__ = ("_centre", "_squares", "count", "high", "low", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total: float = 0
        self.low: float = 0
        self.high: float = 0
        self._centre = 0.0
        self._squares = 0.0

    def add(self, value: float) -> None:
        """Take one number in."""
        self.low = value if self.count == 0 else min(self.low, value)
        self.high = value if self.count == 0 else max(self.high, value)
        self.count += 1
        self.total += value
        step = value - self._centre
        self._centre += step / self.count
        self._squares += step * (value - self._centre)

    @property
    def mean(self) -> float | None:
        """The sum over the count, as a reader with a pocket calculator would take it; None of nothing."""
        return self.total / self.count if self.count else None

    @property
    def variance(self) -> float | None:
        """The sample variance (n - 1); None for fewer than two numbers."""
        return max(0.0, self._squares) / (self.count - 1) if self.count > 1 else None

    @property
    def stddev(self) -> float:
        """The sample standard deviation, 0 for one number."""
        return math.sqrt(self.variance or 0.0)
