"""Percentiles of durations."""

from collections.abc import Iterable
from math import ceil, inf


def percentile(figures: Iterable[float], percent: int) -> float:
    """A percentile by nearest rank. Without figures it is infinite: nothing was reached."""
    ordered = sorted(figures)
    rank = ceil(len(ordered) * percent / 100)
    return ordered[max(rank, 1) - 1] if ordered else inf


def median(figures: Iterable[float]) -> float:
    return percentile(figures, 50)
