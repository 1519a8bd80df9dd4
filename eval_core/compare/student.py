"""Quantiles of Student's t for whole degrees of freedom, so that no statistics package is needed."""

from __future__ import annotations

import math
from functools import lru_cache

__all__ = ["quantile"]


def _cdf(t: float, df: int) -> float:
    """Return P(T <= t) by the finite series that exists for whole degrees of freedom."""
    angle = math.atan(t / math.sqrt(df))
    cosine, sine = math.cos(angle), math.sin(angle)
    odd = df % 2
    term = cosine if odd else 1.0
    total = term if df > 1 else 0.0
    for step in range(3 if odd else 2, df - 1, 2):
        term *= cosine * cosine * (step - 1) / step
        total += term
    inside = 2 / math.pi * (angle + sine * total) if odd else sine * total
    return 0.5 + inside / 2


@lru_cache(maxsize=1024)
def quantile(probability: float, df: int) -> float:
    """Return the t that is exceeded with probability 1 - `probability`; infinite where nothing measures the noise."""
    if not 0.5 <= probability < 1:
        raise ValueError(f"probability must be in [0.5, 1), got {probability}")
    if df < 1:
        return math.inf
    low, high = 0.0, 1.0
    while _cdf(high, df) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _cdf(middle, df) < probability else (low, middle)
    return (low + high) / 2
