"""What records say, made up for tests of the rule."""

from __future__ import annotations

from eval_core.strands.asks import AsksChange
from eval_core.strands.evidence import Recorded
from eval_core.strands.fact_changes import FalseValues
from eval_core.strands.findings import FactChange, Finding, StrandState, weigh
from eval_core.strands.form import FormChange
from eval_core.strands.outcome import OutcomeChange
from eval_core.strands.size import SizeChange

NONE = FalseValues(more=False, named=())


def strand(name: str, loss: float = 0.0, gain: float = 0.0, state: StrandState | None = None) -> Finding:
    return Finding(name=name, state=state or weigh(loss, gain), loss=loss, gain=gain)


def size(tokens: float, kept: float = 0.5, lift: float = 0.0, *, recorded: bool = True) -> SizeChange:
    return SizeChange(recorded, 100.0, tokens, 0.5, kept, 0.0, lift)


def recorded(
    *facts: FactChange,
    invented: FalseValues = NONE,
    stale: FalseValues = NONE,
    every: int = 100,
    authored: int = 10,
    exact: bool = True,
    judged: bool = False,
) -> Recorded:
    return Recorded(
        outcome=OutcomeChange((), (), (), (), ()),
        window=strand("window"),
        shown=strand("shown"),
        asks=AsksChange(strand("asks")),
        form=FormChange(True),
        facts=facts,
        invented=invented,
        stale=stale,
        size=size(100),
        asked_facts=authored,
        other_facts=every,
        exact=exact,
        judged=judged,
    )
