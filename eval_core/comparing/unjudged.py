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

_PRICE = "prints the price; run it again without `--dry-run`."
_BY_A_MODEL = (
    f"Let a model judge it: `compression-eval run --model openai/gpt-4.1-mini --judge offline --dry-run` {_PRICE}"
)
_BY_AN_AGENT = f"Let a model answer from it: `compression-eval run --model openai/gpt-4.1-mini --dry-run` {_PRICE}"
_EACH_MODEL = (
    "Measure the compressor with each of these models (`compression-eval run --compressor-model NAME --compare-to none "
    "--label LABEL`) and read the results side by side (`compression-eval report results/ONE results/OTHER`)."
)
_MOST_REASONS = 2
_GOOD = (Kind.NO_DETECTABLE_CHANGE, Kind.INCONCLUSIVE, Kind.IMPROVED)
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
    # Nor does it say anything that the stand-in, which reads lines in any order, came to the same facts.
    return Kind.NOT_JUDGED if recorded.unjudged_facts or recorded.asks.other_text or other_size else kind


def unless_unread(kind: Kind, recorded: Recorded) -> Kind:
    """Take back what is calm or good where another model is asked for, or other words stand in the state, unread."""
    unread = recorded.asks.other_model or recorded.unread
    return Kind.NOT_JUDGED if unread and kind in _GOOD else kind


def _unjudged(recorded: Recorded) -> list[tuple[str, str]]:
    """Return what nobody judged, as clauses, and for each the sentence that says what would."""
    asks, found = recorded.asks, []
    if recorded.unfollowed and asks.instructions:
        found.append((f"{asks.instructions}; offline, no model follows them", _BY_A_MODEL))
    if recorded.unfollowed and asks.unknown:
        why = "what the compressor asks of its model was not recorded on both sides; offline, no model follows it"
        found.append((why, _BY_A_MODEL))
    if asks.other_model:
        found.append((f"{asks.other_model}; here one model answers, whichever is asked for", _EACH_MODEL))
    if recorded.unread:
        found.append(("what it says before its summary changed; offline, no model reads it", _BY_AN_AGENT))
    if recorded.other_replies:
        why = "the compressor's model is shown other text of the session; offline, no model summarises it"
        found.append((why, _BY_A_MODEL))
    return found


def why_unjudged(recorded: Recorded) -> str:
    """Say what nobody judged; empty where everything was."""
    # What is shown changes the summary, and so does what is asked: one reason of each kind is enough.
    return "; ".join(why for why, _ in _unjudged(recorded)[:_MOST_REASONS])


def how_to_judge(recorded: Recorded | None) -> str:
    """Say what would judge the first of it, as a sentence."""
    found = _unjudged(recorded) if recorded is not None else []
    return found[0][1] if found else ""
