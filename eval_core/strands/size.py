"""Size: what the two sides retain. A size alone is neither good nor bad; it is a gate on gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from eval_core.base.numbers import p_value, percent, tokens
from eval_core.domain.record import RunRecord
from eval_core.strands.findings import Finding, StrandState

GROWTH = 0.05
"""A state that is larger or smaller by more than this is another size, if that is more than runs vary."""
UNUSABLE = 0.02
"""The reference compressors' own lists of loose words hold 0.016 of all facts."""
LIFT = 0.03
"""Facts gained beside a larger state count as a gain only if the lift over recency rises by this."""


@dataclass(frozen=True)
class SizeChange:
    """What the two sides retain."""

    recorded: bool
    base_tokens: float
    candidate_tokens: float
    """Mean over fixtures of the mean over runs."""
    base_kept: float = 0.0
    candidate_kept: float = 0.0
    """Share of all facts of the sessions that the state holds, verbatim or not."""
    base_lift: float = 0.0
    candidate_lift: float = 0.0
    """That share less the share which the newest messages of the same size hold."""
    bare: float = 0.0
    """The share of all facts that the candidate, and not the base, holds only where no sentence carries them."""
    fixtures: tuple[tuple[str, float, float], ...] = ()
    p: float | None = None
    """The chance of such a difference if nothing changed; None where the sizes were counted."""
    alpha: float = 0.0

    @property
    def ratio(self) -> float:
        """Candidate tokens over base tokens."""
        return self.candidate_tokens / self.base_tokens if self.base_tokens else 1.0

    @property
    def larger(self) -> bool:
        """Whether the state grew, by enough to matter and by more than runs vary."""
        return self.ratio > 1 + GROWTH and self._sure

    @property
    def smaller(self) -> bool:
        """Whether the state shrank, by enough to matter and by more than runs vary."""
        return self.ratio < 1 - GROWTH and self._sure

    @property
    def _sure(self) -> bool:
        return self.p is None or self.p <= self.alpha

    @property
    def bought(self) -> bool:
        """Whether what was gained came with the size: it grew, and the lift over recency did not."""
        return self.larger and (not self.recorded or self.candidate_lift - self.base_lift < LIFT)

    @property
    def unusable(self) -> bool:
        """Whether most of what was gained stands where no sentence carries it."""
        return self.bare >= UNUSABLE and self.bare * 2 >= self.candidate_kept - self.base_kept

    @property
    def strand(self) -> Finding:
        """Say what the size shows; a size alone is neither good nor bad."""
        state = StrandState.CHANGED if self.larger or self.smaller else StrandState.SAME
        if abs(self.ratio - 1) > GROWTH and state is StrandState.SAME:
            state = StrandState.CANNOT_TELL
        details = [
            f"{name}: {tokens(before)} → {tokens(after)} tokens"
            for name, before, after in self.fixtures
            if abs(after / max(before, 1.0) - 1) > GROWTH
        ]
        word = "larger" if self.ratio > 1 else "smaller"
        luck = f", which may be luck (p {p_value(self.p)})" if state is StrandState.CANNOT_TELL and self.p else ""
        return Finding(
            name="size",
            state=state if self.base_tokens else StrandState.NOT_RECORDED,
            base=f"{tokens(self.base_tokens)} tokens",
            candidate=f"{tokens(self.candidate_tokens)} tokens",
            says=f"the state is {percent(abs(self.ratio - 1))} {word}{luck}" if state is not StrandState.SAME else "",
            details=tuple(details),
        )


def size_change(base: Mapping[str, Sequence[RunRecord]], candidate: Mapping[str, Sequence[RunRecord]]) -> SizeChange:
    names = sorted(base.keys() & candidate.keys())
    if not names:
        return SizeChange(recorded=False, base_tokens=0.0, candidate_tokens=0.0)

    def mean(side: Mapping[str, Sequence[RunRecord]], name: str) -> float:
        return fmean(run.tokens_after for run in side[name])

    def shares(side: Mapping[str, Sequence[RunRecord]], *, lift: bool) -> float:
        return fmean(
            fmean(
                (run.size.kept - (run.size.recency if lift else 0.0)) / max(run.size.facts, 1)
                for run in side[name]
                if run.size
            )
            for name in names
        )

    def bare(side: Mapping[str, Sequence[RunRecord]], name: str) -> float:
        return fmean(run.bare / max(run.size.facts if run.size else 0, 1) for run in side[name])

    rows = tuple((name, mean(base, name), mean(candidate, name)) for name in names)
    recorded = all(run.size for side in (base, candidate) for name in names for run in side[name])
    return SizeChange(
        recorded=recorded,
        base_tokens=fmean(row[1] for row in rows),
        candidate_tokens=fmean(row[2] for row in rows),
        base_kept=shares(base, lift=False) if recorded else 0.0,
        candidate_kept=shares(candidate, lift=False) if recorded else 0.0,
        base_lift=shares(base, lift=True) if recorded else 0.0,
        candidate_lift=shares(candidate, lift=True) if recorded else 0.0,
        bare=fmean(bare(candidate, name) - bare(base, name) for name in names),
        fixtures=rows,
    )
