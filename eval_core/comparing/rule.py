"""The rule: from the strands to one verdict.

1. What failed to compress is *broken*.
2. A broken structure check, a section gone, a value invented or stale, a ledger line misstated is a regression whatever
   else was gained.
3. Facts, scores, what the compressor's model is shown and repairs are compared as shares of their totals. If there are
   gains and losses, and the smaller is at least half of the larger, that is *mixed*; otherwise the larger decides. If
   what no longer reaches the model alone weighs that much, it is a regression: no model can write what it never sees.
4. A gain that came with a larger state and no higher lift over recency is a *trade*. So is a loss where the state
   shrank by at least twice the share, unless facts no longer reach the model.
5. A repair alone, next to fewer messages kept verbatim, is *mixed*.
6. Nothing gained or lost: a smaller state is an improvement, a larger one a regression. A smaller one is a *trade* if
   fewer messages are kept verbatim, if what was lost was accepted, or if far more facts are kept less often than more
   often, each by chance or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eval_core.strands import registry
from eval_core.strands.findings import COMPARABLE, Finding, Kind, StrandState, weigh
from eval_core.strands.size import SizeChange
from eval_core.strands.strand import Force

TRADED = 2.0
"""A loss is a trade if the state shrank by at least this many times its share."""


def _relative_loss(size: SizeChange) -> float:
    return 1 - size.candidate_kept / size.base_kept if size.base_kept else 0.0


_SPOKE = (StrandState.WORSE, StrandState.BETTER, StrandState.BOTH)


@dataclass(frozen=True)
class _Heard:
    """Findings by what their strands may do to the verdict."""

    findings: Mapping[str, Finding]

    def of(self, *forces: Force) -> list[Finding]:
        return [
            self.findings[strand.name]
            for strand in registry.STRANDS
            if strand.force in forces and strand.name in self.findings
        ]

    def worse(self, *forces: Force) -> bool:
        return any(item.state is StrandState.WORSE for item in self.of(*forces))

    @property
    def irreparable(self) -> list[Finding]:
        """What got worse and can be made up for by nothing."""
        named = {strand.name for strand in registry.STRANDS if strand.irreparable}
        return [item for name, item in self.findings.items() if name in named and item.state is StrandState.WORSE]

    @property
    def weighed(self) -> tuple[float, float, float]:
        """The largest loss and gain, and the largest repair."""
        spoke = [item for item in self.of(Force.WEIGHED) if item.state in _SPOKE]
        loss = max((item.loss for item in spoke), default=0.0)
        gain = max((item.gain for item in spoke), default=0.0)
        return loss, gain, max((item.gain for item in self.of(Force.BREAKS, Force.CERTAIN)), default=0.0)

    @property
    def smaller_for_less(self) -> bool:
        """Whether a smaller state holds less in a way that no test calls a loss, or that was accepted."""
        shorter = self.worse(Force.TOLD)
        return shorter or any(item.leans_down or item.accepted for item in self.findings.values())


def decide_kind(findings: Mapping[str, Finding], size: SizeChange | None, *, certain: bool, decided: bool) -> Kind:
    """Apply the rule; `certain` says that a value was invented or is stale, `decided` that calm rows are calm."""
    heard = _Heard(findings)
    if certain or heard.worse(Force.CERTAIN):
        return Kind.REGRESSED
    loss, gain, repaired = heard.weighed
    state = weigh(loss, max(gain, repaired))
    if state is StrandState.BOTH:
        cut = max((item.loss for item in heard.irreparable), default=0.0)
        return Kind.REGRESSED if cut and cut >= COMPARABLE * max(gain, repaired) else Kind.MIXED
    if state is StrandState.WORSE:
        return Kind.TRADE if _traded(size) and not heard.irreparable else Kind.REGRESSED
    if state is StrandState.BETTER:
        if not gain and heard.worse(Force.TOLD):
            return Kind.MIXED
        return Kind.TRADE if size is not None and size.bought else Kind.IMPROVED
    if not decided:
        return Kind.INCONCLUSIVE
    return _by_size(size, heard)


def _traded(size: SizeChange | None) -> bool:
    """Tell whether the state shrank by far more than its facts."""
    return size is not None and size.smaller and size.recorded and 1 - size.ratio >= TRADED * _relative_loss(size)


def _by_size(size: SizeChange | None, heard: _Heard) -> Kind:
    """Decide where nothing but the size may have moved."""
    if size is not None and size.smaller:
        return Kind.TRADE if heard.smaller_for_less else Kind.IMPROVED
    return Kind.REGRESSED if size is not None and size.larger else Kind.NO_DETECTABLE_CHANGE
