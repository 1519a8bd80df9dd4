"""One line of a baseline's history: what an update of the baseline was measured to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ALL_FACTS = "all facts, each once"
"""What a line's facts_kept is the share of."""
FACTS_KEPT = "facts kept"
"""The name of that share among the means of each run."""

_LONGEST_RELEASE = 40
_LARGEST = 1e12
"""Nothing measured is as much; sums of what is, with room to spare, are numbers that can be drawn."""


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _number(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < _LARGEST else None  # false for what is no number, too


def _numbers(found: object) -> dict[str, float]:
    items = found.items() if isinstance(found, dict) else ()
    return {name: number for name, value in items if (number := _number(value)) is not None}


def _runs(found: object) -> dict[str, dict[str, tuple[float, ...]]]:
    fixtures = found.items() if isinstance(found, dict) else ()
    return {
        fixture: {
            name: tuple(number for value in values if (number := _number(value)) is not None)
            for name, values in part.items()
            if isinstance(values, list)
        }
        for fixture, part in fixtures
        if isinstance(part, dict)
    }


@dataclass(frozen=True, kw_only=True)
class HistoryLine:
    """One update of a baseline. People edit and merge these files, so a field of another type counts as missing."""

    date: str
    baseline: str
    target: str = ""
    source_sha: str = ""
    fingerprint: str = ""
    judged: bool = True
    """Whether a model graded."""
    values: Mapping[str, float] = field(default_factory=dict)
    """Means over all runs: overall, the dimensions, facts_kept, tokens, cost_usd; without those not measured.

    Older lines have expected_kept in place of facts_kept: only facts that probes ask for. The two are not compared.
    """
    verdict: str = ""
    """What it was found to be against the baseline it replaced."""
    release: str = ""
    runs: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    """For each fixture, the mean of each run: of the overall grade and of the facts kept."""

    @classmethod
    def parse(cls, line: dict[str, Any]) -> HistoryLine | None:
        """Read a line; None where it has no date or baseline."""
        if not {"date", "baseline"} <= line.keys():
            return None
        # Lines of the first version have the dimensions in a table of their own, and do not say who graded.
        values = _numbers(line.get("dims")) | _numbers(line)
        if line.get("counted") != ALL_FACTS and "facts_kept" in values:
            values["expected_kept"] = values.pop("facts_kept")
        return cls(
            date=_text(line["date"]),
            baseline=_text(line["baseline"]),
            target=_text(line.get("target")),
            source_sha=_text(line.get("source_sha")),
            fingerprint=_text(line.get("fingerprint")),
            judged=bool(line.get("judged", line["baseline"] != "offline")),
            values=values,
            verdict=_text(line.get("verdict")),
            release=_text(line.get("release"))[:_LONGEST_RELEASE],
            runs=_runs(line.get("runs")),
        )
