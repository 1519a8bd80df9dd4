"""The numbers of the first screen: size, facts, score, what it all costs in tokens, each beside the base's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from eval_core.base.numbers import percent
from eval_core.base.numbers import tokens as token_words
from eval_core.domain.measurement import Measurement
from eval_core.reporting.html.plots import PlotTable
from eval_core.reporting.metrics import tokens_per_task

__all__ = ["Tile", "tiles"]

_NAMES = {"overall": "overall score, 0 to 5"}
_NOTES = {
    "expected facts kept": "asked for by probes",
    "census facts kept": "found in the sessions by rules",
}


@dataclass(frozen=True)
class Tile:
    """One number, and what it was before."""

    name: str
    value: str
    base: str = ""
    change: str = ""
    way: str = ""
    """`up` where it got better, `down` where it got worse."""
    note: str = ""
    words: bool = False
    """Whether the value is a sentence rather than a number."""


def _size(measurement: Measurement | None) -> float | None:
    if measurement is None:
        return None
    found = [[run.tokens_after for run in runs if run.ok] for runs in measurement.fixtures.values()]
    return fmean(fmean(sizes) for sizes in found if sizes) if any(found) else None


def _tokens(count: float, *, sign: bool = False) -> str:
    return f"{'−' if count < 0 else '+' if sign and count else ''}{abs(count):,.0f}"


def tiles(candidate: Measurement, base: Measurement | None, tables: Sequence[PlotTable], cost: str) -> list[Tile]:
    """Return the tiles of a report, size and facts first."""
    found = []
    now, before = _size(candidate), _size(base)
    if now is not None:
        # Fewer tokens are neither good nor bad by themselves.
        change = f"{'−' if now < before else '+'}{percent(abs(now / before - 1))}" if before and now != before else ""
        found.append(Tile("tokens kept", token_words(now), token_words(before) if before else "", change))
    rows = {row.name: row for table in tables for row in table.rows}
    for name in ("expected facts kept", "census facts kept", "overall"):
        if (row := rows.get(name)) is not None:
            same = row.delta.strip("−+0. p") == ""
            way = "" if same else "down" if row.delta.startswith("−") else "up"
            known = "" if row.base == "–" else row.base
            note = _NOTES.get(name, "")
            found.append(Tile(_NAMES.get(name, name), row.candidate, known, "" if same else row.delta, way, note))
    if (task := tokens_per_task(candidate)) is not None:
        old = tokens_per_task(base) if base else None
        moved = task.net - old.net if old else 0.0
        found.append(
            Tile(
                "net saving per task",
                _tokens(task.net),
                _tokens(old.net) if old else "",
                _tokens(moved, sign=True) if round(moved) else "",
                "down" if moved < 0 else "up",
                f"tokens over {task.turns:.0f} more turns, with reading again what was lost",
            )
        )
    found.append(Tile("cost of this run", cost, words=True))
    return found
