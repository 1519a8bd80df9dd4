"""Changed facts by name: lost, gained, invented or stale, in how many runs, and whether that is more than chance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from eval_core.base.numbers import counted
from eval_core.domain.measurement import Measurement
from eval_core.domain.record import InventedRecord, RunRecord, StaleRecord
from eval_core.statistics.exact import Counts, fewer_p
from eval_core.statistics.fates import Fate, fates
from eval_core.strands.findings import FEWEST_FOR_ALL, FactChange, FalseValue

CLEAR_ALPHA = 0.02
"""A single fact is named as changed, not as noise, below this chance."""
FALSE_ALPHA = 0.01
MANY = 5
"""So many false values in one run are another matter than one that a model may coin."""
LONGEST_NAME = 160
Shown = Literal["never shown", "not passed on", "shown, not written"]


def _measured(measurement: Measurement, fixture: str) -> list[RunRecord]:
    return [run for run in measurement.fixtures.get(fixture, []) if run.ok]


def _false(items: Sequence[InventedRecord] | Sequence[StaleRecord] | None) -> tuple[str, ...]:
    return tuple(sorted(item.value for item in items or ()))


def _fates(run: RunRecord) -> tuple[object, ...]:
    """Return what is counted of a run: what became of each fact, the structure, and what should not be stated."""
    facts = tuple((name, tuple(fact.kept for fact in record.facts)) for name, record in sorted(run.probes.items()))
    structure = tuple(sorted(run.structure.items()))
    return run.census.fates, structure, facts, _false(run.invented), _false(run.stale)


def _text(run: RunRecord) -> tuple[object, ...]:
    return run.summary, run.tokens_after


def _alike(measurement: Measurement, read: Callable[[RunRecord], object]) -> bool:
    """Tell whether at least three runs of each fixture, and all there are, are the same in this."""
    runs = [[read(run) for run in records if run.ok] for records in measurement.fixtures.values()]
    return bool(runs) and all(len(found) >= 3 and len(set(found)) == 1 for found in runs if found)


def same_text(measurement: Measurement) -> bool:
    """Tell whether every run of a fixture wrote the same."""
    return bool(measurement.deterministic) or _alike(measurement, _text)


def is_exact(measurement: Measurement) -> bool:
    """Tell whether every run of a fixture came out the same, so that there is nothing to estimate.

    Where a model writes, equal fates under different texts may be the luck of few runs. Without one the compressor
    makes its own noise, and a number that it draws must not turn what is certain into what is tested.
    """
    if measurement.deterministic:
        return True
    return _alike(measurement, _fates) and (not measurement.model_wrote or same_text(measurement))


def _clear(counts: Counts, *, exact: bool) -> bool:
    if exact:
        return True
    before, after = counts.base / counts.base_runs, counts.candidate / counts.candidate_runs
    if abs(before - after) < 0.5 - 1e-9:
        return False
    return fewer_p([counts if after < before else counts.swapped]) < CLEAR_ALPHA


def _changes(base: Measurement, candidate: Measurement, fixture: str, *, exact: bool) -> Iterator[FactChange]:
    before, now = fates(base, fixture), fates(candidate, fixture)
    for key, new in now.items():
        old = before.get(key)
        if old is None or old.kept_share == new.kept_share:
            continue
        counts = Counts(sum(old.kept), len(old.kept), sum(new.kept), len(new.kept))
        yield FactChange(
            fixture=fixture,
            name=new.name[:LONGEST_NAME],
            kind=new.kind,
            asked_by=tuple(new.asked_by),
            messages=new.messages,
            base_kept=counts.base,
            base_runs=counts.base_runs,
            candidate_kept=counts.candidate,
            candidate_runs=counts.candidate_runs,
            clear=_clear(counts, exact=exact),
            verbatim=not new.at_risk,
            shown=_shown(new) if new.kept_share < old.kept_share else None,
            reworded=new.reworded,
        )


def _shown(fate: Fate) -> Shown | None:
    if fate.never_shown is None:
        return None
    if fate.never_shown:
        return "never shown"
    return "not passed on" if fate.hidden else "shown, not written"


def fact_changes(base: Measurement, candidate: Measurement, *, exact: bool) -> tuple[FactChange, ...]:
    """Return every fact that moved: clear losses first, then clear gains, then what may be chance."""
    found = [change for fixture in candidate.fixtures for change in _changes(base, candidate, fixture, exact=exact)]
    return tuple(sorted(found, key=lambda item: (not item.clear, item.change, not item.asked, item.fixture, item.name)))


@dataclass(frozen=True)
class FalseValues:
    """Values that a state should not hold: invented ones, or superseded ones without their successor."""

    more: bool
    """Whether the candidate has more of them than chance explains."""
    named: tuple[FalseValue, ...]
    """Values that the candidate states and no run of the base does."""


@dataclass(frozen=True)
class _Fresh:
    """Where a value was seen that no run of the base states."""

    kind: str
    fixtures: tuple[str, ...] = ()
    times: int = 0
    runs: int = 0
    fewest: int = 0
    """Runs of the side that has fewer, in the fixture where that is fewest."""

    @property
    def words(self) -> str:
        where = self.fixtures[0] if len(self.fixtures) == 1 else counted(len(self.fixtures), "fixture")
        return f"{self.kind}, {where}, {self.times} of {self.runs} runs"

    @property
    def in_all(self) -> bool:
        return self.times == self.runs and self.fewest >= FEWEST_FOR_ALL


def _values(run: RunRecord, which: str) -> dict[str, str] | None:
    if which == "misstated":
        # What no line says has no words of the session's own; older records hold none.
        return {
            f"{name}: {state}": f'the session says "{line[0]}", the summary "{quote}"' if any(line) else f'"{quote}"'
            for name, (state, quote, *line) in run.strands["meaning"]["misstated"].items()
        }
    if which == "invented":
        return None if run.invented is None else {item.value: item.kind for item in run.invented}
    return None if run.stale is None else {item.value: item.probe for item in run.stale}


def _found(measurement: Measurement, fixture: str, which: str) -> list[dict[str, str]]:
    read = (_values(run, which) for run in _measured(measurement, fixture))
    return [values for values in read if values is not None]


def _more(counts: Mapping[int, Sequence[Counts]]) -> bool:
    """Tell whether more runs state at least one value of their own, or many, than chance explains."""
    chances = [fewer_p([item.swapped for item in found]) for found in counts.values()]
    return min(chances) * len(chances) < FALSE_ALPHA


def false_values(
    base: Measurement, candidate: Measurement, which: Literal["invented", "stale", "misstated"], *, exact: bool
) -> FalseValues:
    """Compare how many runs state invented (or stale) values that no other run of the base states, and name the new.

    What several runs of the base state belongs to the compressor's own text, such as a preface that names files.
    """
    found = {name: (_found(base, name, which), _found(candidate, name, which)) for name in candidate.fixtures}
    known = Counter(value for theirs, _ in found.values() for values in theirs for value in values)
    counts: dict[int, list[Counts]] = {least: [] for least in (1, MANY)}
    fresh: dict[str, _Fresh] = {}
    for fixture, (theirs, ours) in found.items():
        if not theirs or not ours:
            continue
        own = [sum(known[value] == 1 for value in values) for values in theirs]
        new = [sum(value not in known for value in values) for values in ours]
        for least, of in counts.items():
            happened = [sum(number >= least for number in side) for side in (own, new)]
            of.append(Counts(happened[0], len(own), happened[1], len(new)))
        for value, kind in {value: kind for values in ours for value, kind in values.items()}.items():
            if value not in known:
                seen = fresh.get(value, _Fresh(kind))
                times = sum(value in values for values in ours)
                fewest = min(len(theirs), len(ours), *([seen.fewest] if seen.fixtures else []))
                fresh[value] = _Fresh(
                    kind, (*seen.fixtures, fixture), seen.times + times, seen.runs + len(ours), fewest
                )
    ranked = sorted(fresh.items(), key=lambda item: (-item[1].times, item[0]))
    return FalseValues(
        more=bool(fresh) if exact else _more(counts),
        named=tuple(
            FalseValue(kind=which, value=value, where=seen.words, in_all=seen.in_all) for value, seen in ranked
        ),
    )
