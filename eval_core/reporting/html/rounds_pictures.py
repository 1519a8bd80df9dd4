"""Pictures of rounds: what is kept and freed by round, how long each kind of fact lives, and what merges drop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median_low

from eval_core.base.numbers import counted, percent
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import LineRecord, RoundsRecord
from eval_core.reporting.html.plots import Tick
from eval_core.strands.rounds import KEPT, LOST, WRITTEN, Played, played, plural

WIDTH, HEIGHT = 330, 200
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 24, 34
_MOST = 12
"""Facts named of one round."""
Values = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    """One side of a plot."""

    name: str
    css: str
    points: tuple[tuple[float, float], ...]

    @property
    def path(self) -> str:
        """Its points as SVG writes them."""
        return " ".join(f"{x},{y}" for x, y in self.points)


@dataclass(frozen=True)
class LinePlot:
    """A share over rounds or compressions, one line a side."""

    title: str
    across: str
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    sentence: str
    width: int = WIDTH
    height: int = HEIGHT
    left: int = _LEFT
    right: int = WIDTH - _RIGHT
    bottom: int = HEIGHT - _BOTTOM


@dataclass(frozen=True)
class Dropped:
    """What one round dropped from the summary, more often than on the first side."""

    round: int
    names: tuple[str, ...]
    more: int


@dataclass(frozen=True)
class RoundsPictures:
    """Everything that is drawn of the rounds."""

    plots: tuple[LinePlot, ...]
    dropped: tuple[Dropped, ...]
    sentence: str


Side = tuple[str, str, list[Played]]


def rounds_sides(measurements: Sequence[tuple[str, str, Measurement]]) -> list[Side]:
    """Return the runs of each measurement that has any; a candidate brings those of its base along."""
    found: list[Side] = []
    for number, (name, css, measurement) in enumerate(measurements):
        records = _records(measurement)
        last = number == len(measurements) - 1
        beside = measurement.extra.rounds
        if last and beside is not None and beside.base and not any(side[1] == "base" for side in found):
            found.append(("base", "base", [Played(record) for record in beside.base]))
        if records:
            found.append((name, css, [Played(record) for record in records]))
    return found


def _records(measurement: Measurement) -> list[RoundsRecord]:
    beside = measurement.extra.rounds
    of_suite = [
        RoundsRecord.model_validate(run.strands["rounds"])
        for runs in measurement.fixtures.values()
        for run in runs
        if "rounds" in run.strands
    ]
    return of_suite + (beside.candidate if beside is not None else [])


def _plot(title: str, across: str, sides: Sequence[tuple[str, str, Values]], sentence: str, first: int) -> LinePlot:
    last = max((len(values) for _, _, values in sides), default=1)
    wide, high = WIDTH - _LEFT - _RIGHT, HEIGHT - _TOP - _BOTTOM

    def place(at: int, share: float) -> tuple[float, float]:
        return round(_LEFT + wide * at / max(last - 1, 1), 1), round(HEIGHT - _BOTTOM - high * share, 1)

    step = max(1, last // 8)
    return LinePlot(
        title,
        across,
        tuple(
            Line(name, css, tuple(place(at, value) for at, value in enumerate(values) if value is not None))
            for name, css, values in sides
        ),
        tuple(Tick(place(at, 0)[0], str(at + first)) for at in range(0, last, step)),
        tuple(Tick(place(0, share)[1], percent(share)) for share in (0.0, 0.5, 1.0)),
        sentence,
    )


def _mean(values: Sequence[float]) -> float | None:
    there = [value for value in values if value == value]
    return fmean(there) if there else None


def _by_round(runs: Sequence[Played], last: int, share: Callable[[Played, int], float]) -> list[float | None]:
    """Return a mean for each round, always of the same sessions: those that are compressed so often."""
    long = [run for run in runs if len(run.fates) >= last]
    return [_mean([share(run, at) for run in long]) for at in range(last)]


def _survival(runs: Sequence[Played], kind: str) -> list[float | None]:
    """Return the share kept by age, in compressions since a fact was last said."""
    kept, live = Counter[int](), Counter[int]()
    for run in runs:
        for at, signs in enumerate(run.fates):
            for fact in run.of_kind(kind):
                if signs[fact] in (LOST, *KEPT):
                    live[run.age(fact, at)] += 1
                    kept[run.age(fact, at)] += signs[fact] != LOST
    return [kept[age] / live[age] if live[age] else None for age in range(max(live, default=-1) + 1)]


def _half(values: Values) -> str:
    """Say after how many compressions half is gone."""
    age = next((age for age, value in enumerate(values, 1) if value is not None and value <= 0.5), None)
    return "more than half is kept to the end" if age is None else f"half is gone after {counted(age, 'compression')}"


def _dropped(sides: Sequence[Side]) -> tuple[Dropped, ...]:
    """Name what the last side's merges drop more often than the first side's."""
    often: list[dict[tuple[int, str, str], float]] = []
    facts: dict[tuple[str, str], LineRecord] = {}
    for _, _, runs in (sides[0], sides[-1]):
        counts: dict[tuple[int, str, str], float] = {}
        for session, found in played([run.record for run in runs]).items():
            for run in found:
                for at in range(1, len(run.fates)):
                    for number, fact in enumerate(run.facts):
                        if run.fates[at - 1][number] == WRITTEN and run.fates[at][number] == LOST:
                            key = at, session, fact.name
                            counts[key] = counts.get(key, 0.0) + 1 / len(found)
                            facts[session, fact.name] = fact
        often.append(counts)
    before = often[0] if len(sides) > 1 else {}
    by_round: dict[int, list[str]] = {}
    for (at, session, name), share in sorted(often[1].items()):
        if share - before.get((at, session, name), 0.0) >= 0.5:
            fact = facts[session, name]
            by_round.setdefault(at + 1, []).append(f"{fact.value} ({fact.kind.replace('_', ' ')}, {session})")
    return tuple(
        Dropped(at, tuple(names[:_MOST]), max(0, len(names) - _MOST)) for at, names in sorted(by_round.items())
    )


def _freed(run: Played, at: int) -> float:
    state = run.record.rounds[at]
    return 1 - state.after / state.before if state.before else 0.0


def rounds_pictures(sides: Sequence[Side]) -> RoundsPictures | None:
    """Draw the rounds of one or more sides; None where nothing was played."""
    if not sides:
        return None
    # Most sessions get as far as that.
    last = median_low([len(run.fates) for _, _, runs in sides for run in runs])
    kept = [(name, css, _by_round(runs, last, lambda run, at: run.kept()[at])) for name, css, runs in sides]
    freed = [(name, css, _by_round(runs, last, _freed)) for name, css, runs in sides]
    ends = "; ".join(f"{name} {percent(values[-1])}" for name, _, values in kept)
    plots = [
        _plot("kept, all facts", "round", kept, f"Kept after round {last}: {ends}.", 1),
        _plot("freed, of all tokens", "round", freed, "How much each round frees.", 1),
    ]
    for kind in _written(sides):
        values = [(name, css, _survival(runs, kind)) for name, css, runs in sides]
        halves = "; ".join(f"{name}: {_half(found)}" for name, _, found in values)
        plots.append(_plot(plural(kind), "compressions since it was last said", values, f"{halves}.", 1))
    sessions = len({run.record.session for _, _, runs in sides for run in runs})
    oracle = fmean(fmean(run.record.oracle) for _, _, runs in sides for run in runs)
    perfect = f"A perfect copy of everything that holds would be read as {percent(oracle)}."
    what = f"{counted(sessions, 'long session')}, compressed again and again. {plots[0].sentence} {perfect}"
    return RoundsPictures(tuple(plots), _dropped(sides), what)


def _written(sides: Sequence[Side]) -> list[str]:
    """Return the kinds of facts that any side writes, the most frequent first."""
    often: Mapping[str, int] = Counter(
        fact.kind
        for _, _, runs in sides
        for run in runs
        for at, fact in enumerate(run.facts)
        if any(signs[at] == WRITTEN for signs in run.fates)
    )
    return sorted(often, key=lambda kind: -often[kind])
