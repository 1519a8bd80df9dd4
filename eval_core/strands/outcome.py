"""Outcome: did the compressor compress, every time?

Failing where the base never did is a regression by itself: more than half of the runs of a fixture, or more over all
fixtures than chance explains. A compressor that raises, dies or falls back in every run of a fixture is broken even
without a baseline. What the provider failed at is not counted at all; a model that writes nothing for the compressor,
and a summary of the same session for the evaluator, has not failed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval_core.base.numbers import (
    counted,
)
from eval_core.domain.compression import Outcome
from eval_core.domain.record import RunRecord
from eval_core.statistics.exact import Counts, fewer_p
from eval_core.strands.findings import Culprit, Finding, StrandState

Runs = Mapping[str, Sequence[RunRecord]]
MAJORITY = 0.5
ALPHA = 0.01


@dataclass(frozen=True)
class Failures:
    """How the runs of one fixture ended, the provider's failures left out."""

    fixture: str
    runs: int
    kinds: Mapping[Outcome, int]

    @property
    def failed(self) -> int:
        """Runs that the compressor failed."""
        return sum(self.kinds.values())

    @property
    def raised(self) -> int:
        """Runs without any result: one that did not shrink the session still has one."""
        return sum(count for kind, count in self.kinds.items() if kind is not Outcome.NOT_COMPRESSED)


@dataclass(frozen=True)
class OutcomeChange:
    """What became of compressing at all."""

    base: tuple[Failures, ...]
    candidate: tuple[Failures, ...]
    broken: tuple[str, ...]
    """Fixtures that decide: the candidate fails there and the base never did."""
    repaired: tuple[str, ...]
    shaky: tuple[str, ...]
    """Fixtures where it fails now and then: told, and not decided by."""


def failures(runs: Runs) -> tuple[Failures, ...]:
    """Count the failures of each fixture."""
    found = []
    for name, records in runs.items():
        own = [run.outcome for run in records if not run.outcome.retryable]
        kinds: Counter[Outcome] = Counter(outcome for outcome in own if outcome is not Outcome.OK)
        found.append(Failures(name, len(own), dict(kinds)))
    return tuple(found)


def always_failing(found: Sequence[Failures]) -> tuple[str, ...]:
    """Return the fixtures that are broken whatever the base does: no run of them came to a result.

    A session that is never shortened may be too short to be worth it; a suite of which nothing is shortened is not.
    """
    never = [item.fixture for item in found if item.runs and item.raised == item.runs]
    idle = [item.fixture for item in found if item.runs and item.failed == item.runs]
    return tuple(idle if len(idle) == len([item for item in found if item.runs]) else never)


def never_compressed(change: OutcomeChange) -> tuple[Failures, ...]:
    """Return the fixtures of which the base has no result, by its own fault, where it has results of others."""
    never = tuple(item for item in change.base if item.runs and item.failed == item.runs)
    return never if len(never) < len(change.base) else ()


def broken_fixtures(change: OutcomeChange) -> tuple[str, ...]:
    """Return the fixtures for which the compressor counts as broken, in the order of the suite."""
    broken = {*change.broken, *always_failing(change.candidate)}
    known = {item.fixture: item for item in change.base if item.runs}
    # What the base fails at in the same way is no change, and a base was there to show it.
    same = {name for name, item in known.items() if item.failed == item.runs}
    return tuple(item.fixture for item in change.candidate if item.fixture in broken - same)


def outcome_culprits(change: OutcomeChange, broken: Sequence[str]) -> list[Culprit]:
    """Return one culprit for each broken fixture: the share of its runs that compress."""
    before = {item.fixture: item for item in change.base if item.runs}
    found = []
    for item in change.candidate:
        if item.fixture in broken:
            old = before.get(item.fixture)
            found.append(
                Culprit(
                    kind="outcome",
                    direction="worse",
                    name="compresses",
                    fixture=item.fixture,
                    base=1 - old.failed / old.runs if old else None,
                    candidate=1 - item.failed / item.runs,
                )
            )
    return found


def compare_outcomes(base: Runs, candidate: Runs) -> OutcomeChange:
    """Compare how often the two sides failed."""
    before, now = failures(base), failures(candidate)
    known = {item.fixture: item for item in before if item.runs}
    pairs = [(known[item.fixture], item) for item in now if item.fixture in known and item.runs]
    fresh = [(old, new) for old, new in pairs if new.failed and not old.failed]
    broken = [new.fixture for old, new in fresh if new.failed > MAJORITY * new.runs]
    together = [Counts(old.failed, old.runs, new.failed, new.runs).swapped for old, new in pairs if not old.failed]
    if fresh and not broken and fewer_p(together) < ALPHA:
        broken = [new.fixture for _, new in fresh]
    return OutcomeChange(
        before,
        now,
        tuple(broken),
        tuple(new.fixture for old, new in pairs if not new.failed and old.failed > MAJORITY * old.runs),
        tuple(new.fixture for _, new in fresh if new.fixture not in broken),
    )


def _repaired(number: int) -> str:
    return f"{counted(number, 'fixture')} {'compresses' if number == 1 else 'compress'} again" if number else ""


def outcome_strand(change: OutcomeChange) -> Finding:
    """Say how often the two sides failed."""

    def words(items: Sequence[tuple[int, int]]) -> str:
        failed, runs = sum(item[0] for item in items), sum(item[1] for item in items)
        return f"{runs - failed} of {runs} runs" if runs else ""

    details = [f"fails now and then: {name}" for name in change.shaky] + [
        f"repaired: {name}" for name in change.repaired
    ]
    state = StrandState.CANNOT_TELL if change.shaky else StrandState.BETTER if change.repaired else StrandState.SAME
    return Finding(
        name="outcome",
        state=StrandState.WORSE if change.broken else state,
        base=words([(item.failed, item.runs) for item in change.base]),
        candidate=words([(item.failed, item.runs) for item in change.candidate]),
        says=_repaired(len(change.repaired)),
        details=tuple(details),
        gain=len(change.repaired) / max(len(change.candidate), 1),
    )
