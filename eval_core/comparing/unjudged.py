"""What offline evidence cannot say: the stand-in follows no instruction, and its summary is nobody's.

Where the instructions changed, nothing that was gained is claimed. Where the model was shown other text of the
session, the stand-in wrote other lines, and no fact inside its summary is claimed, neither lost nor gained.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eval_core.comparing.rule import decide_kind
from eval_core.strands.evidence import Recorded
from eval_core.strands.findings import FactChange, Finding, Kind, StrandState
from eval_core.strands.size import SizeChange

JUDGED_BY = "`compression-eval run --model openai/gpt-4.1-mini --judge offline --dry-run`"
"""The command that says what judging it would cost, and without its last word judges it."""
_SPOKE = (StrandState.WORSE, StrandState.BETTER, StrandState.BOTH)
_MOVED = (Kind.REGRESSED, Kind.IMPROVED, Kind.TRADE, Kind.MIXED)


def _certain(fact: FactChange) -> bool:
    """Tell whether a fact moved whatever a model writes: no model was shown it, or it is kept verbatim now."""
    return fact.shown in ("never shown", "not passed on") if fact.change < 0 else fact.verbatim


def judgeable(recorded: Recorded) -> Recorded:
    """Leave out what follows from the stand-in's own choice of lines."""
    if not recorded.other_replies:
        return recorded
    facts = tuple(
        fact.model_copy(update={"clear": True}) if fact.fixture in recorded.other_replies else fact
        for fact in recorded.facts
        if fact.fixture not in recorded.other_replies or _certain(fact)
    )
    return replace(
        recorded,
        facts=facts,
        unjudged_facts=len(recorded.facts) - len(facts),
        cause="" if len(facts) < len(recorded.facts) else recorded.cause,
        invented=replace(recorded.invented, more=False, named=()),
        stale=replace(recorded.stale, more=False, named=()),
        exact=True,
    )


def unjudged_kind(
    strands: Mapping[str, Finding], size: SizeChange | None, recorded: Recorded, *, certain: bool, decided: bool
) -> Kind:
    """Apply the rule to what can be counted without a model; what is then still open was not judged."""
    if recorded.unfollowed:
        harmed = {name: strand.model_copy(update={"gain": 0.0}) for name, strand in strands.items()}
        grown = size if size is not None and size.larger and not recorded.other_replies else None
        kind = decide_kind(harmed, grown, certain=certain, decided=True)
        return kind if kind is Kind.REGRESSED else Kind.NOT_JUDGED
    kind = decide_kind(strands, size, certain=certain, decided=decided)
    if kind in _MOVED and any(strand.state in _SPOKE for strand in strands.values()):
        return kind
    other_size = size is not None and (size.larger or size.smaller)
    return Kind.NOT_JUDGED if recorded.unjudged_facts or other_size else kind


def why_unjudged(recorded: Recorded) -> str:
    """Say what nobody followed, as a clause."""
    if recorded.asks.changed:
        return f"{recorded.asks.strand.says}; offline, no model follows them"
    if recorded.asks.unknown:
        return "what the compressor asks of its model was not recorded on both sides; offline, no model follows it"
    return "the compressor's model is shown other text of the session; offline, no model summarises it"
